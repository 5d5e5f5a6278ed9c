package sim

import (
	"math"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Attributes of the performance management class.
const (
	attrPortCounters         mad.AttrID = 0x0012
	attrPortCountersExtended mad.AttrID = 0x001D

	allPorts = 255 // PortSelect

	// Capabilities in its ClassPortInfo: PortSelect 255, and 64-bit counters.
	perfCapabilities = 0x0100 | 0x0200

	perfDataOffset = 64 // of the attribute in the MAD
	// packetWords is the size of one MAD with its packet headers in the data counters, which count words of four bytes.
	packetWords = 71
)

// portCounters is PortCounters (attribute 0x0012; IBTA volume 1, 16.1.3.5).
// The counters stay at their largest value when they reach it.
type portCounters struct {
	Reserved1                    uint8  `mad:"0,8"`
	PortSelect                   uint8  `mad:"8,8"`
	CounterSelect                uint16 `mad:"16,16"`
	SymbolErrorCounter           uint16 `mad:"32,16"`
	LinkErrorRecoveryCounter     uint8  `mad:"48,8"`
	LinkDownedCounter            uint8  `mad:"56,8"`
	PortRcvErrors                uint16 `mad:"64,16"`
	PortRcvRemotePhysicalErrors  uint16 `mad:"80,16"`
	PortRcvSwitchRelayErrors     uint16 `mad:"96,16"`
	PortXmitDiscards             uint16 `mad:"112,16"`
	PortXmitConstraintErrors     uint8  `mad:"128,8"`
	PortRcvConstraintErrors      uint8  `mad:"136,8"`
	CounterSelect2               uint8  `mad:"144,8"`
	LocalLinkIntegrityErrors     uint8  `mad:"152,4"`
	ExcessiveBufferOverrunErrors uint8  `mad:"156,4"`
	QP1Dropped                   uint16 `mad:"160,16"`
	VL15Dropped                  uint16 `mad:"176,16"`
	PortXmitData                 uint32 `mad:"192,32"`
	PortRcvData                  uint32 `mad:"224,32"`
	PortXmitPkts                 uint32 `mad:"256,32"`
	PortRcvPkts                  uint32 `mad:"288,32"`
	PortXmitWait                 uint32 `mad:"320,32"`
}

// portCountersExtended is PortCountersExtended (attribute 0x001D).
type portCountersExtended struct {
	Reserved1             uint8  `mad:"0,8"`
	PortSelect            uint8  `mad:"8,8"`
	CounterSelect         uint16 `mad:"16,16"`
	CounterSelect2        uint32 `mad:"32,32"`
	PortXmitData          uint64 `mad:"64,64"`
	PortRcvData           uint64 `mad:"128,64"`
	PortXmitPkts          uint64 `mad:"192,64"`
	PortRcvPkts           uint64 `mad:"256,64"`
	PortUnicastXmitPkts   uint64 `mad:"320,64"`
	PortUnicastRcvPkts    uint64 `mad:"384,64"`
	PortMulticastXmitPkts uint64 `mad:"448,64"`
	PortMulticastRcvPkts  uint64 `mad:"512,64"`
}

func saturate8(v, add uint8) uint8    { return uint8(min(uint(v)+uint(add), math.MaxUint8)) }
func saturate16(v, add uint16) uint16 { return uint16(min(uint(v)+uint(add), math.MaxUint16)) }

// perfAgent answers the performance management class.
func (p *port) perfAgent(m *mad.MAD) mad.Status {
	data, set := m[perfDataOffset:], m.Method() == mad.MethodSet
	switch m.Attr() {
	case mad.AttrClassPortInfo:
		if set {
			return mad.StatusUnsupportedMethodAttr
		}
		clear(data)
		must(mad.Encode(data, &mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 1, CapabilityMask: perfCapabilities, RespTimeValue: 8}))
		return mad.StatusOK
	case attrPortCounters, attrPortCountersExtended:
		ports := p.counted(data[1])
		if ports == nil {
			return mad.StatusInvalidField
		}
		if m.Attr() == attrPortCounters {
			return answerCounters(ports, data, set)
		}
		return answerExtended(ports, data, set)
	default:
		return mad.StatusUnsupportedMethodAttr
	}
}

// counted is the ports that a PortSelect names.
func (p *port) counted(selected uint8) []*port {
	if selected == allPorts {
		return p.node.ports[1:]
	}
	if at := p.selected(uint32(selected)); at != nil {
		return []*port{at}
	}
	return nil
}

// answerCounters clears the selected counters in a Set, and answers with the
// sum over the ports.
func answerCounters(ports []*port, data []byte, set bool) mad.Status {
	var asked, sum portCounters
	must(mad.Decode(data, &asked))
	for _, p := range ports {
		if set {
			p.counters.reset(asked.CounterSelect)
		}
		one := p.counters.short()
		sum.add(&one)
	}
	sum.PortSelect, sum.CounterSelect = asked.PortSelect, asked.CounterSelect
	clear(data)
	must(mad.Encode(data, &sum))
	return mad.StatusOK
}

// answerExtended is answerCounters for the 64-bit counters.
func answerExtended(ports []*port, data []byte, set bool) mad.Status {
	var asked, sum portCountersExtended
	must(mad.Decode(data, &asked))
	for _, p := range ports {
		if set {
			p.counters.resetExtended(asked.CounterSelect)
		}
		one := p.counters.long()
		sum.add(&one)
	}
	sum.PortSelect, sum.CounterSelect = asked.PortSelect, asked.CounterSelect
	clear(data)
	must(mad.Encode(data, &sum))
	return mad.StatusOK
}

// PacketsSent returns the number of packets that a port counted as sent since its counters were reset; for port 0 of a
// switch the sum over its ports.
func (f *Fabric) PacketsSent(node string, num ib.PortNum) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return 0
	}
	ports := []*port{p}
	if p.node.sw != nil && num == 0 {
		ports = p.node.ports[1:]
	}
	var sum portCountersExtended
	for _, p := range ports {
		one := p.counters.long()
		sum.add(&one)
	}
	return sum.PortXmitPkts
}
