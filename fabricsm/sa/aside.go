package sa

import (
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/transport"
)

// Aside answers questions as an Agent answers them, to a caller that has no port. Its configuration, the fabric that it knows, the
// registrations and all code that makes an answer are those of the agent. Limits, counters, sessions and the list of violations are its
// own, so a question takes nothing from the port that it names, counts for nothing, and leaves nothing behind. It takes questions alone.
//
// It is for the goroutine of the agent, or for a caller that holds the agent's lock.
type Aside struct {
	of   *Agent
	twin Agent
	out  Output
}

// Aside returns one. It holds some megabytes.
func (a *Agent) Aside() (*Aside, error) {
	s := &Aside{of: a}
	t := &s.twin
	t.quiet, t.held = true, true
	t.wrongs = trust.NewViolations(trust.Bounds{})
	var errs [4]error
	t.limiter, errs[0] = limiter.New(a.cfg.Limiter)
	t.work, errs[1] = limiter.NewWork(a.cfg.Limiter.Work)
	t.changes, errs[2] = limiter.NewWork(limiter.WorkConfig{Node: a.cfg.Limiter.Changes})
	t.sessions, errs[3] = rmpp.New[way](a.cfg.RMPP)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	t.guard = a.guard.Apart()
	return s, nil
}

// Serving reports whether hosts are answered now.
func (a *Agent) Serving() bool { return a.serving }

// follow has the twin know what the agent knows now.
func (s *Aside) follow() error {
	a, t := s.of, &s.twin
	if t.cfg.Limiter != a.cfg.Limiter {
		if err := s.rest(); err != nil {
			return err
		}
	}
	t.cfg, t.keys, t.book, t.serving, t.settled = a.cfg, a.keys, a.book, a.serving, a.settled
	t.groups, t.services, t.subs, t.aliases, t.fabric, t.paths = a.groups, a.services, a.subs, a.aliases, a.fabric, a.paths
	if t.nodes != a.nodes {
		t.nodes = a.nodes
		t.limiter.SetNodes(a.nodes)
	}
	return t.guard.Configure(a.cfg.Trust)
}

// rest resets what earlier questions of this Aside took from ports.
func (s *Aside) rest() error {
	c := &s.of.cfg.Limiter
	s.twin.guard = s.of.guard.Apart()
	return errors.Join(s.twin.limiter.Configure(*c), s.twin.work.Configure(c.Work))
}

// limited counts packets that were not looked at because the port of a question had sent too many, and answers that were given up because
// its questions had cost too much.
func (s *Aside) limited() (packets, answers uint64) {
	t := &s.twin.stats
	return t.Limited + t.Refused[trust.TooOften], t.Costly
}

// Heard is what came back to a question.
type Heard struct {
	Segments []mad.MAD // of the answer, in order; one without RMPP; none: there was no answer
	// Cut is true if the answer was longer than an Inquiry takes, or ended before its last segment.
	Cut bool
}

const (
	// maxSegments is how many segments of an answer are taken: 800 kB.
	maxSegments = 4096
	// maxSteps bounds the steps of one question.
	maxSteps = 1 << 14
	// askWindow is how many segments are taken before an acknowledgement.
	askWindow = 32
)

// Ask has a question answered at once, for a caller without a clock: each step is a millisecond after the one before.
func (s *Aside) Ask(now time.Time, p *transport.Packet) (Heard, error) {
	q, err := s.Question(p)
	if err != nil {
		return Heard{}, err
	}
	for {
		done, err := q.Step(now)
		if done || err != nil {
			return q.Heard(), err
		}
		now = now.Add(time.Millisecond)
	}
}

// Inquiry is a question under way.
type Inquiry struct {
	aside  *Aside
	packet transport.Packet // to be taken next
	base   ib.LID           // of the port that asks, 0: none
	taken  bool             // packet was
	rested bool             // the limits were reset for packet
	again  bool             // and the question was repeated
	steps  int
	ask    transport.Packet
	heard  Heard
}

