package ibsim

import "portcullis/fabricsm/transport"

// queue holds packets in order, in a ring that grows as far as it may.
type queue struct {
	ring []transport.Packet
	head int
	n    int
	most int

	shares *transport.Shares // of sources; nil: first come, first served
}

// firstQueue is the size of a ring that held nothing before.
const firstQueue = 64

// room is how many packets it can still take.
func (q *queue) room() int { return q.most - q.n }

// push takes a place at the end, to be filled; nil: there is none.
func (q *queue) push() *transport.Packet {
	if q.n == len(q.ring) && !q.grow() {
		return nil
	}
	q.n++
	return &q.ring[(q.head+q.n-1)%len(q.ring)]
}

// keep records that the last pushed packet is filled, and reports whether it stays.
func (q *queue) keep() bool {
	if q.shares != nil && !q.shares.Take(q.ring[(q.head+q.n-1)%len(q.ring)].LID, q.n-1) {
		q.n--
		return false
	}
	return true
}

func (q *queue) grow() bool {
	if q.n >= q.most {
		return false
	}
	ring := make([]transport.Packet, min(q.most, max(firstQueue, 2*q.n)))
	n := q.n
	q.move(ring)
	q.ring, q.head, q.n = ring, 0, n
	return true
}

// pop moves as many as fit.
func (q *queue) pop(to []transport.Packet) int {
	n := q.move(to)
	if q.shares != nil {
		for i := range to[:n] {
			q.shares.Release(to[i].LID)
		}
	}
	return n
}

func (q *queue) move(to []transport.Packet) (n int) {
	for n < len(to) && q.n > 0 {
		k := copy(to[n:], q.ring[q.head:min(q.head+q.n, len(q.ring))])
		n += k
		q.n -= k
		q.head = (q.head + k) % len(q.ring)
	}
	return n
}
