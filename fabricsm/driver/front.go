package driver

import (
	"sync"
	"sync/atomic"
	"time"

	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/transport"
)

// gate filters packets in front of the core. The receiving goroutine drops a flood by it, so that the loop is not woken for
// dropped packets; the loop reports them.
type gate struct {
	mu      sync.Mutex
	front   *sa.Front
	sight   atomic.Pointer[sa.Sight] // the newest
	sighted *sa.Sight                // the last that front was shown
	dropped chan struct{}            // receives when the first packet since the last report was dropped

	crowding crowding
}

func newGate(front *sa.Front) *gate {
	return &gate{front: front, dropped: make(chan struct{}, 1)}
}

// front is that of subnet administration; without it there is one alone.
func (l *loop) front() *sa.Front {
	if l.o.SA != nil {
		return l.o.SA.Front()
	}
	f, err := sa.NewFront(limiter.DefaultConfig())
	if err != nil {
		panic("driver: " + err.Error()) // a test holds that the defaults are valid
	}
	return f
}

// sift leaves out packets that answer no request and that are not admitted.
func (l *loop) sift(now time.Time, buf []transport.Packet) []transport.Packet {
	g := l.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look(g.sight.Load())
	told, kept := g.front.Next().IsZero(), 0
	for i := range buf {
		if l.asksOurselves(&buf[i]) && !g.front.Admit(now, &buf[i]) {
			continue
		}
		if kept != i {
			buf[kept] = buf[i]
		}
		kept++
	}
	if dropped := len(buf) - kept; dropped > 0 {
		g.crowding.note(now, dropped)
	}
	if told && !g.front.Next().IsZero() {
		select {
		case g.dropped <- struct{}{}:
		default:
		}
	}
	return buf[:kept]
}

// asksOurselves reports whether a packet is a request of another device to this manager, and not a possible answer.
func (l *loop) asksOurselves(p *transport.Packet) bool {
	return !p.Undelivered && !isAnswer(p) && l.owner(p) == nil
}

// look shows what the newest view says of ports. Called with mu held.
func (g *gate) look(s *sa.Sight) {
	if s != g.sighted && s != nil {
		g.front.Look(s)
		g.sighted = s
	}
}

// admits reports whether an answer without a request is looked at.
func (l *loop) admits(p *transport.Packet) bool {
	g := l.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look(g.sight.Load())
	return g.front.Admit(l.now, p)
}

// status says how it stands.
func (g *gate) status() sa.FrontStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.front.Status()
}

// nextDropped returns the earlier of at and the time at which the next report is due.
func (l *loop) nextDropped(at time.Time) time.Time {
	g := l.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if due := g.front.Next(); !due.IsZero() && due.Before(at) {
		return due
	}
	return at
}

// tellDropped reports packets that were not admitted.
func (l *loop) tellDropped() {
	g := l.gate
	g.mu.Lock()
	events := g.front.Report(l.now)
	g.mu.Unlock()
	for _, e := range events {
		l.tell(e)
	}
}
