package lanes

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// mapState is how far the SL-to-VL tables of a port are right: those of a CA port, or those of a switch port for packets
// that leave by it. A switch port has a table for each input port. They are written from the highest down to 0, and none
// while that of input port 0 is right: if it is, it is made wrong first. The exception is where routes assign each pair its
// own table, as then all are read anyway. So when the first and the last of them are right, the writing was not
// interrupted. This holds for a subnet manager, which remembers nothing, and for the switch, which loses the highest when
// it loses any.
type mapState struct {
	phase   mapPhase
	in      uint8  // input port looked at, for switches programmed pair by pair
	last    bool   // the table of input port 0 is wrong, and to be written in the end
	probe   bool   // the table of input port 0 is right, and that of the highest decides
	all     bool   // those of no input port stand for others: some may be from before a reboot, some from after
	begun   bool   // the table of input port 0 is unfinished
	check   bool   // all were written, and the highest shows whether they were lost in the meantime
	lost    bool   // they were, once
	refused bool   // they differ from the wanted ones, and are left alone
	stale   bool   // a request is out from before the lanes changed; its answer says nothing
	want    laneID // what they are made for
}

type mapPhase uint8

const (
	mapOpen   mapPhase = iota
	mapDiffer          // the table of the present input port is to be written
	mapBegin           // the table of input port 0 is to be made unfinished
	mapDone
)

// unfinished returns the table for input port 0 while others are written and it would say that all of them are right. It
// has no lane for any service level: no manager wants that, and no switch powers on with it. It applies only to packets
// that the switch itself sends, and not to its SMPs.
func unfinished() (vl [16]ib.VL) {
	for sl := range vl {
		vl[sl] = ib.VL15
	}
	return vl
}

func (s *mapState) done() bool { return s.phase == mapDone }

// nextMap reads and writes the SL-to-VL tables of a port.
func (l *Lanes) nextMap(p topo.PortID) Step {
	pt, s := l.fabric.Port(p), &l.maps[p]
	if !pt.isSeen() || !l.has(p) {
		return Step{}
	}
	if l.topo.IsExternal(p) && !l.fabric.Node(pt.Node).IsRead {
		return Step{}
	}
	if want := l.wantedFor(p); s.want != want {
		l.reread(p)
		s.want = want
		s.all = s.all || l.mixed(want)
	}
	switch {
	case s.done():
		return Step{}
	case s.want == lanesAsFound:
		s.phase = mapDone
		l.queue.MarkPort(work.Set, p)
		return Step{}
	}
	read := l.topo.IsExternal(p) || !pt.IsFresh
	if l.wildcard(p) && s.all {
		read = false // one Set is less than to read all
	}
	if s.phase == mapOpen && read {
		return l.getMap(p)
	}
	if !l.fabric.MayWrite() {
		return Step{}
	}
	l.noteWrite(p, mapsWritten)
	set := Step{Method: mad.MethodSet, Attr: mad.AttrSLtoVLMappingTable, Mod: l.mapMod(p, true)}
	if set.lanes.VL = l.lanesOf(p, ib.PortNum(s.in)); s.phase == mapBegin {
		set.lanes.VL = unfinished()
	}
	return set
}

// getMap reads the table of the present input port.
func (l *Lanes) getMap(p topo.PortID) Step {
	return Step{Method: mad.MethodGet, Attr: mad.AttrSLtoVLMappingTable, Mod: l.mapMod(p, false)}
}

// reread has the SL-to-VL tables of a port read again from the first on, as their content or the wanted content changed. A
// pending answer is then ignored.
func (l *Lanes) reread(p topo.PortID) {
	s := &l.maps[p]
	l.fabric.Show(p)
	*s = mapState{all: s.all || s.want == lanesByPort, stale: s.stale || l.queue.IsAsked(work.SLtoVL, p)}
}

// wildcard reports whether the tables of a switch port for all input ports are the same and are programmed with one Set.
func (l *Lanes) wildcard(p topo.PortID) bool {
	return l.topo.IsExternal(p) && l.nodeOf(p).Info.OptimizedSLtoVLMappingProgramming&1 != 0 && l.maps[p].want != lanesByPort
}

// nodeOf describes the node of a port.
func (l *Lanes) nodeOf(p topo.PortID) Node { return l.fabric.Node(l.fabric.Port(p).Node) }

// lastOf returns the number of ports of the node of a port, which is that of the highest.
func (l *Lanes) lastOf(p topo.PortID) uint8 { return l.topo.Node(l.fabric.Port(p).Node).NumPorts }

func (l *Lanes) mapMod(p topo.PortID, write bool) uint32 {
	num := l.fabric.Port(p).Num
	switch {
	case !l.topo.IsExternal(p):
		return 0
	case l.wildcard(p) && write:
		return mad.SLtoVLAllInputs | uint32(num)
	default:
		return mad.SLtoVLMod(ib.PortNum(l.maps[p].in), num)
	}
}

