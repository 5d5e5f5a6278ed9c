package lanes

import (
	"math/bits"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// shareState is how far the arbitration tables of a port are right: a bit for each
// mad.VLArbHalf.
type shareState struct {
	want    laneID // of the SL-to-VL table: the lanes a port has decide both
	right   uint8
	differ  uint8 // read, and to be written
	refused uint8 // counted as right, as the device does not show or keep what is
	twice   uint8 // written and not kept
	first   uint8 // the written half that shows whether they were lost in the meantime; 0: none was
	lost    bool  // they were, once
}

// done reports whether nothing is left to be read or written.
func (a *shareState) done() bool { return a.right == allHalves && a.first == 0 }

const allHalves = 1<<mad.VLArbLow0 | 1<<mad.VLArbLow32 | 1<<mad.VLArbHigh0 | 1<<mad.VLArbHigh32

// sharesOf returns the state of a port, nil before anything is wanted of it.
func (l *Lanes) sharesOf(p topo.PortID) *shareState {
	if int(p) >= len(l.shares) {
		return nil
	}
	return l.shares[p]
}

func (l *Lanes) forgetShares(p topo.PortID) {
	if int(p) < len(l.shares) {
		l.shares[p] = nil
	}
}

// arbitrates reports whether the arbitration tables of a port are programmed: with one lane there is nothing to arbitrate.
func (l *Lanes) arbitrates(p topo.PortID) bool {
	if !l.programsShares() {
		return false
	}
	pt := l.fabric.Port(p)
	return pt.isSeen() && l.has(p) && pt.Info.VLCap > 1
}

// HighLimit returns the wanted VLHighLimit of a port, if the arbitration tables of the port are programmed.
func (l *Lanes) HighLimit(p topo.PortID) (limit uint8, ok bool) {
	if !l.arbitrates(p) {
		return 0, false
	}
	return l.kinds[l.kindOf(p)].HighLimit, true
}

// sharesDone reports whether the arbitration tables of a port need no work.
func (l *Lanes) sharesDone(p topo.PortID) bool {
	if !l.arbitrates(p) || l.fabric.Port(p).IsAssumed {
		return true
	}
	a := l.sharesOf(p)
	return a != nil && a.done()
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
func (l *Lanes) wantHalf(p topo.PortID, pi *mad.PortInfo, half mad.VLArbHalf) (want mad.VLArbitration) {
	room, from := roomOf(pi, half)
	return halfOf(&l.kinds[l.kindOf(p)], half, room, from, l.fabric.VLs(p))
}

// halfOf returns half of an arbitration table for a port with some virtual lanes; see roomOf.
func halfOf(t *qos.Table, half mad.VLArbHalf, room, from uint8, vls ib.VLCap) (want mad.VLArbitration) {
	for i, e := range t.Half(half >= mad.VLArbHigh0, from > 0, room, vls) {
		want.Entry[i].VL, want.Entry[i].Weight = e.VL, e.Weight
	}
	return want
}

// nextShares reads and writes the arbitration tables of a port, half by half. A device that reboots in the meantime loses
// the half that was written first, whatever else it loses, and its port may not show the reboot. So that half is read at
// the end.
func (l *Lanes) nextShares(p topo.PortID) Step {
	pt := l.fabric.Port(p)
	if !l.arbitrates(p) || pt.IsAssumed {
		return Step{} // the table size of such a port is not known
	}
	a := l.sharesOf(p)
	if id := laneID(l.fabric.VLs(p)); a == nil || a.want != id {
		a = &shareState{want: id}
		l.shares = topo.ExtendPorts(l.shares, len(l.maps))
		l.shares[p] = a
		l.fabric.Show(p)
	}
	for half := mad.VLArbLow0; half <= mad.VLArbHigh32; half++ {
		bit := uint8(1) << half
		room, from := roomOf(pt.Info, half)
		switch {
		case a.right&bit != 0:
			continue
		case room <= from:
			a.right |= bit
			continue
		case a.differ&bit == 0 && !pt.IsFresh:
			return l.halfStep(mad.MethodGet, p, half)
		case !l.fabric.MayWrite():
			return Step{}
		}
		l.noteWrite(p, sharesWritten)
		set := l.halfStep(mad.MethodSet, p, half)
		set.half = l.wantHalf(p, pt.Info, half)
		return set
	}
	if a.first != 0 {
		return l.halfStep(mad.MethodGet, p, mad.VLArbHalf(bits.TrailingZeros8(a.first)))
	}
	l.queue.MarkPort(work.Set, p)
	return Step{}
}

// halfStep returns a request for half of an arbitration table.
func (l *Lanes) halfStep(method mad.Method, p topo.PortID, half mad.VLArbHalf) Step {
	return Step{Method: method, Attr: mad.AttrVLArbitration, Mod: mad.VLArbitrationMod(half, l.topo.ExternalNum(p))}
}

// gotShares takes half of an arbitration table.
func (l *Lanes) gotShares(r *work.Request, m *mad.MAD, status mad.Status) {
	p := r.Ref.Port()
	a := l.sharesOf(p)
	var got mad.VLArbitration
	if mad.Decode(m.Data(), &got) != nil || !l.arbitrates(p) || a == nil {
		return
	}
	half := mad.VLArbHalf(r.Mod >> 16)
	bit := uint8(1) << half
	pi := l.fabric.Port(p).Info
	room, from := roomOf(pi, half)
	want := l.wantHalf(p, pi, half)
	n := min(int(room-min(room, from)), len(want.Entry))
	right := true
	for i := range want.Entry[:n] {
		right = right && got.Entry[i] == want.Entry[i]
	}
	a.differ &^= bit
	l.fabric.Show(p)
	proof := r.Method == mad.MethodGet && a.right == allHalves && a.first == bit
	if proof {
		a.first = 0
	}
	switch {
	case status != mad.StatusOK:
		l.fabric.Refuse(*r, status.String())
		a.refused |= bit
		a.right |= bit // until there is something new to be written
	case proof && !right && a.lost:
		l.fabric.Refuse(*r, "the table read is not the one that was set")
		a.lost = false
		a.refused |= bit
	case proof && !right:
		*a = shareState{want: a.want, lost: true}
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
		l.fabric.Refuse(*r, "the table answered is not the one that was set")
		a.refused |= bit
		a.right |= bit
	}
	l.queue.MarkPort(work.VLArb, p)
}

// AuditShares reads half of an arbitration table in the background, another each turn.
func (l *Lanes) AuditShares(p topo.PortID, turn int) Step {
	if !l.arbitrates(p) || !l.sharesDone(p) || l.queue.IsAsked(work.VLArb, p) || l.nodeOf(p).IsSilent {
		return Step{}
	}
	half := mad.VLArbLow0 + mad.VLArbHalf(turn%4)
	if room, from := roomOf(l.fabric.Port(p).Info, half); room <= from {
		return Step{}
	}
	get := l.halfStep(mad.MethodGet, p, half)
	get.Audit = true
	return get
}
