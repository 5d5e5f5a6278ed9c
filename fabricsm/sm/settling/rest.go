// Package settling says how far a core is: whether work is left, what it waits for, why it began, and what was counted on the
// way.
//
// It has no clock and sends nothing.
package settling

import (
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Fabric is what a Rest asks of the core.
type Fabric interface {
	// IsFinding reports whether there are nodes behind which more is to be looked for.
	IsFinding() bool
	// IsRouting reports whether a routing computation runs, or is due.
	IsRouting() bool
	// IsReady reports whether an intent has come, or is no longer waited for.
	IsReady() bool
	// HasTries reports whether a piece of work has not used up its quick tries. The node is the one asked, or None.
	HasTries(work.Ref, topo.NodeID) bool
	// DelaysThrottled reports whether only throttled work waits for a request.
	DelaysThrottled(*work.Request) bool
}

// Rest is the work that is left.
type Rest struct {
	fabric Fabric
	queue  *work.Queue
	wire   *work.Window
	timers *work.Timers
}

// NewRest returns the rest of work in a queue, of requests that are out and of timers.
func NewRest(f Fabric, q *work.Queue, w *work.Window, t *work.Timers) Rest {
	return Rest{fabric: f, queue: q, wire: w, timers: t}
}

// IsQuiet reports whether the only requests left are to devices that do not answer.
func (r *Rest) IsQuiet() bool {
	return r.queue.IsEmpty() && r.wire.Fresh() == 0 && !r.fabric.IsFinding()
}

// IsIdle reports whether the only work left waits for a pause to pass, or is work that nothing wanted depends on.
func (r *Rest) IsIdle() bool {
	return r.queue.IsEmpty() && !r.wire.IsWanted() && !r.fabric.IsFinding() && !r.timers.HasNear() && !r.fabric.IsRouting() && r.fabric.IsReady()
}

// MayShowMore reports whether an answer is late which may show a node, a LID or a route of a fabric that had a master
// before, and not even its quick tries are used up. A master without that answer would assign LIDs that are in use, and
// write routes that leave hosts out.
func (r *Rest) MayShowMore() bool {
	awaited := func(x work.Ref, n topo.NodeID) bool {
		return (x.Class.Discovers() || x.Class == work.LFT) && r.fabric.HasTries(x, n)
	}
	return r.wire.AnyOut(func(q *work.Request) bool { return awaited(q.Ref, q.Node) && !r.fabric.DelaysThrottled(q) }) ||
		r.timers.AnyNear(func(x work.Ref) bool { return awaited(x, topo.None) })
}
