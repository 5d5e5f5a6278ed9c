package sm

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// settle does what follows when work has come to rest. It reports whether there
// is new work.
func (c *Core) settle() bool {
	if c.state == ib.SMDiscovering && c.quiet() && !c.mayShowMore() && c.root != topo.None && c.own() != topo.None && c.ports[c.own()].known {
		if c.law.Falls() || c.law.MayElect() && (c.readUnread() || c.elect()) {
			return true
		}
	}
	if c.out.Job == nil {
		c.out.Job = c.routeJob()
	}
	if c.lanes.Release() {
		return true
	}
	if c.forwarding() && len(c.routing.waiting) > 0 {
		waiting := c.routing.waiting
		c.routing.waiting = nil
		for _, x := range waiting {
			c.q.Mark(x)
		}
		return true
	}
	if c.idle() && c.unsettled && c.writing() && !c.alone() {
		if c.law.Promotes() {
			return true
		}
		c.tellSettled()
	}
	c.publish()
	return false
}

// quiet reports whether the only requests left are to devices that do not answer.
func (c *Core) quiet() bool {
	return c.q.IsEmpty() && c.wire.Fresh() == 0 && len(c.level) == 0 && !c.subtrees.IsPending()
}

// mayShowMore reports whether an answer is late which may show a node, a LID or a route of a fabric that had a master
// before, and not even its quick tries are used up. A master without that answer would assign LIDs that are in use, and
// write routes that leave hosts out. Where no link was ever configured there is nothing to lose.
func (c *Core) mayShowMore() bool {
	if !c.configured && c.looked {
		return false
	}
	awaited := func(x work.Ref, n topo.NodeID) bool {
		tries := c.cfg.Tries
		if n == topo.None {
			tries = c.mkeys.ProbeTries(x)
		}
		return (x.Class.Discovers() || x.Class == work.LFT) && c.failures[x].tries < tries
	}
	return c.wire.AnyOut(func(r *work.Request) bool { return awaited(r.Ref, r.Node) && !c.delaysThrottled(r) }) ||
		c.timers.AnyNear(func(x work.Ref) bool { return awaited(x, topo.None) })
}

// idle reports whether the only work left waits for a pause to pass.
func (c *Core) idle() bool {
	return c.q.IsEmpty() && c.wire.Out() == 0 && len(c.level) == 0 && !c.subtrees.IsPending() && !c.timers.HasNear() && !c.routing.need && !c.routing.running &&
		c.members.IsReady()
}

func (c *Core) tellSettled() {
	c.unsettled, c.viewDue = false, true
	c.mkeys.SetSettled()
	c.tellMute()
	e := &Settled{
		Revision: c.members.Revision(), Since: c.now.Sub(c.settledAt),
		SMPs: c.wire.All() - c.settledBy.all, Sets: c.wire.Sets() - c.settledBy.sets,
		Cause: c.tally.work.why.String(), Took: c.now.Sub(c.tally.work.at), Work: c.wire.All() - c.tally.work.all,
		Repeated: c.tally.Repeated - c.tally.work.repeated,
	}
	c.lanes.Settle()
	c.settledAt = c.now
	c.settledBy.all, c.settledBy.sets = c.wire.All(), c.wire.Sets()
	c.event(e)
}

// becomeMaster begins to configure the fabric that was discovered. LIDs are assigned all at once: those that were saved,
// then those found on ports, then new ones.
func (c *Core) becomeMaster() {
	c.state = ib.SMMaster
	c.election.claim, c.election.stubborn, c.election.asked = false, false, false
	c.actCount++
	c.tally.Masterships++
	c.event(&StateChanged{State: c.state, Reason: "discovery is complete and no subnet manager of higher rank is master"})
	f := c.topo.Freeze()
	ports := f.EndPorts()
	c.adoptRoutes()
	if c.election.foreign {
		c.election.foreign = false
		c.lids.Adopt(ports)
	}
	c.out.Save = slices.Grow(c.out.Save, max(0, len(ports)-c.lids.Owners())) // one for each new LID
	c.lids.SettleAll(ports)
	c.mkeys.SetMaster()
	c.routing.need, c.routing.since = true, c.now
	for _, id := range f.Switches() {
		c.lfts.Compare(id)
	}
	c.touchAll()
}

// touchAll looks at every port again. Only great changes may do that.
func (c *Core) touchAll() {
	for p := range c.ports {
		pt := &c.ports[p]
		if c.nodes[pt.node].alive && (pt.seen() || c.topo.GUIDOf(topo.PortID(p)) != 0) {
			c.touch(topo.PortID(p))
		}
	}
}

// disturb says that the fabric is not settled any longer.
func (c *Core) disturb() {
	c.viewDue = true
	if !c.unsettled {
		c.unsettled, c.disturbed = true, true
		c.noteWork()
	}
}

// publish makes a view when one is due. That the fabric is settled no longer is
// shown at once.
func (c *Core) publish() {
	c.viewDue = c.viewDue || len(c.out.Events) > 0
	if !c.viewDue || c.out.View != nil {
		return
	}
	switch early := c.unsettled && c.now.Before(c.viewAt.Add(c.cfg.ViewEvery)); {
	case early && !c.disturbed:
	case early && c.wire.Out() > 0 && c.shown != nil && c.shown.Settled:
		c.publishDisturbed()
	default:
		c.publishAll()
	}
}

// publishDisturbed publishes the last view again, at very low cost, as one that is no longer settled. Requests are out, so
// readers must not take its tables as current.
func (c *Core) publishDisturbed() {
	c.disturbed = false
	v := *c.shown
	v.Time, v.Repeats, v.Settled, v.Pending = c.now, true, false, c.wire.Out()
	v.SMPs, v.Progress, v.Counters = c.smps(), c.progress(), c.tally.Counters
	v.Faults, v.Problems = c.faults.Snapshot()
	v.Violations = c.reports.Snapshot()
	c.out.View, c.shown = &v, &v
}

func (c *Core) publishAll() {
	c.viewDue, c.disturbed, c.viewAt = false, false, c.now
	v := &View{
		Time: c.now, Fabric: c.topo.Freeze(), State: c.state, GUID: c.cfg.PortGUID, LID: c.smLID(),
		Priority: c.priority(), ActCount: c.actCount, Others: c.otherSMs(), Managers: c.managers(), Settled: !c.unsettled && c.writing(), Pending: c.wire.Out(),
		Revision: c.members.Revision(), Intent: c.members.HasIntent(), SMPs: c.smps(), Dropped: c.dropped,
		Progress: c.progress(), Counters: c.tally.Counters, Tables: c.routing.tables, pkeys: c.pkeys.Show(),
	}
	v.Faults, v.Problems = c.faults.Snapshot()
	c.showDevices(v)
	v.MKeys, v.mkeys = c.mkeys.Show()
	v.aliases, v.Health = c.aliases.Show(), c.health.States()
	v.Topology, v.Violations = c.law.Show(), c.reports.Snapshot()
	v.Refusing = c.refusing()
	if c.writing() {
		v.Multicast = c.groups.View()
	}
	c.out.View, c.shown = v, v
}

func (c *Core) smps() []SMPCount {
	sent := c.wire.Sent()
	out := make([]SMPCount, 0, len(sent))
	for k, n := range sent {
		out = append(out, SMPCount{Method: k.Method, Attr: k.Attr, Sent: n})
	}
	slices.SortFunc(out, func(a, b SMPCount) int {
		return cmp.Or(cmp.Compare(a.Attr, b.Attr), cmp.Compare(a.Method, b.Method))
	})
	return out
}