func (l *Lanes) gotMap(r *work.Request, m *mad.MAD, status mad.Status) {
	p := r.Ref.Port()
	s := &l.maps[p]
	var got mad.SLtoVLMappingTable
	if mad.Decode(m.Data(), &got) != nil || !l.has(p) {
		return
	}
	if r.Audit {
		l.auditedMap(p, r, &got, status)
		return
	}
	if s.stale {
		s.stale = false
		l.queue.MarkPort(work.SLtoVL, p)
		return
	}
	l.fabric.Show(p)
	right := got.VL == l.lanesOf(p, ib.PortNum(s.in))
	pairs := l.topo.IsExternal(p) && !l.wildcard(p)
	if pairs && s.in == 0 {
		s.begun = got.VL == unfinished()
	}
	switch {
	case pairs && s.phase == mapBegin:
		s.begin(l.lastOf(p))
	case status != mad.StatusOK:
		// It says it has tables and does not show them, or does not take them:
		// leave them alone until there is something new to be written.
		l.fabric.Refuse(*r, status.String())
		s.giveUp()
	case r.Method == mad.MethodSet && !right:
		l.fabric.Refuse(*r, "the table answered is not the one that was set")
		s.giveUp()
	case s.check && s.lost && !right:
		l.fabric.Refuse(*r, "the table read is not the one that was set")
		s.phase, s.refused = mapDone, true
	case !pairs:
		if s.phase = mapDone; !right {
			s.phase = mapDiffer
		}
	default:
		l.nextInput(p, right)
	}
	if s.done() {
		s.all = false
		l.queue.MarkPort(work.Set, p)
		return
	}
	l.queue.MarkPort(work.SLtoVL, p)
}

// giveUp leaves tables alone that a device does not take, but that of input port
// 0 not unfinished.
func (s *mapState) giveUp() {
	s.phase, s.refused = mapDone, true
	if s.begun && s.in != 0 {
		s.in, s.last, s.probe, s.begun, s.phase = 0, true, false, false, mapDiffer
	}
}

// begin follows the attempt to make the table of input port 0 unfinished. Others are written also if the switch did not take
// that.
func (s *mapState) begin(last uint8) { s.in, s.last, s.phase = last, true, mapOpen }

// nextInput decides what follows when the present table of a switch port was
// found right or wrong, or was written.
func (l *Lanes) nextInput(p topo.PortID, right bool) {
	s := &l.maps[p]
	reset := l.nodeOf(p).IsReset && !s.all
	switch {
	case s.in == 0 && s.last:
		s.in, s.last, s.check, s.phase = l.lastOf(p), false, true, mapOpen
	case (s.probe || s.check) && right:
		s.phase, s.probe, s.check, s.lost = mapDone, false, false, false
	case s.check: // the switch rebooted in the meantime
		s.in, s.phase, s.check, s.lost, s.all = 0, mapOpen, false, true, true
	case s.in != 0 && !right && !s.last && s.want != lanesByPort:
		s.in, s.phase, s.probe, s.all = 0, mapBegin, false, true
	case s.in == 0 && right && l.sampled(p):
		s.in, s.probe = l.lastOf(p), true
	case s.in == 0:
		s.in, s.last, s.phase = l.lastOf(p), !right, mapOpen
		if reset && !right {
			s.phase = mapDiffer // as that one, so are all
		}
	case !right:
		s.phase = mapDiffer
	case s.in > 1:
		if s.in--; !reset || !s.last {
			s.phase = mapOpen
		}
	case s.last:
		s.in, s.phase = 0, mapDiffer
	default:
		s.phase = mapDone
	}
}

// sampled reports whether the first and the last table of a switch port stand for those of the other input ports when they
// are right. On a switch that came without configuration they are all the same, and on others the audit reads them. The
// exception is where freedom from credit loops depends on them.
func (l *Lanes) sampled(p topo.PortID) bool {
	s := &l.maps[p]
	return s.want != lanesByPort && !s.all && (l.nodeOf(p).IsReset || !l.layered)
}

// AuditMaps reads one of a port's SL-to-VL tables in the background, another each time.
func (l *Lanes) AuditMaps(p topo.PortID) Step {
	s := &l.maps[p]
	if !s.done() || s.want == lanesAsFound || !l.has(p) || l.queue.IsAsked(work.SLtoVL, p) || l.nodeOf(p).IsSilent {
		return Step{}
	}
	if s.in++; s.in > l.lastOf(p) || !l.topo.IsExternal(p) {
		s.in = 0
	}
	get := l.getMap(p)
	get.Audit = true
	return get
}

// auditedMap takes what the audit read. A table that changed has all of the port's looked at.
func (l *Lanes) auditedMap(p topo.PortID, r *work.Request, got *mad.SLtoVLMappingTable, status mad.Status) {
	s := &l.maps[p]
	if status == mad.StatusOK && s.done() && r.Mod == l.mapMod(p, false) && got.VL != l.lanesOf(p, ib.PortNum(s.in)) {
		s.phase, s.last, s.all = mapDiffer, false, true
		s.refused = false
		l.fabric.Show(p)
		pairs := l.topo.IsExternal(p) && !l.wildcard(p)
		if !pairs || s.want == lanesByPort {
			s.in = 0
		}
		if pairs {
			l.nextInput(p, false)
		}
		l.queue.MarkPort(work.SLtoVL, p)
	}
}

// An adapter whose link came up without configuration gets its SL-to-VL table while
// the link is in Init. If it is reset after that and before the link is Armed nothing
// shows it: the link is in Init again, and PortInfo is written as it would have been.
// From Armed on a reset shows. So the table is read once in the background when the
// link has got there; the tables of switches are proven otherwise, see package confirm.

// ProveArmed has the table of an adapter read in the background whose link was just armed. was is the state before that.
func (l *Lanes) ProveArmed(p topo.PortID, was ib.PortState) {
	pt, s := l.fabric.Port(p), &l.maps[p]
	if !pt.IsFresh || pt.Num == 0 || !l.topo.IsEndPort(p) || was >= ib.PortArmed || pt.Info.PortState < ib.PortArmed {
		return
	}
	if s.done() && s.want != lanesAsFound && l.has(p) {
		l.fabric.AuditLater(p)
	}
}
