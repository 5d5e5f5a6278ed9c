package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// forwarding is the state that only switches have.
type forwarding struct {
	enhancedPort0 bool

	hasMulticastTop bool

	info      mad.SwitchInfo
	linear    []byte                         // egress port by LID; grows by blocks as it is written
	multicast map[uint32]*[mad.DataSize]byte // by modifier; absent is all zero
}

// multicastPositions is how many groups of 16 ports a multicast table has.
const multicastPositions = 16

func (s *forwarding) reset(o *Options, d *Device) {
	s.linear = s.linear[:0]
	s.multicast = map[uint32]*[mad.DataSize]byte{}
	s.info = mad.SwitchInfo{
		LinearFDBCap:            o.LinearCap,
		MulticastFDBCap:         o.MulticastCap,
		PartitionEnforcementCap: uint16(d.enforcementCap()),
		InboundEnforcementCap:   !d.NoEnforcement,
		OutboundEnforcementCap:  !d.NoEnforcement,
		FilterRawInboundCap:     true,
		FilterRawOutboundCap:    true,
		EnhancedPort0:           s.enhancedPort0,
	}
	if s.hasMulticastTop = o.MulticastTop; s.hasMulticastTop {
		s.info.MulticastFDBTop = ib.MinMulticastLID - 1
	}
	if o.SLtoVLWildcard {
		s.info.OptimizedSLtoVLMappingProgramming = 1
	}
}

// lookup returns the egress port for a LID; ib.NoPort, which no switch has, means drop.
func (s *forwarding) lookup(lid ib.LID) ib.PortNum {
	if lid > s.info.LinearFDBTop || int(lid) >= len(s.linear) {
		return ib.NoPort
	}
	return ib.PortNum(s.linear[lid])
}

// switchInfo answers SwitchInfo. Writing true to PortStateChange clears it.
func (n *node) switchInfo(m *mad.MAD, set bool) mad.Status {
	if n.sw == nil {
		return mad.StatusUnsupportedMethodAttr
	}
	have := &n.sw.info
	status := mad.StatusOK
	if set {
		var want mad.SwitchInfo
		must(mad.Decode(m.Data(), &want))
		if uint32(want.LinearFDBTop) >= uint32(have.LinearFDBCap) && want.LinearFDBTop != 0 {
			status = mad.StatusInvalidField
		} else {
			n.sw.take(&want)
		}
	}
	clear(m.Data())
	must(mad.Encode(m.Data(), have))
	return status
}

// take takes the writable fields of a Set.
func (s *forwarding) take(want *mad.SwitchInfo) {
	have := &s.info
	have.LinearFDBTop = want.LinearFDBTop
	have.DefaultPort = want.DefaultPort
	have.DefaultMulticastPrimaryPort = want.DefaultMulticastPrimaryPort
	have.DefaultMulticastNotPrimaryPort = want.DefaultMulticastNotPrimaryPort
	have.LifeTimeValue = want.LifeTimeValue
	if s.hasMulticastTop {
		have.MulticastFDBTop = want.MulticastFDBTop
	}
	if want.PortStateChange {
		have.PortStateChange = false
	}
}

// linearTable answers LinearForwardingTable.
func (n *node) linearTable(m *mad.MAD, set bool) mad.Status {
	if n.sw == nil {
		return mad.StatusUnsupportedMethodAttr
	}
	s := n.sw
	from := m.Mod() * mad.LIDsPerBlock
	if m.Mod() >= 1<<16/mad.LIDsPerBlock || from >= uint32(s.info.LinearFDBCap) {
		return mad.StatusInvalidField
	}
	if set {
		for uint32(len(s.linear)) < from+mad.LIDsPerBlock {
			s.linear = append(s.linear, byte(ib.NoPort))
		}
		copy(s.linear[from:], m.Data())
		return mad.StatusOK
	}
	data := m.Data()
	for i := range data {
		data[i] = byte(ib.NoPort)
	}
	if from < uint32(len(s.linear)) {
		copy(data, s.linear[from:])
	}
	return mad.StatusOK
}

// multicastTable answers MulticastForwardingTable: block in bits 8..0, position
// in bits 31..28 of the modifier.
func (n *node) multicastTable(m *mad.MAD, set bool) mad.Status {
	if n.sw == nil {
		return mad.StatusUnsupportedMethodAttr
	}
	block, position := m.Mod()&0x1FF, m.Mod()>>28
	if m.Mod()&^0xF00001FF != 0 || block*mad.MLIDsPerBlock >= uint32(n.sw.info.MulticastFDBCap) || int(position)*multicastPositions >= len(n.ports) {
		return mad.StatusInvalidField
	}
	at := n.sw.multicast[m.Mod()]
	switch {
	case at == nil && !set:
		clear(m.Data())
		return mad.StatusOK
	case at == nil:
		at = new([mad.DataSize]byte)
		n.sw.multicast[m.Mod()] = at
	}
	return exchange(m, at[:], set)
}
