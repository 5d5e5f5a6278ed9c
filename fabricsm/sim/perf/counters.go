// Package perf counts packets and errors of a port, as performance management reads and clears them (IBTA volume 1, 16.1).
package perf

import (
	"math"

	"portcullis/fabricsm/mad"
)

// packetWords is the size of one MAD with its packet headers in the data counters, which count words of four bytes.
const packetWords = 71

// Saturate8 adds, up to the largest value.
func Saturate8(v, add uint8) uint8 { return uint8(min(uint(v)+uint(add), math.MaxUint8)) }

// Saturate16 adds, up to the largest value.
func Saturate16(v, add uint16) uint16 { return uint16(min(uint(v)+uint(add), math.MaxUint16)) }

// Counters are the counters of a port. Traffic has two views, of 32 and of 64
// bits, and each is reset by itself.
type Counters struct {
	Traffic          Traffic // first: see sim.port
	mad.PortCounters         // errors; its traffic is made by Short

	cleared         [4]uint64 // traffic at the last reset of the 32-bit counters
	clearedExtended [8]uint64 // and of the 64-bit ones
}

// Traffic counts the packets that have crossed a port since it was switched on. Data are words of four bytes.
type Traffic struct {
	XmitData, RcvData           uint64
	XmitPkts, RcvPkts           uint64
	MulticastXmit, MulticastRcv uint64 // of the packets
}

// Sent counts a MAD that leaves.
func (c *Counters) Sent() {
	c.Traffic.XmitPkts++
	c.Traffic.XmitData += packetWords
}

// Received counts a MAD that came.
func (c *Counters) Received() {
	c.Traffic.RcvPkts++
	c.Traffic.RcvData += packetWords
}

// SentData counts a data packet that leaves.
func (c *Counters) SentData(words uint32, multicast bool) {
	c.Traffic.XmitPkts++
	c.Traffic.XmitData += uint64(words)
	if multicast {
		c.Traffic.MulticastXmit++
	}
}

// ReceivedData counts a data packet that came.
func (c *Counters) ReceivedData(words uint32, multicast bool) {
	c.Traffic.RcvPkts++
	c.Traffic.RcvData += uint64(words)
	if multicast {
		c.Traffic.MulticastRcv++
	}
}

// extended is traffic in the order of the bits of CounterSelect of
// PortCountersExtended, whose first four are bits 12 to 15 of PortCounters.
func (t *Traffic) extended() [8]uint64 {
	return [8]uint64{
		t.XmitData, t.RcvData, t.XmitPkts, t.RcvPkts,
		t.XmitPkts - t.MulticastXmit, t.RcvPkts - t.MulticastRcv, t.MulticastXmit, t.MulticastRcv,
	}
}

// Short returns PortCounters: values above 32 bits stay at the largest value.
func (c *Counters) Short() mad.PortCounters {
	s, now := c.PortCounters, c.Traffic.extended()
	for i, field := range []*uint32{&s.PortXmitData, &s.PortRcvData, &s.PortXmitPkts, &s.PortRcvPkts} {
		*field = uint32(min(now[i]-c.cleared[i], math.MaxUint32))
	}
	return s
}

// Long returns PortCountersExtended, with the counters that every device has.
func (c *Counters) Long() mad.PortCountersExtended {
	now := c.Traffic.extended()
	for i := range now {
		now[i] -= c.clearedExtended[i]
	}
	return mad.PortCountersExtended{
		PortXmitData: now[0], PortRcvData: now[1], PortXmitPkts: now[2], PortRcvPkts: now[3],
		PortUnicastXmitPkts: now[4], PortUnicastRcvPkts: now[5], PortMulticastXmitPkts: now[6], PortMulticastRcvPkts: now[7],
	}
}

