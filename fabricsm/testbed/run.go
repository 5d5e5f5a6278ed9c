package testbed

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/counterwatch"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/transport"
)

// owner is the sender of a request.
type owner uint8

const (
	ofCore     owner = iota
	ofKeys           // the manager of the keys of classes
	ofCounters       // the watch over counters
)

// pending is a request that is out.
type pending struct {
	who   owner
	tid   ib.TID
	id    sm.RequestID
	due   time.Time
	lid   ib.LID
	class mad.Class
	attr  mad.AttrID
	mod   uint32
	route mad.Route // of a directed route
	ended bool
	again again
}

// answeredBy reports whether a packet is the answer to the request, over the expected way, or the undelivered request
// itself.
func (r *pending) answeredBy(p *transport.Packet) bool {
	m := &p.MAD
	switch {
	case m.Class() != r.class || m.Attr() != r.attr || m.Mod() != r.mod:
		return false
	case p.Undelivered:
		return true
	case m.BaseVersion() != 1:
		return false
	case m.IsDR():
		return m.Returning() && m.Route() == r.route
	default:
		return p.LID == r.lid
	}
}

type arrival struct {
	at  time.Time
	seq int
	p   *transport.Packet // as it is some hundred bytes, which sorting would move
}

// tidMask holds the bits of a transaction id that are ours: the simulator puts a
// station's slot above them.
const tidMask = 1<<32 - 1

// Step passes an input to the manager at once and executes its output. Without a manager nothing happens.
func (s *Stage) Step(in sm.Input) {
	core := s.core
	if core == nil {
		return
	}
	out := core.Step(s.now, in)
	s.save(out.Save)
	for _, e := range out.Events {
		s.events = append(s.events, Happened{s.Now(), e})
	}
	if out.View != nil {
		s.view = out.View
	}
	if out.Job != nil {
		s.job = out.Job
	}
	s.wake = out.Wake
	for i := range out.Answer {
		a := &out.Answer[i]
		s.transmit(transport.Packet{MAD: a.MAD, LID: a.LID, QP: a.QP})
	}
	for i := range out.Send {
		if s.send(&out.Send[i], ofCore); s.core != core {
			return // crashed on the way
		}
	}
	if out.View != nil {
		s.StepKeys(&keymgr.Seen{View: out.View})
		s.stepCounters(&counterwatch.Seen{View: out.View})
		s.look(out.View)
	}
	s.alsoKeys(in)
	if s.OnStep != nil {
		s.OnStep()
	}
}

// save makes facts durable.
func (s *Stage) save(facts []sm.Fact) {
	for i := range facts {
		if s.forgets == nil || !s.forgets(&facts[i]) {
			s.facts = append(s.facts, facts[i])
		}
	}
}

func (s *Stage) send(r *sm.Request, who owner) {
	tid := s.nextTID()
	for tid == 0 || s.out[tid] != nil {
		tid = s.nextTID()
	}
	wait := timeout
	if s.crowded() {
		wait *= crowdWaits
	}
	p := &pending{
		who: who, tid: tid, id: r.ID, due: s.now.Add(wait), lid: r.LID, class: r.MAD.Class(), attr: r.MAD.Attr(), mod: r.MAD.Mod(),
	}
	if r.MAD.IsDR() {
		p.route = r.MAD.Route()
	}
	s.out[tid] = p
	s.order = append(s.order, p)
	r.MAD.SetTID(tid)
	lost := s.OnSend != nil && s.OnSend(r)
	if s.core != nil && !lost {
		packet := transport.Packet{MAD: r.MAD, LID: r.LID, QP: queuePair(&r.MAD)}
		s.mayRepeat(p, packet)
		s.transmit(packet)
	}
}

// queuePair returns the queue pair of a request.
func queuePair(m *mad.MAD) uint32 {
	if m.IsSMP() {
		return 0
	}
	return gmpQP
}

func (s *Stage) nextTID() ib.TID {
	if s.counted {
		s.lastTID++
		return ib.TID(s.lastTID)
	}
	return ib.TID(s.rng.Uint32())
}

func (s *Stage) transmit(p transport.Packet) {
	s.arrive(s.station.Exchange([]transport.Packet{p}, nil))
}

func (s *Stage) arrive(packets []transport.Packet) {
	for _, p := range packets {
		if s.core == nil || s.OnAnswer != nil && s.OnAnswer(&p) {
			continue
		}
		if s.Delays == nil {
			s.post(p, 0)
			continue
		}
		for _, d := range s.Delays(&p) {
			s.post(p, d)
		}
	}
}

// post has a packet arrive, later than others by so much.
func (s *Stage) post(p transport.Packet, later time.Duration) {
	s.seq++
	a := arrival{at: s.now.Add(answerTime + later), seq: s.seq, p: &p}
	i, _ := slices.BinarySearchFunc(s.inbox, a, func(x, y arrival) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.seq, y.seq))
	})
	s.inbox = slices.Insert(s.inbox, i, a)
}

// Run lets d of virtual time pass.
func (s *Stage) Run(d time.Duration) {
	until := s.now.Add(d)
	s.turns = 0
	for s.next(until) {
	}
}

