package sim

import "math"

// counters are the counters of a port. Traffic has two views, of 32 and of 64
// bits, and each is reset by itself.
type counters struct {
	traffic      traffic // first: see port
	portCounters         // errors; its traffic is made by short

	cleared         [4]uint64 // traffic at the last reset of the 32-bit counters
	clearedExtended [8]uint64 // and of the 64-bit ones
}

// traffic counts the packets that have crossed a port since it was switched on. Data are words of four bytes.
type traffic struct {
	xmitData, rcvData           uint64
	xmitPkts, rcvPkts           uint64
	multicastXmit, multicastRcv uint64 // of the packets
}

// sent counts a MAD that leaves.
func (c *counters) sent() {
	c.traffic.xmitPkts++
	c.traffic.xmitData += packetWords
}

// received counts a MAD that came.
func (c *counters) received() {
	c.traffic.rcvPkts++
	c.traffic.rcvData += packetWords
}

// sentData counts a data packet that leaves.
func (c *counters) sentData(d *Data) {
	c.traffic.xmitPkts++
	c.traffic.xmitData += uint64(d.words())
	if d.DLID.IsMulticast() {
		c.traffic.multicastXmit++
	}
}

// receivedData counts a data packet that came.
func (c *counters) receivedData(d *Data) {
	c.traffic.rcvPkts++
	c.traffic.rcvData += uint64(d.words())
	if d.DLID.IsMulticast() {
		c.traffic.multicastRcv++
	}
}

// extended is traffic in the order of the bits of CounterSelect of
// PortCountersExtended, whose first four are bits 12 to 15 of PortCounters.
func (t *traffic) extended() [8]uint64 {
	return [8]uint64{
		t.xmitData, t.rcvData, t.xmitPkts, t.rcvPkts,
		t.xmitPkts - t.multicastXmit, t.rcvPkts - t.multicastRcv, t.multicastXmit, t.multicastRcv,
	}
}

// short returns PortCounters: values above 32 bits stay at the largest value.
func (c *counters) short() portCounters {
	s, now := c.portCounters, c.traffic.extended()
	for i, field := range []*uint32{&s.PortXmitData, &s.PortRcvData, &s.PortXmitPkts, &s.PortRcvPkts} {
		*field = uint32(min(now[i]-c.cleared[i], math.MaxUint32))
	}
	return s
}

// long is PortCountersExtended.
func (c *counters) long() portCountersExtended {
	now := c.traffic.extended()
	for i := range now {
		now[i] -= c.clearedExtended[i]
	}
	return portCountersExtended{
		PortXmitData: now[0], PortRcvData: now[1], PortXmitPkts: now[2], PortRcvPkts: now[3],
		PortUnicastXmitPkts: now[4], PortUnicastRcvPkts: now[5], PortMulticastXmitPkts: now[6], PortMulticastRcvPkts: now[7],
	}
}

// reset clears the counters whose bit is set in a CounterSelect of
// PortCounters (IBTA volume 1, 16.1.3.5).
func (c *counters) reset(selected uint16) {
	p, now := &c.portCounters, c.traffic.extended()
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

// resetExtended is reset for the 64-bit counters.
func (c *counters) resetExtended(selected uint16) {
	now := c.traffic.extended()
	for bit := range now {
		if selected>>bit&1 != 0 {
			c.clearedExtended[bit] = now[bit]
		}
	}
}

// add sums counters of ports; a sum, too, stays at the largest value.
func (c *portCounters) add(o *portCounters) {
	add8 := func(v *uint8, o uint8) { *v = saturate8(*v, o) }
	add16 := func(v *uint16, o uint16) { *v = saturate16(*v, o) }
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

func (c *portCountersExtended) add(o *portCountersExtended) {
	c.PortXmitData += o.PortXmitData
	c.PortRcvData += o.PortRcvData
	c.PortXmitPkts += o.PortXmitPkts
	c.PortRcvPkts += o.PortRcvPkts
	c.PortUnicastXmitPkts += o.PortUnicastXmitPkts
	c.PortUnicastRcvPkts += o.PortUnicastRcvPkts
	c.PortMulticastXmitPkts += o.PortMulticastXmitPkts
	c.PortMulticastRcvPkts += o.PortMulticastRcvPkts
}
