package inquiry

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// ErrRefused is wrapped by the errors about requests that no tool may make.
var ErrRefused = errors.New("refused")

// version is that of the base format, of both classes of SMPs and of performance management (IBTA volume 1, 13.4.3, 14.2.1 and 16.1).
const version = 1

// readable are the attributes that a tool may read. Each has a layout in package mad, so that keys in it are known.
var readable = map[mad.AttrID]bool{
	mad.AttrNodeDescription: true, mad.AttrNodeInfo: true, mad.AttrSwitchInfo: true, mad.AttrGUIDInfo: true, mad.AttrPortInfo: true,
	mad.AttrPKeyTable: true, mad.AttrSLtoVLMappingTable: true, mad.AttrVLArbitration: true, mad.AttrLinearForwardingTable: true,
	mad.AttrMulticastForwardingTable: true, mad.AttrHierarchyInfo: true, mad.AttrSMInfo: true, mad.AttrLedInfo: true,
	mad.AttrPortInfoExtended: true, mad.AttrSwitchPortStateTable: true, mad.AttrGeneralInfo: true, mad.AttrMlnxExtendedPortInfo: true,
}

// counted are the attributes of performance management that a tool may read. That class has no key.
var counted = map[mad.AttrID]bool{
	mad.AttrClassPortInfo: true, mad.PerfAttrPortCounters: true, mad.PerfAttrPortCountersExtended: true,
}

// Check returns why a tool may not make a request, and nil if it may. The error wraps [ErrRefused].
func Check(m *mad.MAD) error {
	switch {
	case m.BaseVersion() != version || !m.IsSMP() && m.Class() != mad.ClassPerf || m.ClassVersion() != version:
		return fmt.Errorf("%w: class %v, version %d: a tool may use subnet management and performance management of version %d alone", ErrRefused, m.Class(), m.ClassVersion(), version)
	case m.Method() != mad.MethodGet:
		return fmt.Errorf("%w: %v of %s: a tool may only read (Get)", ErrRefused, m.Method(), m.Header().AttrName())
	case m.IsSMP() && !readable[m.Attr()] || !m.IsSMP() && !counted[m.Attr()]:
		return fmt.Errorf("%w: %s of class %v is none that tools may read", ErrRefused, m.Header().AttrName(), m.Class())
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
