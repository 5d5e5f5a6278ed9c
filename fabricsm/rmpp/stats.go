package rmpp

import "portcullis/fabricsm/mad"

// Stats are the state and the counters of a Table. All but the first three only grow.
type Stats struct {
	Sending    int // transactions that send
	Receiving  int // transactions that receive, and answers that are expected
	Remembered int // messages that arrived lately

	Opened   uint64 // transactions
	Done     uint64 // of those, with all that was to send or receive
	Messages uint64 // that arrived, also those of one segment, which open nothing
	Segments uint64 // sent, again or for the first time
	Resent   uint64 // of those, again
	Refused  uint64 // transactions for want of room
	Evicted  uint64 // transactions that were ended to make room for another
	Stops    uint64 // STOP packets sent
	PeerStop uint64 // transactions stopped by a peer
	PeerEnd  uint64 // transactions aborted by a peer
	Ignored  uint64 // packets that belong to nothing

	aborts [mad.RMPPUnspecified - mad.RMPPT2L + 1]uint64
}

// Aborts is how many ABORT packets were sent with a status: RMPPT2L to
// RMPPUnspecified.
func (s *Stats) Aborts(why mad.RMPPStatus) uint64 {
	if why < mad.RMPPT2L || why > mad.RMPPUnspecified {
		return 0
	}
	return s.aborts[why-mad.RMPPT2L]
}

// Stats returns the state and the counters of the table.
func (t *Table[A]) Stats() Stats {
	s := t.stats
	s.Remembered = len(t.memory.at)
	return s
}

func (s *Stats) abort(why mad.RMPPStatus) { s.aborts[why-mad.RMPPT2L]++ }

func (s *Stats) open(sending bool) {
	s.Opened++
	if sending {
		s.Sending++
	} else {
		s.Receiving++
	}
}

func (s *Stats) end(e End) {
	if e.Sending {
		s.Sending--
	} else {
		s.Receiving--
	}
	switch e.Cause {
	case Done:
		s.Done++
	case PeerStopped:
		s.PeerStop++
	case PeerAborted:
		s.PeerEnd++
	case Stopped, Aborted, Cancelled: // counted by the sent packets, if there are any
	}
}
