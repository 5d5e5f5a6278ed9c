package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/judge"
)

// setTopology puts another declared topology, or another mode, into force. It looks
// at the whole fabric: persons do that, not devices.
func (c *Core) setTopology(in *TopologySet) {
	l := &c.law
	switch {
	case in.By == "":
		c.event(&TopologyRefused{Reason: "a declared topology comes from somebody: say who"})
		return
	case in.Spec == nil:
		c.repeal(in.By)
		return
	}
	began := c.state != ib.SMDiscovering
	if in.Mode == topospec.Enforce && began {
		if why := c.foretell(in); why != "" {
			c.event(&TopologyRefused{Reason: why, Revision: in.Spec.Revision().Number})
			return
		}
	}
	l.wanted, l.by, l.back, l.guard = in.Mode, in.By, in.Back, nil
	l.silent = l.judge == nil || l.judge.Spec().Digest() != in.Spec.Digest()
	if l.silent {
		l.since, l.rows.stale = c.now, true
	}
	switch {
	case l.judge == nil:
		l.judge = judge.New(in.Spec, topospec.Observe, c.lawGuarded)
		c.feed(l.judge)
	case l.silent:
		was := l.judge.Spec()
		l.judge.Activate(in.Spec)
		c.keysFollow(was, in.Spec, in.Mode)
	}
	l.trial = in.Mode == topospec.Enforce && !began
	c.lawChanges()
	l.silent = false
	c.setLawMode(in.Mode, in.By)
	c.judgedOwn(judge.Ruling{}, c.ownSwitch())
	c.retell()
	c.lawEverywhere()
	c.judgeRetired()
	c.saveMode()
	spec := l.judge.Spec()
	c.event(&TopologyInForce{Revision: spec.Revision().Number, Digest: spec.Digest(), Mode: l.judge.Mode(), By: in.By, Verified: l.judge.Verified(), Expected: spec.NumActive()})
}

// setLawMode changes the mode, if the judge allows it.
func (c *Core) setLawMode(m topospec.Mode, by string) bool {
	l, was := &c.law, c.law.judge.Mode()
	if l.trial && m == topospec.Enforce && was != m {
		l.judge = judge.New(l.judge.Spec(), m, c.lawGuarded)
		c.feed(l.judge)
	} else if err := l.judge.SetMode(m, by); err != nil {
		c.event(&TopologyRefused{Reason: err.Error(), Revision: l.judge.Spec().Revision().Number})
		return false
	}
	if was != m {
		l.since = c.now
	}
	l.rows.stale = true
	c.lawChanges()
	return true
}

// repeal ends the comparison, and releases the ports that it switched off.
func (c *Core) repeal(by string) {
	l := &c.law
	if l.judge == nil {
		return
	}
	for at := range l.rows.at {
		c.lawSolved(at)
	}
	for _, row := range l.rows.list() {
		if row.State == judge.StateDisabled {
			c.reopenLater(row.Place)
		}
	}
	clear(l.rows.at)
	c.faults.Clear(fault.Key{Kind: fault.TopologyProtected, GUID: c.cfg.PortGUID})
	l.judge, l.guard, l.trial, l.rows.stale = nil, nil, false, true
	c.lawEverywhere()
	c.saveMode()
	c.event(&TopologyInForce{By: by})
}

// lawEverywhere looks again at what the declared topology does to each port.
func (c *Core) lawEverywhere() {
	for p := range c.ports {
		id := topo.PortID(p)
		if c.nodes[c.ports[p].node].alive && c.topo.IsExternal(id) && c.ports[p].known {
			c.setLaw(id)
			if c.topo.Peer(id) == topo.None && linkUp(&c.ports[p].info) {
				c.q.MarkPort(work.Probe, id)
			}
		}
	}
	c.touchAll()
	c.disturb()
}

// ownSwitch returns the switch that we are attached to, or are.
func (c *Core) ownSwitch() ib.GUID {
	if c.root == topo.None {
		return 0
	}
	if c.topo.Node(c.root).Type == ib.NodeSwitch {
		return c.topo.NodeGUID(c.root)
	}
	if peer := c.topo.Peer(c.rootPort); peer != topo.None {
		return c.topo.NodeGUID(c.ports[peer].node)
	}
	return 0
}

// feed passes all that is known of the fabric to a judge.
func (c *Core) feed(j *judge.Judge) {
	if c.root == topo.None {
		return
	}
	if c.topo.Node(c.root).Type == ib.NodeSwitch {
		j.AttachSwitch(c.topo.NodeGUID(c.root))
	} else if peer := c.topo.Peer(c.rootPort); peer != topo.None && c.topo.IsExternal(peer) {
		c.law.own = c.factBehind(peer, c.rootPort)
		j.Attach(c.law.own)
	}
	for p := range c.ports {
		at := topo.PortID(p)
		if c.nodes[c.ports[p].node].alive && c.topo.IsExternal(at) && c.topo.Peer(at) != topo.None {
			j.Link(c.factBehind(at, c.topo.Peer(at)))
		}
	}
}

