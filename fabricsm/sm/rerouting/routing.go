// Package rerouting says which forwarding tables are wanted, and when new ones have to be computed.
//
// A [Routing] belongs to the core. It keeps the tables, learns what changed, and returns a [Job] when one is due. The job is
// a pure function that may run elsewhere; its [Result] comes back to the Routing.
package rerouting

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Fabric is what a Routing asks of the core.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// IsWriting reports whether devices may be changed.
	IsWriting() bool
	// IsFinding reports whether discovery may find more. Work that waits for its turn or for a key, and requests that were
	// not answered at first, do not count; they do for MayFindMore.
	IsFinding() bool
	MayFindMore() bool
	// IsAlone reports whether the own port leads nowhere.
	IsAlone() bool
	// LID returns the LID of an end port, 0 for none.
	LID(topo.PortID) ib.LID
	// HasKnownLID reports whether a GUID owns a LID.
	HasKnownLID(ib.GUID) bool
	// IsAwaited reports whether a port has no LID, and its node answers and came back within a time.
	IsAwaited(topo.PortID, time.Duration) bool
	// Disturb takes that the fabric is not settled any longer.
	Disturb()
	// LookLater has Look called after a time.
	LookLater(time.Duration)
}

// Routing is the state of forwarding as a whole. Use New.
type Routing struct {
	fabric  Fabric
	topo    *topo.Builder
	tables  *route.Tables  // wanted, nil before the first
	routed  []topo.PortID  // by LID: where the tables take it, or the switch's port 0
	need    bool           // the topology changed in a way that asks for new tables
	since   time.Time      // of need
	back    time.Time      // when a node was found last whose LID was known before
	grown   time.Time      // when a switch was
	look    time.Time      // when isReturning is to look again
	running bool           // a job is out
	fresh   bool           // the next tables are not made from those before
	waiting []work.Ref     // ports that are Armed and wait for forwarding
	found   [][]ib.PortNum // by topo.NodeID: the tables of the SM that ruled before, until they were used
	ruled   uint32         // counts the times that another SM ruled: a job from before counts no longer
	early   early
	gone    gone
}

// New returns the routing of a fabric without tables.
func New(f Fabric, t *topo.Builder) Routing { return Routing{fabric: f, topo: t} }

// wait is how long new tables wait for discovery to come to rest.
const wait = 100 * time.Millisecond

// Tables returns the tables that are wanted, nil before the first.
func (r *Routing) Tables() *route.Tables { return r.tables }

// IsRunning reports whether a job is out, and IsDue whether tables are to be computed, or are being computed.
func (r *Routing) IsRunning() bool { return r.running }

// IsDue reports whether new tables are needed, or are being computed.
func (r *Routing) IsDue() bool { return r.need || r.running || r.early.stage != noEarly }

// IsDone reports whether the tables that are wanted are those of the present topology.
func (r *Routing) IsDone() bool { return r.tables != nil && !r.IsDue() }

// Want takes that the tables may be wrong.
func (r *Routing) Want() {
	if r.need {
		return
	}
	r.need, r.since = true, r.fabric.Now()
	r.fabric.Disturb()
	if r.tables != nil {
		r.fabric.LookLater(wait)
	}
}

// WantFor asks for new tables if they do not lead to an end port where it is
// now. A host that comes back to its place finds its routes still there.
func (r *Routing) WantFor(p topo.PortID) {
	l, at := r.fabric.LID(p), r.topo.Attachment(p)
	if l == 0 || at == topo.None || int(l) < len(r.routed) && r.routed[l] == at {
		return
	}
	r.Want()
}

// Begin asks for tables at the beginning of a mastership.
func (r *Routing) Begin() { r.need, r.since = true, r.fabric.Now() }

// Renew asks for tables that are not made from those before.
func (r *Routing) Renew() {
	r.fresh = true
	r.Want()
}

// OtherRuled takes that another subnet manager may have written tables: a job that is out counts no longer.
func (r *Routing) OtherRuled() {
	r.ruled++
	r.early = early{}
}

// Adopt has the next tables keep what is right in tables that were found, by topo.NodeID.
func (r *Routing) Adopt(found [][]ib.PortNum) { r.found = found }

// Job returns a job when one is due.
func (r *Routing) Job(engines []route.Engine) (Job, bool) {
	if r.early.stage != noEarly {
		return r.earlyJob(engines)
	}
	if !r.need || r.running || !r.fabric.IsWriting() {
		return Job{}, false
	}
	now := r.fabric.Now()
	if r.tables != nil && r.fabric.IsAlone() {
		return Job{}, false // no switch would get the tables, and the next are made from those there are
	}
	if r.fabric.IsFinding() && now.Before(r.by()) || now.Before(r.most()) && r.isReturning() {
		return Job{}, false
	}
	job := Job{fabric: r.topo.Freeze(), prev: r.tables, found: r.found, ruled: r.ruled, engines: engines}
	if r.fresh {
		job.prev, job.found = nil, nil
	}
	r.need, r.running, r.found, r.fresh = false, true, nil, false
	return job, true
}

// End takes that a job has ended. It reports whether its result counts: none does from before another SM ruled.
func (r *Routing) End(res *Result) bool {
	r.running = false
	if res.ruled != r.ruled {
		r.need = true
		return false
	}
	if res.early {
		r.earlyEnded(res)
		return false
	}
	return true
}

// Take puts the tables of a result into force. It returns how many LIDs they lead to.
func (r *Routing) Take(res *Result) (lids int) {
	r.tables, r.early.tables = res.Tables, nil
	r.routed = make([]topo.PortID, int(r.tables.MaxLID)+1)
	for i := range r.routed {
		r.routed[i] = topo.None
	}
	f := res.Fabric
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

// Follow asks for new tables where the fabric has changed since the snapshot of a job. A change during the job causes the
// next job. Destinations that the tables leave out of a snapshot that is still true do not: that would not end.
func (r *Routing) Follow(was *topo.Fabric) {
	now := r.topo.Freeze()
	if now == was {
		return
	}
	for _, p := range now.EndPorts() {
		if r.hasMoved(was, p) {
			r.WantFor(p)
		}
	}
}

// hasMoved reports whether an end port has another place or identity than in a snapshot.
func (r *Routing) hasMoved(f *topo.Fabric, p topo.PortID) bool {
	if int(p) >= f.NumPorts() {
		return true
	}
	was, is := f.Port(p), r.topo.Port(p)
	return was.GUID != is.GUID || was.LID != is.LID || was.Peer != is.Peer
}

// Await has work marked when the tables are in place in every switch.
func (r *Routing) Await(x work.Ref) { r.waiting = append(r.waiting, x) }

// Waiting returns how much work waits for that.
func (r *Routing) Waiting() int { return len(r.waiting) }

// Release marks the work that waits.
func (r *Routing) Release(q *work.Queue) {
	waiting := r.waiting
	r.waiting = nil
	for _, x := range waiting {
		q.Mark(x)
	}
}
