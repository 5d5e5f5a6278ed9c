package pacing

import (
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Suspects says which nodes hang on the rest of the fabric by one cable.
type Suspects interface{ IsSuspect(topo.NodeID) bool }

// Throttle has work on subtrees that hang by one cable wait while as many answers are late as the window has requests. A
// host that answers late on purpose, ever at another node, must not use up the requests that silent nodes leave to the
// others. Use NewThrottle.
type Throttle struct {
	suspects Suspects
	topo     *topo.Builder
	queue    *work.Queue
	wire     *work.Window
	most     int        // answers that may be late
	waiting  []work.Ref // until fewer are
}

// NewThrottle returns a throttle for a window of some size.
func NewThrottle(s Suspects, t *topo.Builder, q *work.Queue, w *work.Window, size int) Throttle {
	return Throttle{suspects: s, topo: t, queue: q, wire: w, most: size}
}

// Delays reports whether a piece of work has to wait, and has it wait. The target is None for a node that is not known yet.
func (t *Throttle) Delays(x work.Ref, target topo.NodeID) bool {
	if t.wire.Late() < t.most || !t.isSuspect(x, target) {
		return false
	}
	t.waiting = append(t.waiting, x)
	return true
}

// Affects reports whether a request is about such a subtree while more work on such subtrees waits. No other work waits for
// the answer.
func (t *Throttle) Affects(r *work.Request) bool {
	return len(t.waiting) > 0 && t.isSuspect(r.Ref, r.Node)
}

// isSuspect reports whether work, or what it looks for, is on such a subtree.
func (t *Throttle) isSuspect(x work.Ref, target topo.NodeID) bool {
	if target == topo.None && x.Class == work.Probe {
		target = t.topo.Port(x.Port()).Node
	}
	return target != topo.None && t.suspects.IsSuspect(target)
}

// Resume puts as much of the work that waits back as there is room for.
func (t *Throttle) Resume() {
	n := min(len(t.waiting), t.most-t.wire.Late())
	if n <= 0 {
		return
	}
	t.queue.PutBackAll(t.waiting[:n])
	if t.waiting = t.waiting[n:]; len(t.waiting) == 0 {
		t.waiting = nil
	}
}
