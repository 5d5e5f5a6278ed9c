package driver

import (
	"time"

	"portcullis/fabricsm/sm"
)

// timeouts knows which requests are out and when each is given up. All wait
// equally long, so the order of sending is the order of expiry.
type timeouts struct {
	wait time.Duration
	out  map[sm.RequestID]struct{}
	fifo []sent
	head int
	new  int // first entry that was not stamped yet
}

type sent struct {
	id  sm.RequestID
	due time.Time
}

func (t *timeouts) init(wait time.Duration) {
	t.wait = wait
	t.out = make(map[sm.RequestID]struct{})
}

// begin notes a request that is about to be sent.
func (t *timeouts) begin(id sm.RequestID) {
	t.out[id] = struct{}{}
	t.fifo = append(t.fifo, sent{id: id})
}

// stamp starts the time of all requests begun since the last stamp.
func (t *timeouts) stamp(now time.Time) {
	for ; t.new < len(t.fifo); t.new++ {
		t.fifo[t.new].due = now.Add(t.wait)
	}
}

// end takes an answer; false if the request is not out.
func (t *timeouts) end(id sm.RequestID) bool {
	_, ok := t.out[id]
	delete(t.out, id)
	return ok
}

// next gives when the oldest request expires.
func (t *timeouts) next() (time.Time, bool) {
	t.skip()
	if t.head >= t.new {
		return time.Time{}, false
	}
	return t.fifo[t.head].due, true
}

// expired gives a request whose time is over, and forgets it.
func (t *timeouts) expired(now time.Time) (sm.RequestID, bool) {
	t.skip()
	if t.head >= t.new || now.Before(t.fifo[t.head].due) {
		return 0, false
	}
	id := t.fifo[t.head].id
	delete(t.out, id)
	t.head++
	return id, true
}

// skip passes entries that were answered, and gives their memory back.
func (t *timeouts) skip() {
	for t.head < t.new {
		if _, ok := t.out[t.fifo[t.head].id]; ok {
			break
		}
		t.head++
	}
	if t.head > 4096 || t.head == len(t.fifo) {
		n := copy(t.fifo, t.fifo[t.head:])
		t.fifo = t.fifo[:n]
		t.new -= t.head
		t.head = 0
	}
}