// Until lets time pass until a condition holds, at most d. It checks the condition after every event, and reports whether
// it holds.
func (s *Stage) Until(d time.Duration, holds func() bool) bool {
	until := s.now.Add(d)
	s.turns = 0
	for {
		if holds() {
			return true
		}
		if !s.next(until) {
			return holds()
		}
	}
}

// Settle lets time pass until the manager has nothing left to do and nothing is
// on its way, at most d.
func (s *Stage) Settle(d time.Duration) error {
	if s.Until(d, s.Settled) {
		return nil
	}
	if s.err != nil {
		return s.err
	}
	var problems []string
	if s.view != nil {
		problems = s.view.Problems
	}
	return fmt.Errorf("stage: not settled after %v, %d requests out, problems %q", d, len(s.out), problems)
}

// Settled reports whether the manager has nothing left to do.
func (s *Stage) Settled() bool {
	return s.view != nil && s.view.Settled && s.keys.rests() && len(s.inbox)+len(s.queues[0].waiting)+len(s.queues[1].waiting)+len(s.out) == 0
}

// next lets the next thing happen, if it happens before until.
func (s *Stage) next(until time.Time) bool {
	if s.turns++; s.turns > maxTurns {
		s.err = fmt.Errorf("stage: %w: %d turns without end", errNoRest, maxTurns)
		return false
	}
	if job := s.job; job != nil {
		s.job = nil
		s.Step(job.Run())
		return true
	}
	at, do := until, func() bool { return false }
	soonest := func(t time.Time, what func()) {
		if !t.IsZero() && t.Before(at) {
			at, do = t, func() bool { what(); return true }
		}
	}
	if len(s.inbox) > 0 {
		soonest(s.inbox[0].at, s.deliver)
	}
	for len(s.order) > 0 && s.order[0].ended {
		s.order = s.order[1:]
	}
	if len(s.order) > 0 {
		soonest(s.order[0].due, s.expire)
	}
	if s.core != nil {
		soonest(s.wake, func() { s.wake = time.Time{}; s.Step(&sm.Woken{}) })
		soonest(s.keys.wake, func() { s.keys.wake = time.Time{}; s.StepKeys(&keymgr.Woken{}) })
		soonest(s.counters.wake, func() { s.counters.wake = time.Time{}; s.stepCounters(&counterwatch.Woken{}) })
	}
	if s.sa.agent != nil {
		soonest(s.sa.agent.Next(), s.expireAdministration)
	}
	soonest(s.resendAt(), s.resend)
	if s.front != nil {
		soonest(s.front.Next(), s.tellFront)
	}
	for i := range s.queues {
		if q := &s.queues[i]; len(q.waiting) > 0 {
			soonest(q.until, func() { s.workOn(q) })
		}
	}
	if d, ok := s.Fabric.NextEvent(); ok {
		soonest(Epoch.Add(d), func() {})
	}
	if at.Before(s.now) {
		at = s.now
	}
	s.now = at
	s.Fabric.Advance(max(0, s.Now()-s.Fabric.Now()))
	s.Collect()
	return do()
}

// Collect takes the packets that arrived for the manager. Run and the others do so by themselves.
func (s *Stage) Collect() { s.arrive(s.station.Take(nil)) }

// deliver passes the packet that arrived first to the manager.
func (s *Stage) deliver() {
	if len(s.inbox) == 0 {
		return
	}
	p := s.inbox[0].p
	s.inbox = s.inbox[1:]
	s.take(p)
}

// open passes a packet to its receiver.
func (s *Stage) open(p *transport.Packet) {
	if s.isForKeys(p) {
		s.deliverToKeys(p)
		return
	}
	if s.isForAdministration(p) {
		s.deliverToAdministration(p)
		return
	}
	if s.isForCounters(p) {
		s.deliverToCounters(p)
		return
	}
	answer := p.Undelivered || p.MAD.IsSMP() && p.MAD.Method() == mad.MethodGetResp
	if r := s.out[p.MAD.TID()&tidMask]; answer && r != nil && r.answeredBy(p) {
		s.end(r)
		s.replied(r, outcomeOf(p), &p.MAD)
		return
	}
	if answer && s.repeated[p.MAD.TID()&tidMask] {
		return // one more answer to a request that was sent again
	}
	if p.Undelivered || !s.admits(p) {
		return
	}
	if !answer {
		s.forward(p)
	}
	s.Step(&sm.Received{MAD: p.MAD, LID: p.LID, QP: p.QP})
}

func outcomeOf(p *transport.Packet) sm.Outcome {
	if p.Undelivered {
		return sm.Undelivered
	}
	return sm.Answered
}

// replied reports the end of a request to its sender.
func (s *Stage) replied(r *pending, how sm.Outcome, answer *mad.MAD) {
	reply := sm.Reply{ID: r.id, Outcome: how, MAD: *answer}
	switch r.who {
	case ofKeys:
		s.StepKeys((*keymgr.Reply)(&reply))
	case ofCounters:
		s.stepCounters((*counterwatch.Reply)(&reply))
	default:
		s.Step(&reply)
	}
}

func (s *Stage) end(r *pending) {
	r.ended = true
	delete(s.out, r.tid)
	if r.again.pause > againAfter {
		s.repeated[r.tid] = true
	}
}

// expire ends the request that has been out for longest.
func (s *Stage) expire() {
	r := s.order[0]
	s.end(r)
	s.replied(r, sm.TimedOut, &mad.MAD{})
}
