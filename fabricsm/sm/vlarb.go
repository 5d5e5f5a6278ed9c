package sm

import (
	"math/bits"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// arbState is how far the arbitration tables of a port are right: a bit for each
// mad.VLArbHalf.
type arbState struct {
	want    laneID // of the SL-to-VL table: the lanes a port has decide both
	right   uint8
	differ  uint8 // read, and to be written
	refused uint8 // counted as right, as the device does not show or keep what is
	twice   uint8 // written and not kept
	first   uint8 // the written half that shows whether they were lost in the meantime; 0: none was
	lost    bool  // they were, once
}

// done reports whether nothing is left to be read or written.
func (a *arbState) done() bool { return a.right == allHalves && a.first == 0 }

const allHalves = 1<<mad.VLArbLow0 | 1<<mad.VLArbLow32 | 1<<mad.VLArbHigh0 | 1<<mad.VLArbHigh32

// arbitrates reports whether the arbitration tables of a port are programmed: with one lane there is nothing to arbitrate.
func (c *Core) arbitrates(p topo.PortID) bool {
	pt := &c.ports[p]
	return c.shares() && pt.seen() && c.hasLanes(p) && pt.info.VLCap > 1
}

// arbDone reports whether the arbitration tables of a port need no work.
func (c *Core) arbDone(p topo.PortID) bool {
	return !c.arbitrates(p) || c.ports[p].unread || c.ports[p].arb != nil && c.ports[p].arb.done()
}

// roomOf returns how many entries a port has in the table that a half belongs to, and the entry at which the half begins.
func roomOf(pi *mad.PortInfo, half mad.VLArbHalf) (room, from uint8) {
	room = pi.VLArbitrationLowCap
	if half == mad.VLArbHigh0 || half == mad.VLArbHigh32 {
		room = pi.VLArbitrationHighCap
	}
	if half == mad.VLArbLow32 || half == mad.VLArbHigh32 {
		from = qos.MaxEntries / 2
	}
	return room, from
}

// wantHalf returns half of an arbitration table of a port.
func (c *Core) wantHalf(p topo.PortID, half mad.VLArbHalf) (want mad.VLArbitration) {
	room, from := roomOf(&c.ports[p].info, half)
	return halfOf(&c.lanes.qos[kindOf(&c.topo, p)], half, room, from, c.vlsOf(p))
}

// halfOf returns half of an arbitration table for a port with some virtual lanes; see roomOf.
func halfOf(t *qos.Table, half mad.VLArbHalf, room, from uint8, vls ib.VLCap) (want mad.VLArbitration) {
	for i, e := range t.Half(half >= mad.VLArbHigh0, from > 0, room, vls) {
		want.Entry[i].VL, want.Entry[i].Weight = e.VL, e.Weight
	}
	return want
}

// workVLArb reads and writes the arbitration tables of a port, half by half. A device that reboots in the meantime loses
// the half that was written first, whatever else it loses, and its port may not show the reboot. So that half is read at
// the end.
func (c *Core) workVLArb(p topo.PortID) {
	pt := &c.ports[p]
	if !c.arbitrates(p) || pt.unread {
		return // the table size of an unread port is not known
	}
	if id := laneID(c.vlsOf(p)); pt.arb == nil || pt.arb.want != id {
		pt.arb = &arbState{want: id}
		c.showPort(p)
	}
	a := pt.arb
	for half := mad.VLArbLow0; half <= mad.VLArbHigh32; half++ {
		bit := uint8(1) << half
		room, from := roomOf(&pt.info, half)
		switch {
		case a.right&bit != 0:
			continue
		case room <= from:
			a.right |= bit
			continue
		}
		x, mod := work.OnPort(work.VLArb, p), mad.VLArbitrationMod(half, c.topo.ExternalNum(p))
		if a.differ&bit == 0 && !pt.fresh {
			c.ask(x, pt.node, mad.MethodGet, mad.AttrVLArbitration, mod)
		} else if c.writing() {
			c.wroteLanes(p, sharesWritten)
			want := c.wantHalf(p, half)
			m := c.ask(x, pt.node, mad.MethodSet, mad.AttrVLArbitration, mod)
			c.encode(mad.Encode(m.Data(), &want))
		}
		return
	}
	if a.first != 0 {
		half := mad.VLArbHalf(bits.TrailingZeros8(a.first))
		c.ask(work.OnPort(work.VLArb, p), pt.node, mad.MethodGet, mad.AttrVLArbitration, mad.VLArbitrationMod(half, c.topo.ExternalNum(p)))
		return
	}
	c.q.MarkPort(work.Set, p)
}

// gotVLArb takes half of an arbitration table.
func (c *Core) gotVLArb(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	pt := &c.ports[p]
	var got mad.VLArbitration
	if mad.Decode(m.Data(), &got) != nil || !c.arbitrates(p) || pt.arb == nil {
		return
	}
	half := mad.VLArbHalf(r.Mod >> 16)
	bit := uint8(1) << half
	a := pt.arb
	room, from := roomOf(&pt.info, half)
	want := c.wantHalf(p, half)
	n := min(int(room-min(room, from)), len(want.Entry))
	right := true
	for i := range want.Entry[:n] {
		right = right && got.Entry[i] == want.Entry[i]
	}
	a.differ &^= bit
	c.showPort(p)
	proof := r.Method == mad.MethodGet && a.right == allHalves && a.first == bit
	if proof {
		a.first = 0
	}
	switch {
	case status != mad.StatusOK:
		c.refused(r, status.String())
		a.refused |= bit
		a.right |= bit // until there is something new to be written
	case proof && !right && a.lost:
		c.refused(r, "the table read is not the one that was set")
		a.lost = false
		a.refused |= bit
	case proof && !right:
		*a = arbState{want: a.want, lost: true}
	case proof:
		a.lost = false
	case right:
		a.refused &^= bit
		a.right |= bit
		if r.Method == mad.MethodSet && a.first == 0 {
			a.first = bit
		}
	case r.Audit:
		a.right &^= bit
		a.differ |= bit
	case r.Method == mad.MethodGet || a.twice&bit == 0:
		a.differ |= bit
		if r.Method == mad.MethodSet {
			a.twice |= bit
		}
	default:
		c.refused(r, "the table answered is not the one that was set")
		a.refused |= bit
		a.right |= bit
	}
	c.q.MarkPort(work.VLArb, p)
}

// auditVLArb reads half of an arbitration table in the background, another each
// time.
func (c *Core) auditVLArb(p topo.PortID, turn int) {
	pt := &c.ports[p]
	if !c.arbitrates(p) || !c.arbDone(p) || c.q.IsAsked(work.VLArb, p) || c.nodes[pt.node].silent {
		return
	}
	half := mad.VLArbLow0 + mad.VLArbHalf(turn%4)
	if room, from := roomOf(&pt.info, half); room <= from {
		return
	}
	c.auditing = true
	c.ask(work.OnPort(work.VLArb, p), pt.node, mad.MethodGet, mad.AttrVLArbitration, mad.VLArbitrationMod(half, c.topo.ExternalNum(p)))
	c.auditing = false
}
