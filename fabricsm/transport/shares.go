package transport

import "portcullis/fabricsm/ib"

// Shares bounds what one source may hold of a queue that others need, too. While the
// queue is at most half full anybody has a place; then only who holds less than a
// sixteenth of it. So who sends more than is received loses his own packets, and has
// half of the queue at most, however long nobody receives.
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

// Give notes that a packet of a source left the queue.
func (s *Shares) Give(source ib.LID) { s.held[source]-- }
