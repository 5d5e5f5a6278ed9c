package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portview"
	"portcullis/fabricsm/sm/settling"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// settle does what follows when work has come to rest. It reports whether there
// is new work.
func (c *Core) settle() bool {
	// Where no link was ever configured there is nothing to lose by an answer that is late.
	mayLose := c.configured || !c.looked
	if c.election.State() == ib.SMDiscovering && c.rest.IsQuiet() && !(mayLose && c.rest.MayShowMore()) && c.root != topo.None && c.own() != topo.None && c.ports[c.own()].known {
		if c.law.Falls() || c.law.MayElect() && (unreadFabric{desk{c}}.readEnds() || c.election.Elect()) {
			return true
		}
	}
	if (routingFabric{desk{c}}).readTables() {
		return true
	}
	if c.out.Job == nil {
		c.out.Job = routingFabric{desk{c}}.job()
	}
	if c.lanes.Release() {
		return true
	}
	if c.forwarding() && c.routing.Waiting() > 0 {
		c.routing.Release(&c.q)
		return true
	}
	if !c.tally.IsSettled() && c.rest.IsIdle() && c.writing() && !c.alone() {
		if c.law.Promotes() {
			return true
		}
		c.tellSettled()
	}
	c.publish()
	return false
}

// restFabric is the core as package settling uses it.
type restFabric struct{ desk }

var _ settling.Fabric = restFabric{}

func (f restFabric) IsFinding() bool { return f.unread.IsFinding() || f.subtrees.IsPending() }

func (f restFabric) IsRouting() bool                      { return f.routing.IsDue() }
func (f restFabric) IsReady() bool                        { return f.members.IsReady() }
func (f restFabric) DelaysThrottled(r *work.Request) bool { return f.throttle.Affects(r) }

func (f restFabric) HasTries(x work.Ref, n topo.NodeID) bool {
	tries := f.cfg.Tries
	if n == topo.None {
		tries = f.mkeys.ProbeTries(x)
	}
	return f.failures.Tries(x) < tries
}

// sent returns how many requests were sent so far.
func sent(w *work.Window) settling.Sent { return settling.Sent{All: w.All(), Sets: w.Sets()} }

// causeOf returns what a step with an input is for.
func causeOf(in Input) settling.Cause {
	switch in := in.(type) {
	case *Started:
		return settling.ByStart()
	case *IntentSet:
		return settling.ByIntent(in.Intent.Revision)
	case *IntentChanged:
		return settling.ByIntent(in.Revision)
	case *Received:
		return settling.ByRequest()
	default:
		return settling.Cause{}
	}
}

// countReply counts how a request ended.
func countReply(n *settling.Counters, outcome Outcome, m *mad.MAD) {
	switch outcome {
	case Answered:
		n.Answered++
		if m.Status() != mad.StatusOK {
			n.Refused++
		}
	case TimedOut:
		n.TimedOut++
	case Undelivered:
		n.Undelivered++
	}
}

func (c *Core) tellSettled() {
	c.viewDue = true
	w := c.tally.Settle(c.now, sent(&c.wire))
	c.mkeys.SetSettled()
	if !c.toldMute {
		if e := muteSwitches(c); e != nil {
			c.toldMute = true
			c.event(e)
		}
	}
	c.lanes.Settle()
	c.event(&Settled{
		Revision: c.members.Revision(), Since: w.Since, SMPs: w.Sent.All, Sets: w.Sent.Sets,
		Cause: w.Cause.String(), Took: w.Took, Work: w.Work, Repeated: w.Repeated,
	})
}

// configure begins to configure the fabric that was discovered. foreign: another SM ruled since we last did. LIDs are
// assigned all at once: those that were saved, then those found on ports, then new ones.
func (c *Core) configure(foreign bool) {
	c.tally.Masterships++
	f := c.topo.Freeze()
	ports := f.EndPorts()
	if foreign {
		c.lids.Adopt(ports)
	}
	c.out.Save = slices.Grow(c.out.Save, max(0, len(ports)-c.lids.Owners())) // one for each new LID
	c.lids.SettleAll(ports)
	c.mkeys.SetMaster()
	if c.lfts.HasLater() {
		c.routing.BeginEarly()
	} else {
		c.compareTables(foreign)
	}
	c.touchAll()
}

