package transport

import "portcullis/fabricsm/ib"

// Shares bounds the share of one source in a queue that other sources need, too. While less than half of the queue is in
// use, every source may add packets. Then only sources that hold less than a sixteenth of it may. So a source that sends
// more than is received loses its own packets. It never holds more than half of the queue, however long no packet is
// received.
type Shares struct {
	most int
	held []uint16 // by source LID
}

// NewShares is for an empty queue of so many places, at most 65,535.
func NewShares(places int) *Shares {
	return &Shares{most: places, held: make([]uint16, 1<<16)}
}

// Take reports whether a packet of a source may stand in the queue, in which so many wait
// already. If so it counts from now on.
func (s *Shares) Take(source ib.LID, waiting int) bool {
	held := &s.held[source]
	if waiting >= s.most || waiting >= s.most/2 && int(*held) >= s.most/16 {
		return false
	}
	*held++
	return true
}

// Release records that a packet of a source left the queue.
func (s *Shares) Release(source ib.LID) { s.held[source]-- }