// Reset clears the counters whose bit is set in a CounterSelect of
// PortCounters (IBTA volume 1, 16.1.3.5).
func (c *Counters) Reset(selected uint16) {
	p, now := &c.PortCounters, c.Traffic.extended()
	for bit := range 16 {
		if selected>>bit&1 == 0 {
			continue
		}
		switch bit {
		case 0:
			p.SymbolErrorCounter = 0
		case 1:
			p.LinkErrorRecoveryCounter = 0
		case 2:
			p.LinkDownedCounter = 0
		case 3:
			p.PortRcvErrors = 0
		case 4:
			p.PortRcvRemotePhysicalErrors = 0
		case 5:
			p.PortRcvSwitchRelayErrors = 0
		case 6:
			p.PortXmitDiscards = 0
		case 7:
			p.PortXmitConstraintErrors = 0
		case 8:
			p.PortRcvConstraintErrors = 0
		case 9:
			p.LocalLinkIntegrityErrors = 0
		case 10:
			p.ExcessiveBufferOverrunErrors = 0
		case 11:
			p.VL15Dropped = 0
		default:
			c.cleared[bit-12] = now[bit-12]
		}
	}
}

// ResetExtended is Reset for the 64-bit counters.
func (c *Counters) ResetExtended(selected uint16) {
	now := c.Traffic.extended()
	for bit := range now {
		if selected>>bit&1 != 0 {
			c.clearedExtended[bit] = now[bit]
		}
	}
}

// Add adds the counters of a port to a sum; a sum, too, stays at the largest value.
func Add(c, o *mad.PortCounters) {
	add8 := func(v *uint8, o uint8) { *v = Saturate8(*v, o) }
	add16 := func(v *uint16, o uint16) { *v = Saturate16(*v, o) }
	add32 := func(v *uint32, o uint32) { *v = uint32(min(uint64(*v)+uint64(o), math.MaxUint32)) }
	add16(&c.SymbolErrorCounter, o.SymbolErrorCounter)
	add8(&c.LinkErrorRecoveryCounter, o.LinkErrorRecoveryCounter)
	add8(&c.LinkDownedCounter, o.LinkDownedCounter)
	add16(&c.PortRcvErrors, o.PortRcvErrors)
	add16(&c.PortRcvRemotePhysicalErrors, o.PortRcvRemotePhysicalErrors)
	add16(&c.PortRcvSwitchRelayErrors, o.PortRcvSwitchRelayErrors)
	add16(&c.PortXmitDiscards, o.PortXmitDiscards)
	add8(&c.PortXmitConstraintErrors, o.PortXmitConstraintErrors)
	add8(&c.PortRcvConstraintErrors, o.PortRcvConstraintErrors)
	c.LocalLinkIntegrityErrors = min(c.LocalLinkIntegrityErrors+o.LocalLinkIntegrityErrors, 0xF)
	c.ExcessiveBufferOverrunErrors = min(c.ExcessiveBufferOverrunErrors+o.ExcessiveBufferOverrunErrors, 0xF)
	add16(&c.VL15Dropped, o.VL15Dropped)
	add32(&c.PortXmitData, o.PortXmitData)
	add32(&c.PortRcvData, o.PortRcvData)
	add32(&c.PortXmitPkts, o.PortXmitPkts)
	add32(&c.PortRcvPkts, o.PortRcvPkts)
}

// AddExtended adds what Long returned for a port to a sum.
func AddExtended(c, o *mad.PortCountersExtended) {
	c.PortXmitData += o.PortXmitData
	c.PortRcvData += o.PortRcvData
	c.PortXmitPkts += o.PortXmitPkts
	c.PortRcvPkts += o.PortRcvPkts
	c.PortUnicastXmitPkts += o.PortUnicastXmitPkts
	c.PortUnicastRcvPkts += o.PortUnicastRcvPkts
	c.PortMulticastXmitPkts += o.PortMulticastXmitPkts
	c.PortMulticastRcvPkts += o.PortMulticastRcvPkts
}

// RelayError counts a packet that a switch could not forward.
func (c *Counters) RelayError() {
	c.PortRcvSwitchRelayErrors = Saturate16(c.PortRcvSwitchRelayErrors, 1)
}

// Discard counts a packet that was to leave and could not.
func (c *Counters) Discard() {
	c.PortXmitDiscards = Saturate16(c.PortXmitDiscards, 1)
}
