package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/sm/rerouting"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// RouteJob is a routing computation: a pure function of an immutable snapshot.
type RouteJob struct{ job rerouting.Job }

// Run computes the tables and judges them. It may run in any goroutine and its
// result is to be stepped in.
func (j *RouteJob) Run() *TablesReady { return &TablesReady{j.job.Run()} }

// TablesReady is the result of a RouteJob.
type TablesReady struct{ result rerouting.Result }

func (*TablesReady) input() {}

// routingFabric is the core as package rerouting uses it.
type routingFabric struct{ desk }

var _ rerouting.Fabric = routingFabric{}

func (f routingFabric) IsWriting() bool            { return f.writing() }
func (f routingFabric) LID(p topo.PortID) ib.LID   { return f.ports[p].lid }
func (f routingFabric) HasKnownLID(g ib.GUID) bool { return f.lids.Of(g) != 0 }
func (f routingFabric) Disturb()                   { f.disturb() }
func (f routingFabric) LookLater(d time.Duration)  { f.after(d, work.Route, work.Ref{}) }

func (f routingFabric) IsFinding() bool {
	return f.q.MayFind() || f.wire.MayFind() || f.unread.IsFinding()
}

func (f routingFabric) MayFindMore() bool {
	return f.q.WillFind() || f.wire.WillFind() || f.unread.IsFinding()
}

func (f routingFabric) IsAlone() bool {
	return f.root != topo.None && f.topo.Node(f.root).Type != ib.NodeSwitch && f.topo.Peer(f.rootPort) == topo.None
}

func (f routingFabric) IsAwaited(p topo.PortID, within time.Duration) bool {
	pt := &f.ports[p]
	return pt.lid == 0 && !f.nodes[pt.node].silent && f.now.Sub(f.nodes[pt.node].returned) <= within
}

// job returns a job when one is due.
func (f routingFabric) job() *RouteJob {
	job, due := f.routing.Job(f.cfg.Engines)
	if !due {
		return nil
	}
	f.tally.RoutingBegins(f.now)
	return &RouteJob{job}
}

// ended takes the result of a job.
func (f routingFabric) ended(res *rerouting.Result) {
	f.viewDue = true
	if !f.routing.End(res) {
		if f.routing.Early() != nil {
			f.viewAt = time.Time{} // hosts wait for it
		}
		return
	}
	f.tally.RoutingEnds(f.now, res.Tables != nil)
	if res.Err != nil {
		f.problem(fault.Key{Kind: fault.RoutesRefused}, &RouteRefused{Reason: res.Err.Error()})
	} else {
		f.faults.Clear(fault.Key{Kind: fault.RoutesRefused})
	}
	if res.Tables == nil || !f.writing() {
		return
	}
	was := f.routing.Tables()
	f.lfts.Plan(res.Fabric, was, res.Tables)
	f.groups.GrowOn(multicast.Routes{Fabric: res.Fabric, Tables: res.Tables, Report: res.Report})
	lids := f.routing.Take(res)
	f.event(&Routed{Engine: res.Tables.Engine, Switches: len(res.Fabric.Switches()), LIDs: lids})
	f.lfts.CompareAll(res.Fabric, was != nil && was.MaxLID == res.Tables.MaxLID)
	f.routing.Follow(res.Fabric)
}

// readTables has the tables of switches read that were left until the ports are configured, and then kept as far as they are
// right. It reports whether there is new work.
func (f routingFabric) readTables() bool {
	switch {
	case !f.writing():
		return false
	case f.routing.MayReadNow(f.rest.IsQuiet()):
		f.routing.ReadsNow()
		f.pkeys.ReadNow()
		f.lfts.ReadNow()
		return true
	case f.routing.IsReading() && (f.lfts.Unread() == 0 || f.rest.IsQuiet() && !f.rest.MayShowMore()):
		f.routing.EndEarly()
		f.Core.compareTables(true)
		return true
	case (f.lfts.HasLater() || f.pkeys.HasLater()) && !f.routing.ReadsLater():
		f.pkeys.ReadNow()
		f.lfts.ReadNow()
		return true
	default:
		return false
	}
}

// forwarding reports whether tables are in place in every switch that answers, so that ports may be made active.
func (c *Core) forwarding() bool { return c.routing.IsDone() && c.lfts.Pending() == 0 }
