package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// failure counts what went wrong with one piece of work since it last went
// well.
type failure struct {
	tries   int    // without an answer
	rounds  int    // pauses made
	answers uint32 // the target had given when the first try failed
}

// nearRetry is the first pause after an "undelivered" reply: an answer that takes no time must not use up all tries at
// once.
const nearRetry = 5 * time.Millisecond

// failed decides what follows from a request without an answer.
func (c *Core) failed(r *work.Request, outcome Outcome) {
	f := c.failures[r.Ref]
	if f.tries == 0 && r.Node != topo.None {
		f.answers = c.nodes[r.Node].answers
	}
	f.tries++
	c.failures[r.Ref] = f
	c.suspect(r)

	tries := c.cfg.Tries
	if r.Node != topo.None && c.nodes[r.Node].answers != f.answers {
		tries *= 4 // it lives, so this is loss on the way
	}
	if r.Node == topo.None {
		tries = c.mkeys.ProbeTries(r.Ref)
	}
	if r.Ref.Class == work.SMInfo {
		tries = c.smTries(r) // that its node lives says nothing of the SM
	}
	switch r.Ref.Class {
	case work.LFT:
		c.lfts.Lost(r.Ref.Node(), r)
	case work.MFT:
		c.groups.Lost(r.Ref.Node(), r)
	case work.Set:
		c.mkeys.SetLost(r.Ref.Port())
	default:
	}
	switch {
	case f.tries < tries && outcome == TimedOut:
		c.q.Mark(r.Ref)
	case f.tries < tries:
		c.after(nearRetry<<min(2*f.tries, 8), work.Near, r.Ref)
	case r.Ref.Class == work.Vendor:
		delete(c.failures, r.Ref)
		linkFabric{desk{c}}.answered(r, nil, mad.StatusUnsupportedMethodAttr) // it knows no such attribute
	case r.Ref.Class == work.Notice:
		delete(c.failures, r.Ref) // it is asked again when there is a reason
	case c.mkeys.TriesNext(r):
		delete(c.failures, r.Ref)
		c.q.Mark(r.Ref)
	case r.Ref.Class == work.SMInfo:
		delete(c.failures, r.Ref)
		c.noSMInfo(r.Ref.Port(), r)
	case r.Node == topo.None:
		c.noProbe(r)
	case c.nodes[r.Node].answers != f.answers:
		c.giveUp(r, "no answer, although it answers other requests")
	case c.ownEntry(r.Ref) != topo.None:
		c.deadEnd(r)
	default:
		delete(c.failures, r.Ref)
		c.silence(r.Node)
	}
}

// spoke records that there was an answer. An error, or an answer to another request than the refused one, leaves the pauses
// as long as they have become.
func (c *Core) spoke(r *work.Request, status mad.Status) {
	f, failed := c.failures[r.Ref]
	switch {
	case !failed:
	case status == mad.StatusOK && !r.Audit || f.rounds == 0:
		delete(c.failures, r.Ref)
	default:
		f.tries = 0
		c.failures[r.Ref] = f
	}
}

// deadEnd records that a port of an adapter that was entered by itself is silent. That proves nothing about the other
// ports: the device there might only claim to be a port of that node.
func (c *Core) deadEnd(r *work.Request) {
	delete(c.failures, r.Ref)
	p := c.topo.Peer(r.Ref.Port())
	if q := r.Ref.Port(); c.mayRefuse(q) {
		c.refuses(q, false)
		c.tellUnreachable(p)
		c.pauseWork(r.Ref)
		return
	}
	pause := c.ports[p].pause
	c.unlink(p)
	c.tellUnreachable(p)
	c.ports[p].pause = c.longer(pause)
	c.after(c.ports[p].pause, work.Retry, work.OnPort(work.Probe, p))
}

// refused decides what follows from an answer that is an error.
func (c *Core) refused(r *work.Request, reason string) {
	cond := health.IllegalAnswer
	if r.Method == mad.MethodSet {
		cond = health.SetErrors
	}
	c.refusedAs(r, reason, cond)
}

// blame records a strike against the node that a request was for.
func (c *Core) blame(r *work.Request, cond health.Condition) {
	switch {
	case c.ownEntry(r.Ref) != topo.None:
		// A port of an adapter that was entered by itself: the device there might only claim to be a port of that node.
		c.health.Strike(c.topo.PlaceOf(r.Ref.Port()), c.topo.NodeGUID(r.Node), cond)
	case r.Node != topo.None:
		c.quarantine.StrikeNode(r.Node, cond)
	case r.Ref.Class == work.Probe:
		c.health.Strike(c.topo.PlaceOf(r.Ref.Port()), 0, cond)
	}
}

func (c *Core) refusedAs(r *work.Request, reason string, cond health.Condition) {
	var guid ib.GUID
	var num ib.PortNum
	if r.Node != topo.None {
		guid = c.topo.NodeGUID(r.Node)
	}
	if !r.Ref.Class.IsOnNode() {
		num = c.ports[r.Ref.ID].num
		if r.Node == topo.None {
			guid = 0
			reason = fmt.Sprintf("behind %v: %s", c.topo.PlaceOf(r.Ref.Port()), reason)
		}
	}
	c.blame(r, cond)
	if c.failures[r.Ref].rounds == 0 {
		c.event(&BadAnswer{GUID: guid, Port: num, Request: fmt.Sprintf("%v %v", r.Method, r.Attr), Reason: reason})
	}
	c.pauseWork(r.Ref)
}

// giveUp leaves a piece of work for later and says so once.
func (c *Core) giveUp(r *work.Request, reason string) { c.refusedAs(r, reason, health.Unresponsive) }