// compareTables has tables computed that keep what is right in those that were found, and finds the blocks to be written.
func (c *Core) compareTables(foreign bool) {
	forwardingFabric{desk{c}}.adoptRoutes(foreign)
	c.routing.Begin()
	for _, id := range c.topo.Freeze().Switches() {
		c.lfts.Compare(id)
	}
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
	if c.tally.Disturb(c.now, sent(&c.wire), c.auditing) {
		c.disturbed = true
	}
}

// publish makes a view when one is due. That the fabric is settled no longer is
// shown at once.
func (c *Core) publish() {
	c.viewDue = c.viewDue || len(c.out.Events) > 0
	if !c.viewDue || c.out.View != nil {
		return
	}
	switch early := !c.tally.IsSettled() && c.now.Before(c.viewAt.Add(c.cfg.ViewEvery)); {
	case early && !c.disturbed:
	case early && c.wire.Out() > 0 && c.shown != nil && c.shown.Settled:
		// The last view is published again, at very low cost, as one that is no longer settled. Requests are out, so readers
		// must not take its tables as current.
		c.disturbed = false
		v := *c.shown
		v.Time, v.Repeats, v.Settled, v.Pending = c.now, true, false, c.wire.Out()
		v.SMPs, v.Progress, v.Counters = c.wire.Counts(), c.progress(), c.tally.Counters
		v.Faults, v.Problems = c.faults.Snapshot()
		v.Violations = c.reports.Snapshot()
		c.out.View, c.shown = &v, &v
	default:
		c.publishAll()
	}
}

func (c *Core) publishAll() {
	c.viewDue, c.disturbed, c.viewAt = false, false, c.now
	v := &View{
		Time: c.now, Fabric: c.topo.Freeze(), State: c.election.State(), GUID: c.cfg.PortGUID, LID: c.smLID(),
		Priority: c.election.Priority(), ActCount: c.election.ActCount(), Others: c.election.Others(), Managers: c.election.Peers(), Settled: c.tally.IsSettled() && c.writing(), Pending: c.wire.Out(),
		Revision: c.members.Revision(), Intent: c.members.HasIntent(), SMPs: c.wire.Counts(), Dropped: c.dropped,
		Progress: c.progress(), Counters: c.tally.Counters, Tables: c.routing.Tables(),
	}
	if v.Tables == nil && v.Intent && (c.q.Urgent() == 0 || c.shown != nil && c.shown.Early != nil) {
		v.Early = c.routing.Early()
	}
	v.Faults, v.Problems = c.faults.Snapshot()
	rest := portview.Rest{Fabric: v.Fabric, Routes: v.Tables, PKeys: c.pkeys.Show(), Lanes: c.lanes.View(), Aliases: c.aliases.Show()}
	v.MKeys, rest.MKeys = c.mkeys.Show()
	v.Devices, v.Health = c.devices.Show(&rest), c.health.States()
	v.Topology, v.Violations = c.law.Show(), c.reports.Snapshot()
	v.Refusing = c.refusing.List()
	if c.writing() {
		v.Multicast = c.groups.View()
	}
	c.out.View, c.shown = v, v
}

func (c *Core) progress() settling.Progress {
	r := &c.routing
	at := settling.Stage{
		State: c.election.State(), Settled: c.tally.IsSettled(), Routed: r.Tables() != nil, Routing: r.IsDue(),
		Forwarding: c.lfts.Pending() > 0, Waiting: !c.q.IsEmpty() || r.Waiting() > 0,
	}
	p := settling.Progress{
		Phase: at.Phase(), Fresh: c.wire.Fresh(), Window: c.cfg.Window, Silent: c.failures.Len(),
		Routing: r.IsDue(), RouteTook: c.tally.RouteTook(),
		LFTSwitches: c.lfts.Pending(), Activating: r.Waiting(),
		Background: c.idleWork.Len(),
	}
	p.Urgent = c.q.Urgent()
	for cl := range p.Waiting {
		p.Waiting[cl] = c.q.Waiting(work.Class(cl))
	}
	if p.LFTSwitches > 0 {
		p.LFTBlocks = c.lfts.BlocksLeft()
	}
	return p
}
