// Package sham is an endless fabric that a node pretends to have: what its switches answer, made on request.
package sham

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Sham is an endless fabric that a node pretends to have. A sender that follows a directed route finds switches there,
// created on request, each with a link at every port. They accept every write, and carry no packet.
type Sham struct {
	// Ports is how many each switch has, 2 to 254. It is entered by port 1: 2 make a
	// chain, more a tree that never ends.
	Ports uint8
	// GUID returns the GUID of the switch at the end of a path that begins behind the first switch. visit counts the
	// queries for it, from 1. nil: the GUID is derived from the path, always the same.
	GUID func(path []ib.PortNum, visit int) ib.GUID
	// Delay is how long each answer takes.
	Delay time.Duration
}

// Fabric is a Sham that is shown.
type Fabric struct {
	Sham
	Asked    int                // requests
	switches map[string]*madeUp // by path
}

type madeUp struct {
	visits int
	info   mad.SwitchInfo
	ports  map[ib.PortNum]*mad.PortInfo // that were asked for
}

// Answer writes the answer of the switch at the end of a path.
func (s *Fabric) Answer(path []ib.PortNum, m *mad.MAD) mad.Status {
	key := make([]byte, len(path))
	for i, p := range path {
		key[i] = byte(p)
	}
	sw := s.switches[string(key)]
	if sw == nil {
		sw = &madeUp{
			info:  mad.SwitchInfo{LinearFDBCap: 49152, MulticastFDBCap: 1024, PartitionEnforcementCap: 64, InboundEnforcementCap: true, OutboundEnforcementCap: true},
			ports: map[ib.PortNum]*mad.PortInfo{},
		}
		s.switches[string(key)] = sw
	}
	set := m.Method() == mad.MethodSet
	switch m.Attr() {
	case mad.AttrNodeInfo:
		if set {
			return mad.StatusUnsupportedMethodAttr
		}
		sw.visits++
		g := s.name(path, sw.visits)
		return reveal(m, &mad.NodeInfo{
			BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeSwitch, NumPorts: s.Ports,
			SystemImageGUID: g, NodeGUID: g, PortGUID: g, PartitionCap: 32, LocalPortNum: 1,
		})
	case mad.AttrSwitchInfo:
		if set {
			must(mad.Decode(m.Data(), &sw.info))
			sw.info.PortStateChange = false
		}
		return reveal(m, &sw.info)
	case mad.AttrPortInfo:
		num := ib.PortNum(m.Mod() & 0xFF)
		if int(num) > int(s.Ports) {
			return mad.StatusInvalidField
		}
		return sw.portInfo(num, m, set)
	case mad.AttrNodeDescription, mad.AttrPKeyTable, mad.AttrGUIDInfo, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitration,
		mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable:
		return mad.StatusOK // a Set comes back as it was sent
	default:
		return mad.StatusUnsupportedMethodAttr
	}
}

// portInfo answers for one port: up, with the values that were set.
func (sw *madeUp) portInfo(num ib.PortNum, m *mad.MAD, set bool) mad.Status {
	pi := sw.ports[num]
	if pi == nil {
		pi = &mad.PortInfo{
			PortState: ib.PortInit, PortPhysicalState: ib.PhysLinkUp, MTUCap: ib.MTU4096, VLCap: 4,
			LinkWidthSupported: 2, LinkWidthEnabled: 2, LinkWidthActive: 2, LinkSpeedSupported: 7, LinkSpeedEnabled: 7, LinkSpeedActive: 4,
		}
		if num == 0 {
			pi.PortState = ib.PortActive
		}
		sw.ports[num] = pi
	}
	if set {
		was := pi.PortState
		must(mad.Decode(m.Data(), pi))
		switch pi.PortPhysicalState = ib.PhysLinkUp; pi.PortState {
		case ib.PortNop:
			pi.PortState = was
		case ib.PortDown:
			pi.PortState = ib.PortInit
		default:
		}
	}
	return reveal(m, pi)
}

// name returns the GUID of the switch at the end of a path.
func (s *Fabric) name(path []ib.PortNum, visit int) ib.GUID {
	if s.GUID != nil {
		return s.GUID(path, visit)
	}
	return GUID(path)
}

// GUID is a GUID made of a path, another for each. It begins with 00BAD.
func GUID(path []ib.PortNum) ib.GUID {
	const prime, offset = 1099511628211, 14695981039346656037 // FNV-1a
	h := uint64(offset)
	for _, p := range path {
		h = (h ^ uint64(p)) * prime
	}
	return 0x00BAD<<44 | ib.GUID(h&(1<<44-1))
}

func reveal[T any](m *mad.MAD, v *T) mad.Status {
	clear(m.Data())
	must(mad.Encode(m.Data(), v))
	return mad.StatusOK
}

// New returns a fabric of which no switch was asked for yet.
func New(s Sham) *Fabric { return &Fabric{Sham: s, switches: map[string]*madeUp{}} }

// must panics on an error that cannot occur: the buffers have the size of the attribute.
func must(err error) {
	if err != nil {
		panic("sham: " + err.Error())
	}
}