// pauseWork looks at a piece of work again after ever longer pauses.
func (c *Core) pauseWork(x work.Ref) {
	f := c.failures[x]
	pause := min(c.cfg.RetryMin<<min(f.rounds, 16), c.cfg.RetryMax)
	f.tries, f.rounds = 0, f.rounds+1
	c.failures[x] = f
	c.after(pause, work.Retry, x)
}

func (c *Core) longer(pause time.Duration) time.Duration {
	return min(max(2*pause, c.cfg.RetryMin), c.cfg.RetryMax)
}

// suspect looks at the last link of the way to a target that did not answer.
// If that one cannot be asked either, its own last link is next, and so on up
// to the link that is broken.
func (c *Core) suspect(r *work.Request) {
	if r.Node == topo.None {
		if r.Ref.Class == work.Probe {
			c.q.MarkPort(work.Info, r.Ref.Port())
		}
		return
	}
	if up := c.tree.Up(r.Node); up != topo.None {
		c.q.MarkPort(work.Info, up)
	}
}

// noProbe handles a link that is up but has no answering node at its end.
func (c *Core) noProbe(r *work.Request) {
	delete(c.failures, r.Ref)
	if r.Ref.Class == work.Root {
		c.after(c.cfg.RetryMin, work.Retry, r.Ref)
		return
	}
	p := r.Ref.Port()
	c.mkeys.Unanswered(p)
	if c.law.ConvictsSilent(p, r.Sent) {
		return
	}
	c.law.Wavered(p)
	c.law.Acquit(p)
	pt := &c.ports[p]
	if !linkUp(&pt.info) {
		return
	}
	peer := c.topo.Peer(p)
	if peer != topo.None && c.contests.IsOpen(p) {
		// The old place is dead and the new one answers: the cable was moved.
		c.unlink(p)
	}
	pt.verify = false
	pt.pause = c.longer(pt.pause)
	pause := pt.pause
	if peer != topo.None && c.topo.Peer(p) != topo.None {
		id := c.ports[peer].node
		pause = max(pause, c.nodes[id].pause)
		pt.pause, c.nodes[id].pause = pause, pause
		if c.nodes[id].silent {
			c.tree.UseOther(id)
			if up := c.tree.Up(id); up != topo.None && up != p { // the node we are attached to has none
				pt.pause = 0 // no timer asks here again: where another link is found here, it is asked at once
				p = up
			}
		}
	} else {
		c.tellUnreachable(p)
	}
	c.after(pause, work.Retry, work.OnPort(work.Probe, p))
}

// silence stops asking a node that does not answer, but for a probe now and
// then over the ways it has.
func (c *Core) silence(id topo.NodeID) {
	n := &c.nodes[id]
	if n.silent || !n.alive {
		return
	}
	n.silent = true
	c.lids.Spoke()
	for _, x := range n.parked {
		c.q.Unmark(x)
	}
	n.parked = nil
	if c.now.Sub(n.back) > steadyFor*n.pause {
		n.pause = 0
	}
	n.pause = c.longer(n.pause)
	c.problem(fault.Key{Kind: fault.NodeSilent, GUID: c.topo.NodeGUID(id)}, &NodeUnreachable{GUID: c.topo.NodeGUID(id), Place: c.topo.PlaceOf(c.tree.Up(id))})
	c.quarantine.StrikeNode(id, health.Unresponsive)
	if !c.nodes[id].alive {
		return // it is no longer looked at
	}
	c.topo.EachEndPort(id, func(p topo.PortID) { c.refuses(p, false) })
	c.topo.EachEndPort(id, c.mkeys.Rotation().Turned)
	c.lfts.Recount(id)
	c.pkeys.Judge.Node(id)
	if id == c.root {
		c.after(c.cfg.RetryMin, work.Retry, rootRef)
		return
	}
	c.tree.UseOther(id)
	c.after(n.pause, work.Retry, work.OnPort(work.Probe, c.tree.Up(id)))
}

// steadyFor is how many times its last pause a node has to answer before the next silence counts as its first. Otherwise a
// node that answers now and then would be reported silent and back without end.
const steadyFor = 4

// heard takes a sign of life.
func (c *Core) heard(id topo.NodeID) {
	n := &c.nodes[id]
	n.answers++
	if !n.silent {
		return
	}
	n.silent, n.back = false, c.now
	guid := c.topo.NodeGUID(id)
	c.faults.Clear(fault.Key{Kind: fault.NodeSilent, GUID: guid})
	c.event(&NodeBack{GUID: guid})
	c.topo.EachEndPort(id, c.keyDoubted)
	c.refresh(id)
}

// refresh looks at everything about a node again: it may have been away.
func (c *Core) refresh(id topo.NodeID) {
	tn := c.topo.Node(id)
	c.q.MarkNode(work.Desc, id)
	if tn.Type == ib.NodeSwitch {
		c.nodes[id].sw.Verify()
		c.q.MarkNode(work.Switch, id)
		c.q.MarkNode(work.LFT, id)
		c.q.MarkNode(work.MFT, id)
	}
	for i := range int(tn.NumPorts) + 1 {
		p := tn.FirstPort + topo.PortID(i)
		if tn.Type != ib.NodeSwitch && c.topo.GUIDOf(p) == 0 {
			continue
		}
		c.q.MarkPort(work.Info, p)
		c.touch(p)
		if c.tree.Probes(p) {
			c.q.MarkPort(work.Probe, p)
		}
	}
	c.lfts.Recount(id)
}
