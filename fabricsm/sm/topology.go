package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/judge"
)

// TopologyConfig is the declared topology that a Subnet Manager starts with.
type TopologyConfig struct {
	// Spec is what the fabric is compared with. Without one nothing is.
	Spec *topospec.Spec
	// Mode is what follows from a difference. Enforcement that was not in force
	// before with this very Spec begins when discovery is complete and before
	// anything is written, and only if its guards allow it.
	Mode topospec.Mode
	// Back: see TopologySet.
	Back bool
}

// TopologySet is the input by which an operator puts another declared topology into force, or another mode; one without
// Spec switches the comparison off. Guards can refuse it: then TopologyRefused says so, and the previous one stays in
// force.
type TopologySet struct {
	Spec *topospec.Spec
	Mode topospec.Mode
	By   string // name of the operator; required
	// Back marks a return to what was enforced before. How many of its links are verified does not count then: lost links
	// are the reason to go back. Two checks still apply: that the Subnet Manager is where it is declared, and how many
	// ports would be switched off.
	Back bool
}

// TopologyRelease is the input by which an operator releases a port that was switched off or is held. The device that is
// seen there next is judged from the beginning.
type TopologyRelease struct {
	Place   ib.Place
	By, Why string // required
}

func (*TopologySet) input()     {}
func (*TopologyRelease) input() {}

// law is the declared topology in force, and what is known by it.
type law struct {
	judge  *judge.Judge // nil: none
	wanted topospec.Mode
	by     string
	since  time.Time  // when the revision, or its mode, was put into force
	own    judge.Seen // our adapter as it answered; GUID 0: a switch, or not known
	trial  bool       // it enforces, and whether it may is decided before the first write
	back   bool       // it was enforced before
	silent bool       // changes are not reported

	asking    map[topo.PortID]*suspicion
	proven    map[topo.PortID]time.Time // links that were as expected, by when that was asked; only while asking
	waverings map[topo.PortID]*wavering
	waiting   map[ib.GUID]bool // switches that are not verified and behind which something is not asked
	guard     *judge.Guard
	guardOf   *topo.Fabric
	todo      []judge.Change
	busy      bool
	letGo     map[ib.Place]bool // were switched off and are to be no longer; true: were read since
	rows      lawRows
}

func (l *law) on() bool { return l.judge != nil }

func (l *law) enforces() bool { return l.judge != nil && l.judge.Mode() == topospec.Enforce }

// startTopology takes the configured topology and the saved state.
func (c *Core) startTopology(facts []Fact) {
	l, cfg := &c.law, &c.cfg.Topology
	l.waiting, l.asking = make(map[ib.GUID]bool), make(map[topo.PortID]*suspicion)
	l.proven, l.letGo = make(map[topo.PortID]time.Time), make(map[ib.Place]bool)
	l.rows.at, l.waverings = make(map[ib.Place]TopologyPort), make(map[topo.PortID]*wavering)
	saved := savedLaw(facts)
	l.wanted, l.back, l.since = cfg.Mode, cfg.Back, c.now
	if cfg.Spec != nil {
		l.judge = judge.New(cfg.Spec, cfg.Mode, c.lawGuarded)
		if !saved.since.IsZero() && saved.mode == lawMark(cfg.Spec, cfg.Mode) {
			l.since = saved.since
		}
		l.trial = cfg.Mode == topospec.Enforce && saved.mode != lawMark(cfg.Spec, topospec.Enforce)
	}
	for _, f := range saved.ports {
		c.restoreLaw(f)
	}
	if l.judge != nil {
		l.judge.Changes() // none is new
	}
}

// foundOwn takes the NodeInfo of the node that we are attached to.
func (c *Core) foundOwn(ni *mad.NodeInfo) {
	l := &c.law
	if !l.on() {
		return
	}
	if ni.NodeType == ib.NodeSwitch {
		l.own = judge.Seen{}
		c.judgedOwn(l.judge.AttachSwitch(ni.NodeGUID), ni.NodeGUID)
		return
	}
	l.own = seenBy(ib.Place{}, ni)
}