// foretell says why a declared topology is not to be enforced on the fabric as it is
// now, "" if it may be.
func (c *Core) foretell(in *TopologySet) string {
	spec := in.Spec
	j := judge.New(spec, topospec.Observe, nil)
	own := c.law.own
	c.feed(j)
	c.law.own = own
	wrong := make(map[ib.Place]bool)
	for _, ch := range j.Changes() {
		wrong[ch.At] = ch.Ruling.Would == judge.Disable
	}
	n := 0
	for _, is := range wrong {
		if is {
			n++
		}
	}
	limit := spec.Revision().Policy.Flips(spec.NumActive())
	if c.law.on() {
		now := c.law.judge.Spec()
		limit = min(limit, now.Revision().Policy.Flips(now.NumActive()))
	}
	return lawRefuses(j, n, limit, in.Back && c.law.enforces())
}

// lawRefuses says why a specification is not to be enforced: it guards against one
// that is empty, cut off, or of another fabric (threat T132). One that was enforced
// before is none of these (back).
func lawRefuses(j *judge.Judge, wrong, limit int, back bool) string {
	rev := j.Spec().Revision()
	switch {
	case back && j.Rooted() && wrong <= limit:
		return ""
	case !j.Rooted():
		return fmt.Sprintf("revision %d is not enforced: it does not have the subnet manager where it is, so nothing could be verified; is it the topology of this fabric?", rev.Number)
	case !rev.Policy.Enough(j.Verified(), j.Spec().NumActive()):
		return fmt.Sprintf("revision %d is not enforced: %d of its %d links are verified (%v), %v are needed; is it the topology of this fabric?",
			rev.Number, j.Verified(), j.Spec().NumActive(), j.Score(), rev.Policy.Score())
	case wrong > 0 && !rev.Policy.Enough(j.Verified(), j.Verified()+wrong):
		return fmt.Sprintf("revision %d is not enforced: %d ports differ from it and only %d of the links that are up are in it; is it whole?", rev.Number, wrong, j.Verified())
	case wrong > limit:
		return fmt.Sprintf("revision %d is not enforced: it would switch off %d ports, at most %d are allowed at once; correct the topology, or raise max_flips in its policy", rev.Number, wrong, limit)
	default:
		return ""
	}
}

// lawFalls decides, once discovery has ended and before anything is written, whether enforcement begins. It reports whether
// it does not begin, so that more has to be discovered.
func (c *Core) lawFalls() bool {
	l := &c.law
	if !l.trial || !l.enforces() || len(l.asking) > 0 || !l.judge.Rooted() && c.ownSwitch() == 0 {
		return false
	}
	l.trial = false
	why := lawRefuses(l.judge, l.rows.wrong(), l.limit(), l.back)
	if why == "" {
		c.enforced()
		return false
	}
	c.problem(fault.Key{Kind: fault.TopologyRefused}, &TopologyRefused{Reason: why, Revision: l.judge.Spec().Revision().Number})
	c.setLawMode(topospec.Warn, "")
	c.saveMode()
	c.lawEverywhere()
	return true
}

func (l *law) limit() int { return l.judge.Spec().Revision().Policy.Flips(l.judge.Spec().NumActive()) }

// enforced reports and saves the ports that are switched off from now on.
func (c *Core) enforced() {
	l := &c.law
	c.faults.Clear(fault.Key{Kind: fault.TopologyRefused})
	for _, row := range l.rows.list() {
		if row.State == judge.StateDisabled {
			c.saveLaw(row.Place)
		}
	}
	c.retell()
	c.saveMode()
}

// lawElects reports whether the declared topology allows this SM to become master. Where it is enforced and we are not at
// our declared place, a working fabric is not changed: an operator is needed.
func (c *Core) lawElects() bool {
	return !c.law.enforces() || c.law.judge.Rooted() && !(c.law.trial && len(c.law.asking) > 0)
}

// lawPromotes puts enforcement into force that was asked for and refused, once the
// fabric allows it. It reports whether there is something to do for that.
func (c *Core) lawPromotes() bool {
	l := &c.law
	if !l.on() || l.wanted != topospec.Enforce || l.enforces() || l.judge.Verified() == l.rows.tried || l.rows.wrong() > l.limit() {
		return false
	}
	l.rows.tried = l.judge.Verified()
	if lawRefuses(l.judge, l.rows.wrong(), l.limit(), false) != "" {
		return false
	}
	by := l.by
	if by == "" {
		by = "configuration"
	}
	if !c.setLawMode(topospec.Enforce, by) {
		return false
	}
	c.enforced()
	c.lawEverywhere()
	return true
}

// releaseMarked lets go of a port that an operator takes every mark from.
func (c *Core) releaseMarked(in *HealthMarked) {
	if !c.law.on() {
		return
	}
	if st, v, _ := c.law.judge.At(in.Place); st == judge.StateDisabled || st == judge.StateHeld && v != judge.Held {
		why := in.Reason
		if why == "" {
			why = "released with its marks"
		}
		c.releaseLaw(&TopologyRelease{Place: in.Place, By: "operator", Why: why})
	}
}

// releaseLaw lets go of a port.
func (c *Core) releaseLaw(in *TopologyRelease) {
	if !c.law.on() {
		c.event(&TopologyRefused{Reason: fmt.Sprintf("release %v: no declared topology is in force", in.Place)})
		return
	}
	if err := c.law.judge.Release(in.Place, health.CleanReason(in.By), health.CleanReason(in.Why)); err != nil {
		c.event(&TopologyRefused{Reason: err.Error()})
		return
	}
	c.lawChanges()
}
