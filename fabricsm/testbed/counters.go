package testbed

import (
	"slices"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/counterwatch"
	"portcullis/fabricsm/transport"
)

// counters is the watch over counters beside the core.
type counters struct {
	watch *counterwatch.Watch // nil: no manager runs
	wake  time.Time
}

// startCounters begins the watch.
func (s *Stage) startCounters() { s.counters.watch = counterwatch.New(s.SM.Counters, s.core) }

// stepCounters passes an input to the watch and executes its output.
func (s *Stage) stepCounters(in counterwatch.Input) {
	core := s.core
	if s.counters.watch == nil {
		return
	}
	out := s.counters.watch.Step(s.now, in)
	for _, e := range out.Events {
		s.events = append(s.events, Happened{s.Now(), e})
	}
	s.counters.wake = out.Wake
	counted := slices.Clone(out.Counted) // stepping the core may step the watch
	for i := range out.Send {
		if s.send(&out.Send[i], ofCounters); s.core != core {
			return
		}
	}
	if out.Refused != nil {
		s.Step(out.Refused)
	}
	for i := range counted {
		s.Step(&counted[i])
	}
}

// isForCounters reports whether a packet is for the watch.
func (s *Stage) isForCounters(p *transport.Packet) bool {
	return s.counters.watch != nil && s.counters.watch.Asks() && p.MAD.Class() == mad.ClassPerf
}

// deliverToCounters passes an answer to the watch.
func (s *Stage) deliverToCounters(p *transport.Packet) {
	if r := s.out[p.MAD.TID()&tidMask]; r != nil && r.who == ofCounters && r.answeredBy(p) {
		s.end(r)
		s.replied(r, outcomeOf(p), &p.MAD)
	}
}
