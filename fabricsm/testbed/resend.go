package testbed

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// As the driver does, the stage sends requests again that read, with the same transaction id, while packets get lost
// because too many wait: answers to the manager are among those. It also waits longer for answers.
const (
	againAfter = 10 * time.Millisecond // then each time later by half
	crowdLasts = time.Second           // how long after a loss requests are sent again
	crowdWaits = 3                     // how many times as long answers are waited for
)

// again is of a request that is out and may be sent again.
type again struct {
	packet transport.Packet
	at     time.Time // zero: never
	pause  time.Duration
}

// crowded reports whether packets were lost within the last second because too many waited.
func (s *Stage) crowded() bool { return !s.crowdEnd.IsZero() && s.now.Before(s.crowdEnd) }

// mayRepeat notes that a request which reads may be sent again.
func (s *Stage) mayRepeat(r *pending, p transport.Packet) {
	if s.Work != (Work{}) && p.MAD.Method() == mad.MethodGet {
		r.again = again{packet: p, at: s.now.Add(againAfter), pause: againAfter}
	}
}

// resendAt returns when the first request is due to be sent again; zero: none is.
func (s *Stage) resendAt() (at time.Time) {
	if !s.crowded() {
		return time.Time{}
	}
	for _, r := range s.order {
		if a := r.again.at; !r.ended && !a.IsZero() && (at.IsZero() || a.Before(at)) {
			at = a
		}
	}
	return at
}

// resend sends the requests again that are due.
func (s *Stage) resend() {
	for _, r := range s.order {
		if r.ended || r.again.at.IsZero() || s.now.Before(r.again.at) {
			continue
		}
		r.again.pause += r.again.pause / 2
		r.again.at = s.now.Add(r.again.pause)
		s.transmit(r.again.packet)
	}
}