// Question begins a question: p is the packet as it would have come from the port with its LID. It refuses packets that are no questions.
func (s *Aside) Question(p *transport.Packet) (*Inquiry, error) {
	m := &p.MAD
	switch m.Method() {
	case mad.MethodGet, mad.MethodGetTable, mad.MethodGetMulti, mad.MethodGetTrace:
	default:
		return nil, fmt.Errorf("ask subnet administration: method %v changes something or asks for nothing: want Get, GetTable, GetMulti or GetTraceTable", m.Method())
	}
	if m.Class() != mad.ClassSubnAdm || m.RMPPFlags().Has(mad.RMPPActive) {
		return nil, errors.New("ask subnet administration: want a MAD of class 0x03 that is not a segment")
	}
	q := &Inquiry{aside: s, packet: *p, ask: *p}
	if e := s.of.book.ByLID(p.LID); e != nil {
		q.base = e.LID
	}
	return q, nil
}

// Step goes on with a question, for at most a stride. done reports that Heard is all there will be.
func (q *Inquiry) Step(now time.Time) (done bool, err error) {
	s, t := q.aside, &q.aside.twin
	if err := s.follow(); err != nil {
		return true, err
	}
	s.out.Reset()
	packets, answers := s.limited()
	if !q.taken {
		q.taken = true
		t.Take(now, &q.packet, &s.out)
	} else {
		t.out, t.now, t.rest = &s.out, now, stride/2
		t.goOn(now)
		t.rest = stride / 2
		t.sessions.Expire(now, t)
	}
	switch p, a := s.limited(); {
	case a > answers && !q.again:
		q.forget()
		*q = Inquiry{aside: s, packet: q.ask, ask: q.ask, base: q.base, again: true, steps: q.steps}
		return false, s.rest()
	case p > packets && !q.rested:
		q.taken, q.rested = false, true
		return false, s.rest()
	}
	for i := range s.out.Send {
		if q.hear(&s.out.Send[i]) {
			q.forget()
			return true, nil
		}
	}
	if q.steps++; q.steps >= maxSteps {
		q.heard.Cut = true
		q.forget()
		return true, nil
	}
	return q.taken && len(t.later) == 0 && t.sessions.Next().IsZero(), nil
}

// Waits reports whether the next step has nothing to do before some time has passed.
func (q *Inquiry) Waits() bool { return q.taken && len(q.aside.twin.later) == 0 }

// Heard returns the answer, once Step reported that it is there.
func (q *Inquiry) Heard() Heard { return q.heard }

// hear takes a packet of the answer. It reports whether that was the last one.
func (q *Inquiry) hear(p *transport.Packet) (last bool) {
	m := &p.MAD
	switch {
	case m.TID() != q.ask.MAD.TID():
		return false
	case !m.RMPPFlags().Has(mad.RMPPActive):
		q.heard.Segments = append(q.heard.Segments, *m)
		return true
	case m.RMPPType() != mad.RMPPData:
		q.heard.Cut = true
		return true
	case int(m.SegmentNumber()) != len(q.heard.Segments)+1:
		return false // it was sent again
	}
	q.heard.Segments = append(q.heard.Segments, *m)
	last = m.RMPPFlags().Has(mad.RMPPLast)
	if n := len(q.heard.Segments); !last && n >= maxSegments {
		q.heard.Cut, last = true, true
	}
	q.packet = q.ask
	q.packet.MAD = *m
	ack := &q.packet.MAD
	clear(ack.SAData())
	ack.SetMethod(q.ask.MAD.Method())
	ack.SetRMPPType(mad.RMPPAck)
	ack.SetRMPPFlags(mad.RMPPActive)
	ack.SetNewWindowLast(m.SegmentNumber() + askWindow)
	q.taken, q.rested = false, false // the acknowledgement is taken next
	return last
}

// forget drops what is under way of the question.
func (q *Inquiry) forget() {
	t := &q.aside.twin
	t.out = &q.aside.out
	if q.base != 0 {
		t.sessions.Drop(q.base, t)
	}
	clear(t.later)
	t.later, t.laterAt = t.later[:0], time.Time{}
}
