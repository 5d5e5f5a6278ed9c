package rmpp

import (
	"time"

	"portcullis/fabricsm/mad"
)

// session is one transaction: it sends or receives a message.
type session[A any] struct {
	place place
	back  A
	port  *port[A]
	prev  *session[A] // of the same port
	next  *session[A]

	at    time.Time // when it is due
	order uint64    // and which of those that are due together comes first
	index int       // in Table.due

	moved time.Time // when the peer was last heard of to some effect
	endAt time.Time // when it takes too long
	ackAt time.Time // when to send again
	tries int       // how often that was done since the last ACK

	expected bool // nothing of it has come, and it may still
	twoSided bool // it answers a request that is segments, too

	send sender
	recv receiver
}

// idle reports whether a transaction has not begun: an answer that is expected.
func (s *session[A]) idle() bool { return s.expected && s.recv.inOrder == 0 }

// turn sends the allowed segments of a message, at most a burst, and schedules the next turn. It returns how many segments
// that was.
func (t *Table[A]) turn(now time.Time, s *session[A], sink Sink[A]) (work int) {
	if s.send.wide() {
		s.send.widen(t.ring())
	}
	sent := s.send.sent
	s.send.paused = false
	for work < t.cfg.Burst && s.send.emit(&t.out) {
		work++
		sink.Send(s.back, &t.out)
	}
	t.stats.Segments += uint64(work)
	t.stats.Resent += uint64(work) - uint64(s.send.sent-sent)
	switch {
	case s.send.broken:
		t.abort(s, mad.RMPPUnspecified, sink)
		return work
	case s.send.gaveUp:
		if s.send.sent > 0 {
			t.stats.Stops++
			t.control(s, mad.RMPPStop, mad.RMPPResX, sink)
		}
		t.end(s, Stopped, mad.RMPPResX, sink)
		return work
	}
	at := s.endAt
	switch {
	case s.send.expecting():
		// A peer acknowledges at the end of its window, so it has time from the last
		// segment on, and none passes while a source pauses.
		if work > 0 || !s.ackAt.After(now) {
			s.ackAt = now.Add(t.cfg.Timeout)
		}
		if s.ackAt.Before(at) {
			at = s.ackAt
		}
	default:
		// At the next step, after the others that are due.
		if soon := now.Add(1); soon.Before(at) {
			at = soon
		}
	}
	t.schedule(s, at)
	if s.send.paused {
		work = t.cfg.Burst
	}
	return work
}

// expire does the due work of a transaction, and returns its amount in segments.
func (t *Table[A]) expire(now time.Time, s *session[A], sink Sink[A]) (work int) {
	switch {
	case !s.endAt.After(now):
		if s.expected {
			t.end(s, Aborted, mad.RMPPT2L, sink)
		} else {
			t.abort(s, mad.RMPPT2L, sink)
		}
		return 0
	case s.send.expecting():
		if s.tries >= t.cfg.Retries {
			t.abort(s, mad.RMPPTMR, sink)
			return 0
		}
		s.tries++
		s.send.again()
	}
	return t.turn(now, s, sink)
}

// abort ends a transaction with an ABORT to the peer.
func (t *Table[A]) abort(s *session[A], why mad.RMPPStatus, sink Sink[A]) {
	t.stats.abort(why)
	t.control(s, mad.RMPPAbort, why, sink)
	t.end(s, Aborted, why, sink)
}

// control sends a control packet to the peer out of turn.
func (t *Table[A]) control(s *session[A], y mad.RMPPType, why mad.RMPPStatus, sink Sink[A]) {
	if s.place.sending {
		onward(&t.out, s.send.head[:], y, why, 0, 0)
	} else {
		reply(&t.out, s.recv.head[:], y, why, 0, 0)
	}
	sink.Send(s.back, &t.out)
}

// end takes a transaction out of the table.
func (t *Table[A]) end(s *session[A], c Cause, why mad.RMPPStatus, sink Sink[A]) {
	e := End{Key: s.place.key, Sending: s.place.sending, Cause: c, Status: why, Sent: s.send.sent, Source: s.send.src}
	t.stats.end(e)
	t.close(s)
	sink.Ended(e)
}

// ring is a ring of segments for a wide window.
func (t *Table[A]) ring() []segment {
	if n := len(t.idleRings); n > 0 {
		r := t.idleRings[n-1]
		t.idleRings = t.idleRings[:n-1]
		return r
	}
	return make([]segment, t.cfg.Window+2)
}