// seenBy is what a device says of itself behind a switch port.
func seenBy(at ib.Place, ni *mad.NodeInfo) judge.Seen {
	return judge.Seen{
		At: at, GUID: ni.NodeGUID, Port: ni.LocalPortNum, Type: ni.NodeType, NumPorts: ni.NumPorts,
		PortGUID: ni.PortGUID, SystemImage: ni.SystemImageGUID,
	}
}

// judgedOwn takes the ruling on our own place.
func (c *Core) judgedOwn(r judge.Ruling, sw ib.GUID) {
	k := fault.Key{Kind: fault.TopologyProtected, GUID: c.cfg.PortGUID}
	switch {
	case c.law.judge.Rooted():
		c.faults.Clear(k)
		c.trusted(sw)
	case c.law.judge.Mode() > topospec.Observe:
		c.problem(k, &TopologyRefused{Reason: fmt.Sprintf("the subnet manager is not where the declared topology has it: it is behind %v, %s; nothing can be verified: correct the topology or the cable",
			ib.Place{Switch: sw, Port: c.law.own.At.Port}, c.law.words(r.Expected))})
	}
	c.lawChanges()
}

// allows judges what answered behind port p, first thing: it reports whether it
// may become, or remain, part of the fabric.
func (c *Core) allows(p topo.PortID, r *work.Request, ni *mad.NodeInfo) bool {
	l := &c.law
	if !l.on() {
		return true
	}
	if !c.topo.IsExternal(p) {
		return c.allowsOwn(p, r, ni)
	}
	s := seenBy(c.topo.PlaceOf(p), ni)
	try := l.judge.Try(s)
	switch {
	case c.seriously(&try, &s):
		if !c.convicted(p, r, s) {
			return false
		}
	case c.wavers(p):
		lie := l.asking[p].lie
		if !c.convicted(p, r, lie) {
			return false
		}
		s = lie
	}
	ruling := l.judge.Link(s)
	c.lawChanges()
	c.noteProven(p, r, ruling.Verdict)
	if !c.nodes[c.ports[p].node].alive || c.dark(p) {
		return false
	}
	switch ruling.Action {
	case judge.Admit:
		return true
	case judge.Keep:
		peer := c.topo.Peer(p)
		return c.protected(p) || peer != topo.None && c.topo.NodeGUID(c.ports[peer].node) == ni.NodeGUID && c.ports[peer].num == ni.LocalPortNum
	default:
		return ruling.Verdict == judge.Held && l.judge.IsSteady(s.At)
	}
}

// seriously reports whether a ruling must be seen twice before it is acted on.
func (c *Core) seriously(r *judge.Ruling, s *judge.Seen) bool {
	if !c.law.enforces() || r.Verdict == judge.Verified || r.Verdict == judge.Held || r.Verdict == judge.NotDiscovered {
		return false
	}
	_, was, before := c.law.judge.At(s.At)
	return was != r.Verdict || before != *s
}

// allowsOwn judges what answered at the other end of our own cable.
func (c *Core) allowsOwn(p topo.PortID, r *work.Request, ni *mad.NodeInfo) bool {
	l := &c.law
	if ni.NodeType != ib.NodeSwitch {
		return true // two adapters and no switch: there is no place
	}
	l.own.At = ib.Place{Switch: ni.NodeGUID, Port: ni.LocalPortNum}
	ruling := l.judge.Attach(l.own)
	c.noteProven(p, r, ruling.Verdict)
	c.judgedOwn(ruling, ni.NodeGUID)
	return true
}

// sawBoth reports a verified cable between switches to the judge from its other end, too: each end vouches for the other.
func (c *Core) sawBoth(p, q topo.PortID) {
	if !c.law.on() || !c.topo.IsExternal(p) || !c.topo.IsExternal(q) || !c.law.judge.IsVerified(c.topo.PlaceOf(p)) {
		return
	}
	c.law.judge.Link(c.factBehind(q, p))
	c.lawChanges()
}

