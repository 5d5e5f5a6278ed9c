package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/failures"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// failureFabric is the core as package failures knows it, and failureActions what that has it do.
type (
	failureFabric  struct{ desk }
	failureActions struct{ desk }
)

var (
	_ failures.Fabric  = failureFabric{}
	_ failures.Actions = failureActions{}
)

// nearRetry is the first pause after a request that was not delivered.
const nearRetry = failures.NearRetry

// newFailures returns the list of what went wrong, of a core that has all that it asks.
func newFailures(c *Core) failures.List {
	return failures.New(&failures.Parts{
		Fabric: failureFabric{desk{c}}, Actions: failureActions{desk{c}}, Keys: c.mkeys, Law: c.law, Health: &c.quarantine,
		Topo: &c.topo, Tree: c.tree, Queue: &c.q,
	}, failures.Limits{Tries: c.cfg.Tries, Min: c.cfg.RetryMin, Max: c.cfg.RetryMax})
}

func (f failureFabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.rootPort }

func (f failureFabric) IsAlive(id topo.NodeID) bool { return f.nodes[id].alive }

func (f failureFabric) IsSilent(id topo.NodeID) bool { return f.nodes[id].silent }

func (f failureFabric) Node(id topo.NodeID) *failures.Node { return &f.nodes[id].failures }
func (f failureFabric) Entry(x work.Ref) topo.PortID       { return f.ownEntry(x) }
func (f failureFabric) IsContested(p topo.PortID) bool     { return f.contests.IsOpen(p) }

func (f failureFabric) ManagerTries(r work.Request) int { return f.election.Tries(&r) }

func (f failureFabric) MayRefuse(p topo.PortID) bool                     { return f.refusing.MayRefuse(p) }
func (f failureActions) Unlink(p topo.PortID)                            { f.unlink(p) }
func (f failureActions) Refuse(p topo.PortID)                            { f.refusing.Refuses(p, false) }
func (f failureActions) After(d time.Duration, a work.Alarm, x work.Ref) { f.after(d, a, x) }

func (f failureFabric) Port(p topo.PortID) failures.Port {
	pt := &f.ports[p]
	return failures.Port{Pause: &pt.pause, Verify: &pt.verify, Num: pt.num, IsUp: linkUp(&pt.info)}
}

func (f failureActions) Lost(r work.Request) {
	switch r.Ref.Class {
	case work.LFT:
		f.lfts.Lost(r.Ref.Node(), &r)
	case work.MFT:
		f.groups.Lost(r.Ref.Node(), &r)
	case work.Set:
		f.mkeys.SetLost(r.Ref.Port())
	default:
	}
}

func (f failureActions) Unanswered(r work.Request) {
	switch r.Ref.Class {
	case work.Vendor:
		f.handlers[work.Vendor].Got(&r, nil, mad.StatusUnsupportedMethodAttr) // it knows no such attribute
	case work.SMInfo:
		f.election.Unanswered(&r)
	default: // it is asked again when there is a reason
	}
}

func (f failureActions) Silence(id topo.NodeID) {
	n := &f.nodes[id]
	n.silent = true
	f.lids.Spoke()
	n.turns.Drop(&f.q)
	guid := f.topo.NodeGUID(id)
	f.problem(fault.Key{Kind: fault.NodeSilent, GUID: guid}, &NodeUnreachable{GUID: guid, Place: f.topo.PlaceOf(f.tree.Up(id))})
}

func (f failureActions) Silenced(id topo.NodeID) {
	f.topo.EachEndPort(id, func(p topo.PortID) { f.refusing.Refuses(p, false) })
	f.topo.EachEndPort(id, f.mkeys.Rotation().Turned)
	f.lfts.Recount(id)
	f.pkeys.Judge.Node(id)
	f.pkeys.Failed(id)
}

func (f failureActions) Return(id topo.NodeID) {
	f.nodes[id].silent = false
	guid := f.topo.NodeGUID(id)
	f.faults.Clear(fault.Key{Kind: fault.NodeSilent, GUID: guid})
	f.event(&NodeBack{GUID: guid})
	f.topo.EachEndPort(id, f.keyDoubted)
	f.refresh(id)
}

func (f failureActions) ReportBad(node ib.GUID, num ib.PortNum, request, reason string) {
	f.event(&BadAnswer{GUID: node, Port: num, Request: request, Reason: reason})
	if id := f.topo.NodeByGUID(node); id != topo.None {
		f.pkeys.Failed(id)
	}
}

// refused decides what follows from an answer that is an error.
func (c *Core) refused(r *work.Request, reason string) { c.failures.Refused(r, reason) }

// pauseWork looks at a piece of work again after ever longer pauses.
func (c *Core) pauseWork(x work.Ref) { c.failures.Pause(x) }

// longer returns the pause that follows one.
func (c *Core) longer(pause time.Duration) time.Duration { return c.failures.Longer(pause) }

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
