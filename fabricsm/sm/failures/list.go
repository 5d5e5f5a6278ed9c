// Package failures decides what follows from a request that is not answered, or that is answered with an error.
//
// A request is repeated a few times. Then its work is left for ever longer pauses, if its node answers other requests; else
// the node is silent: it is asked now and then, over each way that leads there. A link behind which no device answers is
// asked in the same way. Each loss has the last link of the way to the target read, which may be the one that is broken.
//
// The package has no clock and sends nothing. It marks which work is to be done.
package failures

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/tree"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Port is what is known of a port.
type Port struct {
	Pause  *time.Duration // before the device behind it is asked again
	Verify *bool          // it is asked although it is known
	Num    ib.PortNum
	IsUp   bool // it has a link
}

// Fabric is what a List asks of the core. Requests are passed by value here and below, so that none has to be allocated.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// Root returns the node that this subnet manager is attached to, and our port on it.
	Root() (topo.NodeID, topo.PortID)
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// IsSilent reports whether a node is asked no more.
	IsSilent(topo.NodeID) bool
	// Node returns what is kept of a node.
	Node(topo.NodeID) *Node
	// Port returns what is known of a port.
	Port(topo.PortID) Port
	// Entry returns the switch port in front of the adapter port that work is about, if a request goes through that one, else None.
	Entry(work.Ref) topo.PortID
	// IsContested reports whether two devices claim the cable of a port.
	IsContested(topo.PortID) bool
	// ManagerTries returns how often a request to another subnet manager is sent.
	ManagerTries(work.Request) int
	// MayRefuse reports whether an adapter may be one that refuses its M_Key.
	MayRefuse(topo.PortID) bool
}

// Actions is what a List has done.
type Actions interface {
	// After has an alarm go off after a time.
	After(time.Duration, work.Alarm, work.Ref)
	// Lost takes that a request was not answered, and may be sent again.
	Lost(work.Request)
	// Unanswered takes that a request was not answered although its node may live.
	Unanswered(work.Request)
	// Unlink takes the cable of a port away, and what could be reached over it alone.
	Unlink(topo.PortID)
	// Refuse takes that an adapter may refuse its M_Key.
	Refuse(topo.PortID)
	// Silence has a node asked no more, and reports that.
	Silence(topo.NodeID)
	// Silenced takes that a node of the fabric has fallen silent.
	Silenced(topo.NodeID)
	// Return has a silent node asked again, reports that, and has all of it read.
	Return(topo.NodeID)
	// ReportDead reports, once, that no device answers behind a link.
	ReportDead(topo.PortID)
	// ReportBad reports an answer that is an error, or none. The node has GUID 0 if it is not known.
	ReportBad(node ib.GUID, num ib.PortNum, request, reason string)
}

// Keys is what a List asks of those who know the keys of devices.
type Keys interface {
	// ProbeTries returns how often a node that is not known is asked.
	ProbeTries(work.Ref) int
	// TriesNext reports whether a request is sent again under another key.
	TriesNext(work.Request) bool
	// Unanswered takes that no device answers behind a port.
	Unanswered(topo.PortID)
}

// Law is what a List asks of the declared topology.
type Law interface {
	// ConvictsSilent reports whether a port is closed because the device behind it does not answer.
	ConvictsSilent(p topo.PortID, sent time.Time) bool
	// Wavered takes that a device did not answer.
	Wavered(topo.PortID)
	// Acquit ends what is suspected behind a port.
	Acquit(topo.PortID)
}

// Health is where a List records who misbehaves.
type Health interface {
	// StrikeNode records that a node misbehaved.
	StrikeNode(topo.NodeID, health.Condition)
	// StrikePort records that what is at a place misbehaved.
	StrikePort(topo.PortID, ib.GUID, health.Condition)
}

// Parts are what a List works with.
type Parts struct {
	Fabric  Fabric
	Actions Actions
	Keys    Keys
	Law     Law
	Health  Health
	Topo    *topo.Builder
	Tree    *tree.Tree
	Queue   *work.Queue
}

// List is what went wrong with each piece of work. Use New.
type List struct {
	p   Parts
	lim Limits
	at  map[work.Ref]count
}

// New returns an empty list. What it works with stays the caller's.
func New(p *Parts, l Limits) List { return List{p: *p, lim: l, at: make(map[work.Ref]count)} }

// Len returns how many pieces of work went wrong.
func (l *List) Len() int { return len(l.at) }

// Tries returns how often work was tried without an answer.
func (l *List) Tries(x work.Ref) int { return l.at[x].tries }

// IsPaused reports whether work was left for a pause since it last went well.
func (l *List) IsPaused(x work.Ref) bool { return l.at[x].rounds != 0 }

// SetRounds records that work was left for a number of pauses.
func (l *List) SetRounds(x work.Ref, rounds int) { l.at[x] = count{rounds: rounds} }

// Forget forgets what went wrong with work.
func (l *List) Forget(x work.Ref) { delete(l.at, x) }

// Longer returns the pause that follows one.
func (l *List) Longer(pause time.Duration) time.Duration { return l.lim.Longer(pause) }

