package perfmgr

import "time"

// slot is a place of the window: an agent that is being read.
type slot struct {
	agent *agent
	step  step
	port  int // of the agent, by index
	out   bool
	tid   uint32 // of the request that is out
	until time.Time
	// neighbours among those that are out, in the order in which they expire
	before, after int
}

// step is what an agent is asked next.
type step uint8

const (
	askInfo step = iota
	askLong
	askShort
)

// window has the agents that are being read.
type window struct {
	slots []slot
	free  []int
	ready queue // have something to ask
	first int   // of those that are out
	last  int
}

func newWindow(n int) window {
	w := window{slots: make([]slot, n), free: make([]int, n), ready: queue{at: make([]int, n)}, first: none, last: none}
	for i := range w.free {
		w.free[i] = n - 1 - i
	}
	return w
}

// busy returns how many agents are being read.
func (w *window) busy() int { return len(w.slots) - len(w.free) }

// take assigns a place to an agent. There must be one.
func (w *window) take(a *agent) int {
	i := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	w.slots[i] = slot{agent: a}
	a.slot = i
	return i
}

// release ends the reading of an agent whose request is not out and that has nothing to ask.
func (w *window) release(i int) {
	s := &w.slots[i]
	s.agent.slot = none
	s.agent = nil
	w.free = append(w.free, i)
}

// drop ends the reading of an agent in any state.
func (w *window) drop(i int) {
	if w.slots[i].out {
		w.back(i)
	} else {
		w.ready.remove(i)
	}
	w.release(i)
}

// sent notes that the request of a slot is out.
func (w *window) sent(i int, tid uint32, until time.Time) {
	s := &w.slots[i]
	s.out, s.tid, s.until, s.before, s.after = true, tid, until, w.last, none
	if w.last == none {
		w.first = i
	} else {
		w.slots[w.last].after = i
	}
	w.last = i
}

// back notes that the request of a slot has ended.
func (w *window) back(i int) {
	s := &w.slots[i]
	if s.before == none {
		w.first = s.after
	} else {
		w.slots[s.before].after = s.after
	}
	if s.after == none {
		w.last = s.before
	} else {
		w.slots[s.after].before = s.before
	}
	s.out = false
}

// queue is a ring that has room for all slots.
type queue struct {
	at   []int
	from int
	n    int
}

func (q *queue) push(i int) {
	q.at[(q.from+q.n)%len(q.at)] = i
	q.n++
}

func (q *queue) pop() (int, bool) {
	if q.n == 0 {
		return 0, false
	}
	i := q.at[q.from]
	q.from = (q.from + 1) % len(q.at)
	q.n--
	return i, true
}

// remove takes a slot out of the ring, if it is there.
func (q *queue) remove(i int) {
	for n := q.n; n > 0; n-- {
		if j, _ := q.pop(); j != i {
			q.push(j)
		}
	}
}
