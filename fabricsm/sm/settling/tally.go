package settling

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Sent is how many requests were sent so far.
type Sent struct{ All, Sets uint64 }

// Tally holds the counters, whether the fabric is settled, and the cause of the work under way. The zero Tally is that of a
// core that was not started.
type Tally struct {
	Counters
	unsettled  bool
	settledAt  time.Time // last, or the start
	settledBy  Sent      // before that
	routeBegan time.Time
	routeTook  time.Duration
	why        Cause // of the work in this step
	trap       Cause // the last trap
	trapAt     time.Time
	work       struct { // since the fabric was settled no longer
		at       time.Time
		all      uint64 // requests sent before
		repeated uint64 // of which repeated others
		why      Cause
	}
}

// Cause is why an action is taken. Its text is made only when it is reported. The zero Cause is time.
type Cause struct {
	kind     causeKind
	lid      ib.LID
	trap     mad.TrapNum
	revision int64
}

type causeKind uint8

const (
	byTimer causeKind = iota
	byStart
	byTrap
	byIntent
	byAudit
	byRequest
)

// ByStart is the cause of work that follows from the start of a core.
func ByStart() Cause { return Cause{kind: byStart} }

// ByIntent is the cause of work that follows from an intent.
func ByIntent(revision int64) Cause { return Cause{kind: byIntent, revision: revision} }

// ByRequest is the cause of work that follows from a MAD that was not asked for.
func ByRequest() Cause { return Cause{kind: byRequest} }

// String says it in words.
func (c Cause) String() string {
	switch c.kind {
	case byStart:
		return "start"
	case byTrap:
		return fmt.Sprintf("trap %v from LID %v", c.trap, c.lid)
	case byIntent:
		return fmt.Sprintf("intent %d", c.revision)
	case byAudit:
		return "audit"
	case byRequest:
		return "another subnet manager"
	default:
		return "retry"
	}
}

// trapNear is how long after a trap what follows is put down to it.
const trapNear = time.Second

// Begin records what a step is for.
func (t *Tally) Begin(why Cause) { t.why = why }

// NoteTrap records a trap as the reason of the work that follows.
func (t *Tally) NoteTrap(now time.Time, lid ib.LID, num mad.TrapNum) {
	t.Traps++
	switch num {
	case mad.TrapBadMKey:
		t.MKeyTraps++
	case mad.TrapBadPKey, mad.TrapBadPKeySwitch:
		t.PKeyTraps++
	case mad.TrapBadQKey:
		t.QKeyTraps++
	}
	t.why = Cause{kind: byTrap, lid: lid, trap: num}
	t.trap, t.trapAt = t.why, now
}

// Start begins the first work of a core.
func (t *Tally) Start(now time.Time, sent Sent) {
	t.settledAt, t.unsettled = now, true
	t.noteWork(now, sent, false)
}

// IsSettled reports whether there was no work since the fabric was last settled.
func (t *Tally) IsSettled() bool { return !t.unsettled }

// Disturb takes that the fabric is not settled any longer, because of an audit or of what the step is for. It reports
// whether it was.
func (t *Tally) Disturb(now time.Time, sent Sent, audit bool) bool {
	if t.unsettled {
		return false
	}
	t.unsettled = true
	t.noteWork(now, sent, audit)
	return true
}

// noteWork records why, and since when, the fabric is not settled.
func (t *Tally) noteWork(now time.Time, sent Sent, audit bool) {
	t.work.at, t.work.all, t.work.repeated, t.work.why = now, sent.All, t.Repeated, t.why
	switch {
	case audit:
		t.work.why = Cause{kind: byAudit}
	case t.why.kind == byTimer && t.trap.kind == byTrap && now.Sub(t.trapAt) <= trapNear:
		t.work.why = t.trap
	}
}

// Span is the work between two times at which the fabric was settled.
type Span struct {
	Since    time.Duration // since the fabric was last settled, or since the start
	Sent     Sent          // in that time
	Cause    Cause         // that the work began with
	Took     time.Duration // since then
	Work     uint64        // requests sent since then
	Repeated uint64        // of which repeat one that was not answered in time
}

// Settle takes that the fabric is settled. It returns the work that led there.
func (t *Tally) Settle(now time.Time, sent Sent) Span {
	s := Span{
		Since: now.Sub(t.settledAt), Sent: Sent{All: sent.All - t.settledBy.All, Sets: sent.Sets - t.settledBy.Sets},
		Cause: t.work.why, Took: now.Sub(t.work.at), Work: sent.All - t.work.all, Repeated: t.Repeated - t.work.repeated,
	}
	t.unsettled, t.settledAt, t.settledBy = false, now, sent
	return s
}

// RoutingBegins takes that a routing computation begins.
func (t *Tally) RoutingBegins(now time.Time) { t.routeBegan = now }

// RoutingEnds counts the end of a routing computation, with tables or without.
func (t *Tally) RoutingEnds(now time.Time, tables bool) {
	t.routeTook = now.Sub(t.routeBegan)
	if !tables {
		t.Unrouted++
		return
	}
	t.Routed++
}

// RouteTook returns how long the last routing computation took, 0 before the first.
func (t *Tally) RouteTook() time.Duration { return t.routeTook }