// factBehind is what port p shows to the switch port at it is cabled to.
func (c *Core) factBehind(at, p topo.PortID) judge.Seen {
	tn := c.topo.Node(c.ports[p].node)
	s := judge.Seen{
		At: c.topo.PlaceOf(at), GUID: tn.GUID, Port: c.ports[p].num, Type: tn.Type, NumPorts: tn.NumPorts,
		PortGUID: c.topo.GUIDOf(c.topo.EntryPort(p)), SystemImage: tn.SystemImageGUID,
	}
	return s
}

// lawDown records that a switch port has no link, or that the device linked to it is forgotten. A held port stays held
// while its link is up.
func (c *Core) lawDown(p topo.PortID, physically bool) {
	if !c.law.on() || !c.topo.IsExternal(p) {
		return
	}
	if physically {
		c.wavered(p)
		c.acquit(p)
	}
	at := c.topo.PlaceOf(p)
	if st, v, _ := c.law.judge.At(at); !physically && (st == judge.StateHeld && v != judge.Held) {
		return
	}
	c.law.judge.Down(at)
	c.lawChanges()
}

// lawForget takes that a switch is not part of the fabric any more.
func (c *Core) lawForget(sw ib.GUID) {
	l := &c.law
	if !l.on() {
		return
	}
	was := l.silent
	l.silent = true
	l.judge.Forget(sw)
	delete(l.waiting, sw)
	c.lawChanges()
	l.silent = was
}

// lawHolds reports whether nothing is sent through a port, since its switch is not verified.
func (c *Core) lawHolds(p topo.PortID) bool {
	if !c.law.enforces() || !c.topo.IsExternal(p) {
		return false
	}
	sw := c.topo.NodeGUID(c.ports[p].node)
	if c.law.judge.Trusts(sw) {
		return false
	}
	if peer := c.topo.Peer(p); peer != topo.None && c.law.judge.IsSteady(c.topo.PlaceOf(p)) {
		return false
	}
	c.law.waiting[sw] = true
	return true
}

// trusted records that a switch is verified: work that waited for that goes on.
func (c *Core) trusted(sw ib.GUID) {
	id := c.topo.NodeByGUID(sw)
	if id == topo.None {
		return
	}
	if c.law.waiting[sw] {
		delete(c.law.waiting, sw)
		c.topo.EachExternal(id, func(p topo.PortID) {
			if c.topo.IsExternal(p) && c.ports[p].known && linkUp(&c.ports[p].info) {
				c.q.MarkPort(work.Probe, p)
			}
		})
	}
	if c.cfg.MKey.on() {
		c.q.MarkPort(work.Set, c.topo.Node(id).FirstPort)
	}
}

// lawful reports whether a place may get grants: the device there is verified, or was, and only its switch is no longer
// verified.
func (c *Core) lawful(at ib.Place) bool {
	return c.law.on() && (c.law.judge.IsVerified(at) || c.law.judge.IsSteady(at))
}

// mayBelong reports whether the device behind a switch port may be member of a partition, as far as the declared topology
// says.
func (c *Core) mayBelong(sp topo.PortID) bool {
	return !c.law.enforces() || c.lawful(c.topo.PlaceOf(sp))
}

// declared reports whether the declared topology has an end port where it is.
func (c *Core) declared(p topo.PortID) bool {
	if !c.law.on() {
		return false
	}
	if c.topo.Node(c.ports[p].node).Type != ib.NodeSwitch {
		return c.lawful(c.topo.PlaceOf(p))
	}
	if c.law.judge.Trusts(c.topo.NodeGUID(c.ports[p].node)) {
		return true
	}
	up := c.nodes[c.ports[p].node].up
	return up != topo.None && c.lawful(c.topo.PlaceOf(up))
}

// expected reports whether the declared topology has a device behind a port, so that keys of devices that were verified
// there may be tried. Behind our own port that is the switch that was there last.
func (c *Core) expected(p topo.PortID) bool {
	if !c.law.on() {
		return false
	}
	if !c.topo.IsExternal(p) {
		return true
	}
	at := c.topo.PlaceOf(p)
	spec := c.law.judge.Spec()
	link, peer := spec.LinkAt(spec.SlotOf(topospec.EndAt(at)))
	return link != nil && !peer.IsZero() && (link.State == topospec.Active || link.State == topospec.Maintenance) && c.law.judge.Trusts(at.Switch)
}
