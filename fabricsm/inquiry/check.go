package inquiry

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// ErrRefused is wrapped by the errors about requests that no tool may make.
var ErrRefused = errors.New("refused")

// smpVersion is the version of the base format and of both classes of SMPs (IBTA volume 1, 13.4.3 and 14.2.1).
const smpVersion = 1

// readable are the attributes that a tool may read. Each has a layout in package mad, so that keys in it are known.
var readable = map[mad.AttrID]bool{
	mad.AttrNodeDescription: true, mad.AttrNodeInfo: true, mad.AttrSwitchInfo: true, mad.AttrGUIDInfo: true, mad.AttrPortInfo: true,
	mad.AttrPKeyTable: true, mad.AttrSLtoVLMappingTable: true, mad.AttrVLArbitration: true, mad.AttrLinearForwardingTable: true,
	mad.AttrMulticastForwardingTable: true, mad.AttrHierarchyInfo: true, mad.AttrSMInfo: true, mad.AttrLedInfo: true,
	mad.AttrPortInfoExtended: true, mad.AttrSwitchPortStateTable: true, mad.AttrGeneralInfo: true, mad.AttrMlnxExtendedPortInfo: true,
}

// Check returns why a tool may not make a request, and nil if it may. The error wraps [ErrRefused].
func Check(m *mad.MAD) error {
	switch {
	case m.BaseVersion() != smpVersion || !m.IsSMP() || m.ClassVersion() != smpVersion:
		return fmt.Errorf("%w: class %v, version %d: a tool may read by SMPs of version %d alone", ErrRefused, m.Class(), m.ClassVersion(), smpVersion)
	case m.Method() != mad.MethodGet:
		return fmt.Errorf("%w: %v of attribute 0x%04x: a tool may only read (Get)", ErrRefused, m.Method(), uint16(m.Attr()))
	case !readable[m.Attr()]:
		return fmt.Errorf("%w: attribute 0x%04x is none that tools may read", ErrRefused, uint16(m.Attr()))
	case !m.IsDR():
		return nil
	case m.Returning() || m.HopPointer() != 0:
		return fmt.Errorf("%w: the directed route is under way already", ErrRefused)
	case m.HopCount() > mad.MaxHops:
		return fmt.Errorf("%w: a directed route of %d hops: at most %d are possible", ErrRefused, m.HopCount(), mad.MaxHops)
	case m.DrSLID() != ib.PermissiveLID || m.DrDLID() != ib.PermissiveLID:
		return fmt.Errorf("%w: the directed route has parts that are routed by LID: ask by LID, or by directed route from the own port", ErrRefused)
	default:
		return nil
	}
}
