package sm

import (
	"errors"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// routing is the state of forwarding as a whole.
type routing struct {
	tables   *route.Tables  // wanted, nil before the first
	routed   []topo.PortID  // by LID: where the tables take it, or the switch's port 0
	need     bool           // the topology changed in a way that asks for new tables
	since    time.Time      // of need
	back     time.Time      // when a node was found last whose LID was known before
	look     time.Time      // when returning is to look again
	running  bool           // a job is out
	fresh    bool           // the next tables are not made from those before
	waiting  []work.Ref     // ports that are Armed and wait for forwarding
	tombs    []topo.NodeID  // nodes that are gone, the first that went first
	tombSize int            // of tombs, see subtree.Size
	found    [][]ib.PortNum // by topo.NodeID: the tables of the SM that ruled before, until they were used
	reign    uint32         // counts the times that another SM ruled: a job from before counts no longer
}

// routeWait is how long new tables wait for discovery to come to rest.
const routeWait = 100 * time.Millisecond

// RouteJob is a routing computation: a pure function of an immutable snapshot.
type RouteJob struct {
	fabric  *topo.Fabric
	prev    *route.Tables
	found   [][]ib.PortNum // by topo.NodeID: tables that another SM wrote; nil: prev counts
	reign   uint32
	engines []route.Engine
}

// Run computes the tables and judges them. It may run in any goroutine and its
// result is to be stepped in.
func (j *RouteJob) Run() *TablesReady {
	prev := j.prev
	if t := j.adopted(); t != nil {
		prev = t
	}
	choice, err := route.First(j.fabric, prev, j.engines...)
	if err != nil {
		return &TablesReady{reign: j.reign, err: err}
	}
	return &TablesReady{reign: j.reign, fabric: j.fabric, tables: choice.Tables, report: &choice.Report, err: errors.Join(choice.Refused...)}
}

// adopted returns the tables that another SM left, nil when there are none, or none that fit the fabric.
func (j *RouteJob) adopted() *route.Tables {
	if j.found == nil {
		return nil
	}
	t, err := route.Found(j.fabric, func(id topo.NodeID) []ib.PortNum {
		if int(id) >= len(j.found) {
			return nil
		}
		return j.found[id]
	})
	if err != nil {
		return nil // routing meets the same error, and reports it
	}
	return t
}

// TablesReady is the result of a RouteJob.
type TablesReady struct {
	reign  uint32
	fabric *topo.Fabric
	tables *route.Tables // nil: none were accepted
	report *route.Report // of the tables
	err    error         // why engines were passed over
}

func (*TablesReady) input() {}

// wantRoutes says that the tables may be wrong.
func (c *Core) wantRoutes() {
	r := &c.routing
	if !r.need {
		r.need, r.since = true, c.now
		c.disturb()
		if r.tables != nil {
			c.after(routeWait, work.Route, work.Ref{})
		}
	}
}

// needRoute asks for new tables if they do not lead to an end port where it is
// now. A host that comes back to its place finds its routes still there.
func (c *Core) needRoute(p topo.PortID) {
	pt := &c.ports[p]
	at := c.topo.Attachment(p)
	if pt.lid == 0 || at == topo.None {
		return
	}
	if routed := c.routing.routed; int(pt.lid) < len(routed) && routed[pt.lid] == at {
		return
	}
	c.wantRoutes()
}

// routeJob returns a job when one is due.
func (c *Core) routeJob() *RouteJob {
	r := &c.routing
	if !r.need || r.running || !c.writing() {
		return nil
	}
	if (c.q.MayFind() || c.wire.MayFind() || c.unread.IsFinding()) && c.now.Before(c.routesBy()) {
		return nil
	}
	if c.now.Before(r.since.Add(returnWait)) && c.returning() {
		return nil
	}
	job := &RouteJob{fabric: c.topo.Freeze(), prev: r.tables, found: r.found, reign: r.reign, engines: c.cfg.Engines}
	if r.fresh {
		job.prev, job.found = nil, nil
	}
	r.need, r.running, r.found, r.fresh = false, true, nil, false
	c.tally.RoutingBegins(c.now)
	return job
}

// gotTables takes the result of a job.
func (c *Core) gotTables(in *TablesReady) {
	r := &c.routing
	r.running = false
	c.viewDue = true
	if in.reign != r.reign {
		r.need = true
		return
	}
	c.tally.RoutingEnds(c.now, in.tables != nil)
	if in.err != nil {
		c.problem(fault.Key{Kind: fault.RoutesRefused}, &RouteRefused{Reason: in.err.Error()})
	} else {
		c.faults.Clear(fault.Key{Kind: fault.RoutesRefused})
	}
	if in.tables == nil || !c.writing() {
		return
	}
	c.lfts.Plan(in.fabric, r.tables, in.tables)
	topStays := r.tables != nil && r.tables.MaxLID == in.tables.MaxLID
	r.tables = in.tables
	c.groups.GrowOn(multicast.Routes{Fabric: in.fabric, Tables: in.tables, Report: in.report})
	f := in.fabric
	lids := r.note(f)
	c.event(&Routed{Engine: in.tables.Engine, Switches: len(f.Switches()), LIDs: lids})
	c.lfts.CompareAll(f, topStays)
	// A change during the job causes the next job. Destinations that these tables leave out of a snapshot that is still
	// true do not: that would not end.
	now := c.topo.Freeze()
	if now == f {
		return
	}
	for _, p := range now.EndPorts() {
		if c.movedSince(f, p) {
			c.needRoute(p)
		}
	}
}

// note remembers where the tables lead for each LID, and counts LIDs.
func (r *routing) note(f *topo.Fabric) (lids int) {
	r.routed = make([]topo.PortID, int(r.tables.MaxLID)+1)
	for i := range r.routed {
		r.routed[i] = topo.None
	}
	for _, p := range f.EndPorts() {
		l := f.Port(p).LID
		if int(l) >= len(r.routed) || l == 0 {
			continue
		}
		lids++
		r.routed[l] = p
		if f.Port(p).Num != 0 {
			r.routed[l] = f.Port(p).Peer
		}
	}
	return lids
}

// movedSince reports whether an end port has another place or identity than in a snapshot.
func (c *Core) movedSince(f *topo.Fabric, p topo.PortID) bool {
	if int(p) >= f.NumPorts() {
		return true
	}
	was, is := f.Port(p), c.topo.Port(p)
	return was.GUID != is.GUID || was.LID != is.LID || was.Peer != is.Peer
}

// forwarding reports whether tables are in place in every switch that answers, so that ports may be made active.
func (c *Core) forwarding() bool {
	r := &c.routing
	return r.tables != nil && !r.need && !r.running && c.lfts.Pending() == 0
}
