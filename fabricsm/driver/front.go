package driver

import (
	"time"

	"portcullis/fabricsm/transport"
)

// admits reports whether a packet that nobody waits for is looked at.
func (l *loop) admits(p *transport.Packet) bool {
	if l.sa == nil {
		return true
	}
	if s := l.sa.sight.Load(); s != l.sighted && s != nil {
		l.sa.front.Look(s)
		l.sighted = s
	}
	return l.sa.front.Admit(l.now, p)
}

// nextDropped gives when something is due at the latest.
func (l *loop) nextDropped(at time.Time) time.Time {
	if l.sa == nil {
		return at
	}
	if due := l.sa.front.Next(); !due.IsZero() && due.Before(at) {
		return due
	}
	return at
}

// tellDropped tells of packets that were not admitted.
func (l *loop) tellDropped() {
	if l.sa == nil {
		return
	}
	for _, e := range l.sa.front.Tell(l.now) {
		l.tell(e)
	}
}
