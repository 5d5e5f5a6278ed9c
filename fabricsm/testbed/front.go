package testbed

import (
	"fmt"
	"time"

	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/transport"
)

// Work is the time that packets take, so that packets that arrive faster wait for one another, and get lost where too many
// wait. The zero Work takes no time.
type Work struct {
	Packet  time.Duration // of a packet that is processed, with its answer
	Dropped time.Duration // of a packet that the limiter drops
	Waiting int           // how many may wait at each of the two queues
}

// queue is where packets wait, for subnet administration or for the core.
type queue struct {
	until   time.Time // the one before is done
	waiting []transport.Packet
}

// startFront creates the limiter of unsolicited packets: that of subnet administration, or a separate one as in the driver.
func (s *Stage) startFront() error {
	if s.sa.agent != nil {
		s.front = s.sa.agent.Front()
		return nil
	}
	var err error
	if s.front, err = sa.NewFront(limiter.DefaultConfig()); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return nil
}

// admits reports whether a packet that nothing waits for is looked at.
func (s *Stage) admits(p *transport.Packet) bool { return s.front.Admit(s.now, p) }

// tellFront reports dropped packets.
func (s *Stage) tellFront() {
	for _, e := range s.front.Report(s.now) {
		s.events = append(s.events, Happened{s.Now(), e})
	}
}

// queueOf is where a packet waits.
func (s *Stage) queueOf(p *transport.Packet) *queue {
	if s.isForAdministration(p) {
		return &s.queues[1]
	}
	return &s.queues[0]
}

// take has a packet looked at, or wait for that.
func (s *Stage) take(p *transport.Packet) {
	if s.Work == (Work{}) {
		s.open(p)
		return
	}
	q := s.queueOf(p)
	switch {
	case len(q.waiting) == 0 && !s.now.Before(q.until):
		s.work(q, p)
	case len(q.waiting) < s.Work.Waiting:
		q.waiting = append(q.waiting, *p)
	default:
		s.overflowed++
		s.crowdEnd = s.now.Add(crowdLasts)
	}
}

// work looks at a packet for as long as that takes.
func (s *Stage) work(q *queue, p *transport.Packet) {
	core, before := s.core, s.limited()
	s.open(p)
	if s.core != core {
		return // the queue is a new one
	}
	took := s.Work.Packet
	if s.limited() > before {
		took = s.Work.Dropped
	}
	q.until = s.now.Add(took)
}

// workOn looks at the packet that has waited longest.
func (s *Stage) workOn(q *queue) {
	p := q.waiting[0]
	q.waiting = q.waiting[1:]
	s.work(q, &p)
}

// limited is how many packets limiters dropped.
func (s *Stage) limited() uint64 {
	n := s.front.Dropped()
	if s.sa.agent != nil {
		n += s.sa.agent.Stats().Limited
	}
	return n
}

// Overflowed is how many packets got lost because too many waited, since the stage was
// built.
func (s *Stage) Overflowed() uint64 { return s.overflowed }
