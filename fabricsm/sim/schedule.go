package sim

import (
	"container/heap"
	"time"
)

// schedule holds planned actions, in the order of time and, at the same time, of planning. The zero schedule is empty.
type schedule struct {
	heap    eventHeap
	planned uint64
}

type event struct {
	at  time.Duration
	seq uint64
	do  func() // with the fabric's mu held
}

func (s *schedule) add(at time.Duration, do func()) {
	s.planned++
	heap.Push(&s.heap, event{at, s.planned, do})
}

// next takes the first event that is due.
func (s *schedule) next(now time.Duration) (event, bool) {
	if len(s.heap) == 0 || s.heap[0].at > now {
		return event{}, false
	}
	return heap.Pop(&s.heap).(event), true
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(e any)   { *h = append(*h, e.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{} // so that its closure can be collected
	*h = (*h)[:last]
	return e
}

// Advance lets time pass: delayed packets arrive, and traps that were not repressed are repeated, each at its time. Then
// flows and floods send.
func (f *Fabric) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.elapse(d)
	f.tickFlows()
	f.settle()
}

// Elapse is Advance without the traffic of flows and floods: a part of a step.
func (f *Fabric) Elapse(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.elapse(d)
	f.settle()
}

func (f *network) elapse(d time.Duration) {
	until := f.now + d
	for {
		e, ok := f.later.next(until)
		if !ok {
			break
		}
		f.now = max(f.now, e.at)
		e.do()
		f.run()
	}
	f.now = until
}

// Now is the time that has passed by Advance.
func (f *Fabric) Now() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// NextEvent is the time of the next thing that waits for Advance; false means
// that there is none.
func (f *Fabric) NextEvent() (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.later.heap) == 0 {
		return 0, false
	}
	return f.later.heap[0].at, true
}
