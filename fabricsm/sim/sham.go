package sim

import (
	"errors"
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

// sham is a Sham that is shown.
type sham struct {
	Sham
	asked    int
	switches map[string]*shamSwitch // by path
}

type shamSwitch struct {
	visits int
	info   mad.SwitchInfo
	ports  map[ib.PortNum]*mad.PortInfo // that were asked for
}

// Pretend has a channel adapter show a fabric behind its ports in its own place, until
// it is asked to show another; nil: itself again. It is seen when the link was down.
func (f *Fabric) Pretend(node string, s *Sham) error {
	return f.change("pretend", func() error {
		n, err := f.find(node)
		switch {
		case err != nil:
			return err
		case s == nil:
			n.sham = nil
			return nil
		case n.sw != nil:
			return errors.New("a switch pretends nothing")
		case s.Ports < 2 || s.Ports == 0xFF:
			return errors.New("switches that are made up have 2 to 254 ports")
		}
		n.sham = &sham{Sham: *s, switches: map[string]*shamSwitch{}}
		return nil
	})
}

// Pretended counts the requests that the made-up fabric of a node was asked.
func (f *Fabric) Pretended(node string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, err := f.find(node); err == nil && n.sham != nil {
		return n.sham.asked
	}
	return 0
}

// pretend answers a request that came to the port of a node with a sham over so many
// hops of its path.
func (f *Fabric) pretend(fl *flight, at *port, hop uint8) {
	m, s := &fl.mad, at.node.sham
	if m.IsResponse() || m.Method() != mad.MethodGet && m.Method() != mad.MethodSet || at.node.off {
		f.undelivered(fl)
		return
	}
	s.asked++
	if s.Delay == 0 {
		f.answerSham(fl, at, hop)
		return
	}
	one := *fl
	f.later.add(f.now+s.Delay, func() { f.answerSham(&one, at, hop) })
}

func (f *Fabric) answerSham(fl *flight, at *port, hop uint8) {
	s := at.node.sham
	if s == nil {
		f.undelivered(fl) // it is over
		return
	}
	m := &fl.mad
	path := make([]ib.PortNum, 0, int(m.HopCount()-hop))
	for i := hop + 1; i <= m.HopCount(); i++ {
		path = append(path, ib.PortNum(m.InitialPath()[i]))
	}
	status := s.answer(path, m)
	m.Respond(status)
	f.stats.Answered++
	fl.from = at
	f.walkBackFrom(fl, hop)
}

// answer writes the answer of the switch at the end of a path.
func (s *sham) answer(path []ib.PortNum, m *mad.MAD) mad.Status {
	key := make([]byte, len(path))
	for i, p := range path {
		key[i] = byte(p)
	}
	sw := s.switches[string(key)]
	if sw == nil {
		sw = &shamSwitch{
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
func (sw *shamSwitch) portInfo(num ib.PortNum, m *mad.MAD, set bool) mad.Status {
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
func (s *sham) name(path []ib.PortNum, visit int) ib.GUID {
	if s.GUID != nil {
		return s.GUID(path, visit)
	}
	return ShamGUID(path)
}

// ShamGUID is a GUID made of a path, another for each. It begins with 00BAD.
func ShamGUID(path []ib.PortNum) ib.GUID {
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
