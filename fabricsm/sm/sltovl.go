package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// slvlState is how far the SL-to-VL tables of a port are right: those of a CA port, or those of a switch port for packets
// that leave by it. A switch port has a table for each input port. They are written from the highest down to 0, and none
// while that of input port 0 is right: if it is, it is made wrong first. The exception is where routes give each pair its
// own table, as then all are read anyway. So when the first and the last of them are right, the writing was not
// interrupted. This holds for a subnet manager, which remembers nothing, and for the switch, which loses the highest when
// it loses any.
type slvlState struct {
	phase   slvlPhase
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

type slvlPhase uint8

const (
	slvlOpen   slvlPhase = iota
	slvlDiffer           // the table of the present input port is to be written
	slvlBegin            // the table of input port 0 is to be made unfinished
	slvlDone
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

func (s slvlState) done() bool { return s.phase == slvlDone }

// workSLtoVL reads and writes the SL-to-VL tables of a port.
func (c *Core) workSLtoVL(p topo.PortID) {
	pt := &c.ports[p]
	if !pt.seen() || !c.hasLanes(p) {
		return
	}
	if c.topo.IsExternal(p) && !c.nodes[pt.node].infoKnown {
		return
	}
	if want := c.lanesFor(p); pt.slvl.want != want {
		c.anewSLtoVL(p)
		pt.slvl.want = want
		pt.slvl.all = pt.slvl.all || c.mixed(want)
	}
	switch {
	case pt.slvl.done():
		return
	case pt.slvl.want == lanesAsFound:
		pt.slvl.phase = slvlDone
		c.q.MarkPort(work.Set, p)
		return
	}
	x := work.OnPort(work.SLtoVL, p)
	read := c.topo.IsExternal(p) || !pt.fresh
	if c.wildcard(p) && pt.slvl.all {
		read = false // one Set is less than to read all
	}
	if pt.slvl.phase == slvlOpen && read {
		c.ask(x, pt.node, mad.MethodGet, mad.AttrSLtoVLMappingTable, c.slvlMod(p, false))
		return
	}
	if !c.writing() {
		return
	}
	c.wroteLanes(p, mapsWritten)
	m := c.ask(x, pt.node, mad.MethodSet, mad.AttrSLtoVLMappingTable, c.slvlMod(p, true))
	table := mad.SLtoVLMappingTable{VL: c.lanesOf(p, ib.PortNum(pt.slvl.in))}
	if pt.slvl.phase == slvlBegin {
		table.VL = unfinished()
	}
	c.encode(mad.Encode(m.Data(), &table))
}

// anewSLtoVL has the tables of a port read again from the first on, as their content or the wanted content changed. A
// pending answer is then ignored.
func (c *Core) anewSLtoVL(p topo.PortID) {
	s := &c.ports[p].slvl
	c.showPort(p)
	*s = slvlState{all: s.all || s.want == lanesByPort, stale: s.stale || c.q.IsAsked(work.SLtoVL, p)}
}

// wildcard reports whether the tables of a switch port for all input ports are the same and are programmed with one Set.
func (c *Core) wildcard(p topo.PortID) bool {
	return c.topo.IsExternal(p) && c.nodes[c.ports[p].node].info.OptimizedSLtoVLMappingProgramming&1 != 0 && c.ports[p].slvl.want != lanesByPort
}

func (c *Core) slvlMod(p topo.PortID, write bool) uint32 {
	pt := &c.ports[p]
	switch {
	case !c.topo.IsExternal(p):
		return 0
	case c.wildcard(p) && write:
		return mad.SLtoVLAllInputs | uint32(pt.num)
	default:
		return mad.SLtoVLMod(ib.PortNum(pt.slvl.in), pt.num)
	}
}

func (c *Core) gotSLtoVL(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	pt := &c.ports[p]
	var got mad.SLtoVLMappingTable
	if mad.Decode(m.Data(), &got) != nil || !c.hasLanes(p) {
		return
	}
	if r.Audit {
		c.auditedSLtoVL(p, r, &got, status)
		return
	}
	if pt.slvl.stale {
		pt.slvl.stale = false
		c.q.MarkPort(work.SLtoVL, p)
		return
	}
	c.showPort(p)
	right := got.VL == c.lanesOf(p, ib.PortNum(pt.slvl.in))
	pairs := c.topo.IsExternal(p) && !c.wildcard(p)
	if pairs && pt.slvl.in == 0 {
		pt.slvl.begun = got.VL == unfinished()
	}
	switch {
	case pairs && pt.slvl.phase == slvlBegin:
		c.begunSLtoVL(p)
	case status != mad.StatusOK:
		// It says it has tables and does not show them, or does not take them:
		// leave them alone until there is something new to be written.
		c.refused(r, status.String())
		pt.slvl.giveUp()
	case r.Method == mad.MethodSet && !right:
		c.refused(r, "the table answered is not the one that was set")
		pt.slvl.giveUp()
	case pt.slvl.check && pt.slvl.lost && !right:
		c.refused(r, "the table read is not the one that was set")
		pt.slvl.phase, pt.slvl.refused = slvlDone, true
	case !pairs:
		if pt.slvl.phase = slvlDone; !right {
			pt.slvl.phase = slvlDiffer
		}
	default:
		c.nextSLtoVL(p, right)
	}
	if pt.slvl.done() {
		pt.slvl.all = false
		c.q.MarkPort(work.Set, p)
		return
	}
	c.q.MarkPort(work.SLtoVL, p)
}

// giveUp leaves tables alone that a device does not take, but that of input port
// 0 not unfinished.
func (s *slvlState) giveUp() {
	s.phase, s.refused = slvlDone, true
	if s.begun && s.in != 0 {
		s.in, s.last, s.probe, s.begun, s.phase = 0, true, false, false, slvlDiffer
	}
}

// begunSLtoVL follows the attempt to make the table of input port 0 unfinished.
// Others are written also if the switch did not take that.
func (c *Core) begunSLtoVL(p topo.PortID) {
	pt := &c.ports[p]
	pt.slvl.in, pt.slvl.last, pt.slvl.phase = c.topo.Node(pt.node).NumPorts, true, slvlOpen
}

// nextSLtoVL decides what follows when the present table of a switch port was
// found right or wrong, or was written.
func (c *Core) nextSLtoVL(p topo.PortID, right bool) {
	pt := &c.ports[p]
	s := &pt.slvl
	reset := c.nodes[pt.node].reset && !s.all
	switch {
	case s.in == 0 && s.last:
		s.in, s.last, s.check, s.phase = c.topo.Node(pt.node).NumPorts, false, true, slvlOpen
	case (s.probe || s.check) && right:
		s.phase, s.probe, s.check, s.lost = slvlDone, false, false, false
	case s.check: // the switch rebooted in the meantime
		s.in, s.phase, s.check, s.lost, s.all = 0, slvlOpen, false, true, true
	case s.in != 0 && !right && !s.last && s.want != lanesByPort:
		s.in, s.phase, s.probe, s.all = 0, slvlBegin, false, true
	case s.in == 0 && right && c.sampled(p):
		s.in, s.probe = c.topo.Node(pt.node).NumPorts, true
	case s.in == 0:
		s.in, s.last, s.phase = c.topo.Node(pt.node).NumPorts, !right, slvlOpen
		if reset && !right {
			s.phase = slvlDiffer // as that one, so are all
		}
	case !right:
		s.phase = slvlDiffer
	case s.in > 1:
		if s.in--; !reset || !s.last {
			s.phase = slvlOpen
		}
	case s.last:
		s.in, s.phase = 0, slvlDiffer
	default:
		s.phase = slvlDone
	}
}

// sampled reports whether the first and the last table of a switch port stand for those of the other input ports when they
// are right. On a switch that came without configuration they are all the same, and on others the audit reads them. The
// exception is where freedom from credit loops depends on them.
func (c *Core) sampled(p topo.PortID) bool {
	pt := &c.ports[p]
	return pt.slvl.want != lanesByPort && !pt.slvl.all && (c.nodes[pt.node].reset || !c.lanes.layered)
}

// auditSLtoVL reads one of a port's tables in the background, another each time.
func (c *Core) auditSLtoVL(p topo.PortID) {
	pt := &c.ports[p]
	if !pt.slvl.done() || pt.slvl.want == lanesAsFound || !c.hasLanes(p) || c.q.IsAsked(work.SLtoVL, p) || c.nodes[pt.node].silent {
		return
	}
	if pt.slvl.in++; pt.slvl.in > c.topo.Node(pt.node).NumPorts || !c.topo.IsExternal(p) {
		pt.slvl.in = 0
	}
	c.auditing = true
	c.ask(work.OnPort(work.SLtoVL, p), pt.node, mad.MethodGet, mad.AttrSLtoVLMappingTable, c.slvlMod(p, false))
	c.auditing = false
}

// auditedSLtoVL takes what the audit read. A table that changed has all of the
// port's looked at.
func (c *Core) auditedSLtoVL(p topo.PortID, r *work.Request, got *mad.SLtoVLMappingTable, status mad.Status) {
	pt := &c.ports[p]
	if status == mad.StatusOK && pt.slvl.done() && r.Mod == c.slvlMod(p, false) && got.VL != c.lanesOf(p, ib.PortNum(pt.slvl.in)) {
		pt.slvl.phase, pt.slvl.last, pt.slvl.all = slvlDiffer, false, true
		pt.slvl.refused = false
		c.showPort(p)
		pairs := c.topo.IsExternal(p) && !c.wildcard(p)
		if !pairs || pt.slvl.want == lanesByPort {
			pt.slvl.in = 0
		}
		if pairs {
			c.nextSLtoVL(p, false)
		}
		c.q.MarkPort(work.SLtoVL, p)
	}
}
