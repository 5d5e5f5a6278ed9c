package work

import "time"

// Alarm is what to do when a timer is due.
type Alarm uint8

// Alarms. Those up to Report are about a node or port, and void when that is gone.
const (
	Retry      Alarm = iota // look at Ref again
	Near                    // the same, after so short a pause that the fabric is not settled
	Unhold                  // Ref has an allowance again
	Verify                  // verify a switch that sent traps
	Report                  // read the counters of a port that traps reported
	Intent                  // stop waiting for the first intent
	Audit                   // next step of the background audit
	Watch                   // look at our own port
	Poll                    // standby: ask the master
	Route                   // routing has waited long enough
	Health                  // look after the sick
	Rotate                  // go on with the rotation of keys
	Background              // next batch of low-priority work
	Turn                    // the port of Ref had long enough to get onto its new key
	Violations              // report again violations that grew
	Lease                   // a tool has had a key for long enough
	KeepLeases              // read devices before the leases of their keys run out
	LIDs                    // read LIDs of adapters
	Closed                  // ask behind switch ports that are closed
	Succession              // devices had long enough to drop the keys of the instance before
)

// Timer is something that becomes due.
type Timer struct {
	At    time.Time
	Alarm Alarm
	Ref   Ref
	Epoch uint32 // of the node of Ref
	seq   uint64 // order of equal times
}

func (t *Timer) before(o *Timer) bool {
	if !t.At.Equal(o.At) {
		return t.At.Before(o.At)
	}
	return t.seq < o.seq
}

// Timers is what becomes due: a heap, with the first at its top. The zero Timers is empty.
type Timers struct {
	heap []Timer
	seq  uint64
	near int
}

// fewTimers is how many timers there is room for at least.
const fewTimers = 16

// Add adds a timer.
func (h *Timers) Add(t Timer) {
	h.seq++
	t.seq = h.seq
	if t.Alarm == Near {
		h.near++
	}
	if h.heap == nil {
		h.heap = make([]Timer, 0, fewTimers)
	}
	h.heap = append(h.heap, t)
	i := len(h.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !t.before(&h.heap[up]) {
			break
		}
		h.heap[i] = h.heap[up]
		i = up
	}
	h.heap[i] = t
}

// Due removes the first timer that is due at a time, and returns it. It reports false if none is.
func (h *Timers) Due(now time.Time) (Timer, bool) {
	if len(h.heap) == 0 || h.heap[0].At.After(now) {
		return Timer{}, false
	}
	first, last := h.heap[0], h.heap[len(h.heap)-1]
	if h.heap = h.heap[:len(h.heap)-1]; len(h.heap) > 0 {
		h.sink(last)
	}
	if first.Alarm == Near {
		h.near--
	}
	return first, true
}

// sink puts a timer in place of the first.
func (h *Timers) sink(t Timer) {
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h.heap) {
			break
		}
		if right := down + 1; right < len(h.heap) && h.heap[right].before(&h.heap[down]) {
			down = right
		}
		if !h.heap[down].before(&t) {
			break
		}
		h.heap[i] = h.heap[down]
		i = down
	}
	h.heap[i] = t
}

// Next returns the time at which the first timer is due, zero without one.
func (h *Timers) Next() time.Time {
	if len(h.heap) == 0 {
		return time.Time{}
	}
	return h.heap[0].At
}

// HasNear reports whether there is a Near timer.
func (h *Timers) HasNear() bool { return h.near > 0 }

// AnyNear reports whether a Near timer is for work that matches.
func (h *Timers) AnyNear(match func(Ref) bool) bool {
	if h.near == 0 {
		return false
	}
	for i := range h.heap {
		if h.heap[i].Alarm == Near && match(h.heap[i].Ref) {
			return true
		}
	}
	return false
}
