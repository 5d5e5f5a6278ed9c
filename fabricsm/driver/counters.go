package driver

import (
	"slices"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/counterwatch"
	"portcullis/fabricsm/transport"
)

// counters is the watch over counters.
type counters struct {
	l     *loop
	run   *beside
	watch *counterwatch.Watch
	seen  counterwatch.Seen
}

func (l *loop) initCounters() {
	c := &counters{l: l, watch: counterwatch.New(l.o.Core.Counters, l.core)}
	c.run = newBeside(c, l.o.Timeout)
	l.besides = append(l.besides, c.run)
}

func (c *counters) owns(p *transport.Packet) bool {
	return p.MAD.Class() == mad.ClassPerf && c.watch.Asks()
}

// received ignores requests of others.
func (*counters) received(*transport.Packet) {}

func (c *counters) replied(r *sm.Reply) { c.step((*counterwatch.Reply)(r)) }

func (c *counters) woken() { c.step(&counterwatch.Woken{}) }

func (c *counters) shown(v *sm.View) {
	c.seen.View = v
	c.step(&c.seen)
}

// step advances the watch and gathers the work that it requests.
func (c *counters) step(in counterwatch.Input) {
	l := c.l
	out := c.watch.Step(l.now, in)
	l.request(c.run, out.Send)
	c.run.wake = out.Wake
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