// Failed decides what follows from a request without an answer. undelivered says that it did not reach its target.
func (l *List) Failed(r *work.Request, undelivered bool) {
	f := l.at[r.Ref]
	if f.tries == 0 && r.Node != topo.None {
		f.answers = l.p.Fabric.Node(r.Node).answers
	}
	f.tries++
	l.at[r.Ref] = f
	l.suspect(r)
	lives := r.Node != topo.None && l.p.Fabric.Node(r.Node).answers != f.answers
	tries := l.tries(r, lives)
	l.p.Actions.Lost(*r)
	switch {
	case f.tries < tries && !undelivered:
		l.p.Queue.Mark(r.Ref)
	case f.tries < tries:
		l.p.Actions.After(f.near(), work.Near, r.Ref)
	case r.Ref.Class == work.Vendor || r.Ref.Class == work.Notice:
		l.Forget(r.Ref)
		l.p.Actions.Unanswered(*r)
	case l.p.Keys.TriesNext(*r):
		l.Forget(r.Ref)
		l.p.Queue.Mark(r.Ref)
	case r.Ref.Class == work.SMInfo:
		l.Forget(r.Ref)
		l.p.Actions.Unanswered(*r)
	case r.Node == topo.None:
		l.noProbe(r)
	case lives:
		l.refuse(r, "no answer, although it answers other requests", health.Unresponsive)
	case l.p.Fabric.Entry(r.Ref) != topo.None:
		l.deadEnd(r)
	default:
		l.Forget(r.Ref)
		l.silence(r.Node)
	}
}

// tries returns how often a request is sent. lives says that its node has answered another one meanwhile.
func (l *List) tries(r *work.Request, lives bool) int {
	switch {
	case r.Ref.Class == work.SMInfo:
		return l.p.Fabric.ManagerTries(*r) // that its node lives says nothing of the SM
	case r.Node == topo.None:
		return l.p.Keys.ProbeTries(r.Ref)
	case lives:
		return 4 * l.lim.Tries // so this is loss on the way
	default:
		return l.lim.Tries
	}
}

// suspect looks at the last link of the way to a target that did not answer. If that one cannot be asked either, its own last
// link is next, and so on up to the link that is broken.
func (l *List) suspect(r *work.Request) {
	if r.Node == topo.None {
		if r.Ref.Class == work.Probe {
			l.p.Queue.MarkPort(work.Info, r.Ref.Port())
		}
		return
	}
	if up := l.p.Tree.Up(r.Node); up != topo.None {
		l.p.Queue.MarkPort(work.Info, up)
	}
}

// Spoke records that there was an answer. An error, or an answer to another request than the refused one, leaves the pauses
// as long as they have become.
func (l *List) Spoke(r *work.Request, status mad.Status) {
	f, failed := l.at[r.Ref]
	switch {
	case !failed:
	case status == mad.StatusOK && !r.Audit || f.rounds == 0:
		delete(l.at, r.Ref)
	default:
		f.tries = 0
		l.at[r.Ref] = f
	}
}

// Refused decides what follows from an answer that is an error.
func (l *List) Refused(r *work.Request, reason string) {
	cond := health.IllegalAnswer
	if r.Method == mad.MethodSet {
		cond = health.SetErrors
	}
	l.refuse(r, reason, cond)
}

// refuse leaves a piece of work for later, and reports that once.
func (l *List) refuse(r *work.Request, reason string, cond health.Condition) {
	var guid ib.GUID
	var num ib.PortNum
	if r.Node != topo.None {
		guid = l.p.Topo.NodeGUID(r.Node)
	}
	if !r.Ref.Class.IsOnNode() {
		num = l.p.Fabric.Port(r.Ref.Port()).Num
		if r.Node == topo.None {
			guid = 0
			reason = fmt.Sprintf("behind %v: %s", l.p.Topo.PlaceOf(r.Ref.Port()), reason)
		}
	}
	l.blame(r, cond)
	if l.at[r.Ref].rounds == 0 {
		l.p.Actions.ReportBad(guid, num, fmt.Sprintf("%v %v", r.Method, r.Attr), reason)
	}
	l.Pause(r.Ref)
}

// blame records a strike against the node that a request was for.
func (l *List) blame(r *work.Request, cond health.Condition) {
	switch {
	case l.p.Fabric.Entry(r.Ref) != topo.None:
		// A port of an adapter that was entered by itself: the device there might only claim to be a port of that node.
		l.p.Health.StrikePort(r.Ref.Port(), l.p.Topo.NodeGUID(r.Node), cond)
	case r.Node != topo.None:
		l.p.Health.StrikeNode(r.Node, cond)
	case r.Ref.Class == work.Probe:
		l.p.Health.StrikePort(r.Ref.Port(), 0, cond)
	}
}

// Pause looks at a piece of work again after ever longer pauses.
func (l *List) Pause(x work.Ref) {
	f := l.at[x]
	pause := l.lim.round(f.rounds)
	f.tries, f.rounds = 0, f.rounds+1
	l.at[x] = f
	l.p.Actions.After(pause, work.Retry, x)
}
