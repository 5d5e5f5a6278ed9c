package driver

import (
	"slices"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/counterwatch"
	"portcullis/fabricsm/transport"
)

// counters runs the watch over counters beside the core, over the same port. It only sends requests, in a class that is not
// used otherwise here.
type counters struct {
	watch *counterwatch.Watch
	out   timeouts
	reply counterwatch.Reply
	seen  counterwatch.Seen
	wake  time.Time
}

func (l *loop) initCounters() {
	l.counters.watch = counterwatch.New(l.o.Core.Counters, l.core)
	l.counters.out.init(l.o.Timeout)
}

// ofCounters reports whether a packet is for the watch.
func (l *loop) ofCounters(p *transport.Packet) bool {
	return l.counters.watch.Asks() && p.MAD.Class() == mad.ClassPerf
}

// takeCounters steps in an answer. Requests of others are ignored.
func (l *loop) takeCounters(p *transport.Packet) {
	c := &l.counters
	if !p.Undelivered && p.MAD.Method() != mad.MethodGetResp {
		return
	}
	if id, v := c.out.end(p); v == taken {
		c.reply.ID, c.reply.Outcome, c.reply.MAD = id, sm.Answered, p.MAD
		if p.Undelivered {
			c.reply.Outcome = sm.Undelivered
		}
		l.stepCounters(&c.reply)
	}
}

// expireCounters steps in requests that were not answered in time, and the wake.
func (l *loop) expireCounters() {
	c := &l.counters
	for {
		id, ok := c.out.expired(l.now)
		if !ok {
			break
		}
		c.reply.ID, c.reply.Outcome = id, sm.TimedOut
		l.stepCounters(&c.reply)
	}
	if !c.wake.IsZero() && !l.now.Before(c.wake) {
		l.stepCounters(&counterwatch.Woken{})
	}
}

// next returns the earlier of at and the time at which the next work is due.
func (c *counters) next(at time.Time) time.Time {
	if due, ok := c.out.next(); ok && due.Before(at) {
		at = due
	}
	if !c.wake.IsZero() && c.wake.Before(at) {
		at = c.wake
	}
	return at
}

// stepCounters advances the watch and gathers what it wants done.
func (l *loop) stepCounters(in counterwatch.Input) {
	c := &l.counters
	out := c.watch.Step(l.now, in)
	for i := range out.Send {
		r := &out.Send[i]
		l.send = append(l.send, transport.Packet{MAD: r.MAD, LID: r.LID, QP: gmpQP})
		c.out.begin(r, &l.send[len(l.send)-1].MAD)
	}
	c.wake = out.Wake
	for _, e := range out.Events {
		l.tell(e)
	}
	if out.Refused != nil {
		l.step(out.Refused)
	}
	for _, n := range slices.Clone(out.Counted) { // stepping the core may step the watch
		l.step(&n)
	}
}
