package inform

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/registry"
)

// Report reports notices to the subscribers that want them and may know of them.
func (r *Registry) Report(now time.Time, notices ...registry.Notice) (e Effects) {
	r.eff = &e
	for i := range notices {
		n := notices[i]
		r.post(&n)
	}
	r.spread(now)
	r.pump(now)
	return e
}

// Forward reports a trap of a device. The issuer is the port with the LID in the notice.
func (r *Registry) Forward(now time.Time, n *mad.Notice) (e Effects) {
	if r.fabric == nil || n.IsGeneric && ours(n.TrapNumber) {
		return e
	}
	out := registry.Notice{Report: mad.ReportNotice{Notice: *n}}
	if n.IsGeneric && n.TrapNumber == mad.TrapBadMKey {
		// It may be the right key of another device.
		clear(out.Report.DataDetails[mkeyDetail:][:mkeySize])
	}
	if issuer := r.fabric.ByLID(n.IssuerLID); issuer != nil {
		out.PKeys = issuer.PKeys
		out.Report.IssuerGID = ib.MakeGID(r.cfg.Prefix, issuer.GUID)
	}
	return r.Report(now, out)
}

// ours reports whether a class manager raises a trap: those about GIDs, groups and paths that appear and disappear. No
// device has to raise them. A host that does would falsely report other ports as gone.
func ours(t mad.TrapNum) bool { return t >= mad.TrapGIDInService && t <= lastOfManager }

// lastOfManager is trap 69: paths are to be looked up again.
const lastOfManager mad.TrapNum = 69

// Where the details of trap 256 have an M_Key.
const mkeyDetail, mkeySize = 14, 8

// mayHear reports whether a subscriber may know of a notice as things are.
func (r *Registry) mayHear(s *sub, n *registry.Notice) bool {
	e := r.fabric.ByGUID(s.As)
	return e != nil && e.GUID == s.Port && (s.Trusted || !n.Secret() && n.Visible(e))
}

// wants reports whether a subscription matches a notice.
func (s *sub) wants(n *registry.Notice) bool {
	i, h := &s.Info, &n.Report.NoticeHeader
	switch {
	case i.GID != (ib.GID{}) && i.GID.GUID() != n.Report.IssuerGID.GUID():
		return false
	case i.GID == (ib.GID{}) && i.LIDRangeBegin != mad.AllLIDs && (h.IssuerLID < i.LIDRangeBegin || h.IssuerLID > max(i.LIDRangeBegin, i.LIDRangeEnd)):
		return false
	case i.Type != mad.AllTypes && i.Type != uint16(h.Type):
		return false
	default:
		return i.ProducerType == mad.AllProducers || i.ProducerType == h.ProducerType
	}
}

// queue has a notice wait for its turn.
func (r *Registry) queue(s *sub, n *registry.Notice) {
	const some = 4 // that any port may have waiting
	free := r.cfg.MaxQueued - r.stats.Queued
	if len(s.queue) >= r.cfg.PerQueue || free <= 0 || s.party.wait >= max(some, free/16) {
		r.stats.Dropped++
		return
	}
	s.queue = append(s.queue, n)
	s.party.wait++
	r.stats.Queued++
	r.line(s)
}

// line queues a subscription for the wire, if it has a report to send.
func (r *Registry) line(s *sub) {
	p := s.party
	if len(s.queue) == 0 || s.tid != 0 || s.ready {
		return
	}
	s.ready = true
	p.ready = append(p.ready, s)
	r.turn(p)
}

// turn has a port wait for the wire, if it may be sent more.
func (r *Registry) turn(p *party) {
	if p.turn || len(p.ready) == 0 || p.out >= r.cfg.PerPort {
		return
	}
	p.turn = true
	of := &r.turns[0]
	if p.mute {
		of = &r.turns[1]
	}
	*of = append(*of, p)
}

// pump sends reports while there is room: first to ports that answer.
func (r *Registry) pump(now time.Time) {
	for i := range r.turns {
		of := &r.turns[i]
		for len(*of) > 0 && len(r.out) < r.cfg.MaxOnWire && (i == 0 || r.mute < max(1, r.cfg.MaxOnWire/4)) {
			p := (*of)[0]
			*of = (*of)[1:]
			if p.turn = false; len(p.ready) == 0 {
				continue
			}
			s := p.ready[0]
			p.ready = p.ready[1:]
			s.ready = false
			if s.mute = i == 1; s.mute {
				r.mute++
			}
			r.begin(now, s)
			r.turn(p)
		}
		if len(*of) == 0 {
			*of = nil // its memory was walked through
		}
	}
}

// begin sends the first report of a queue.
func (r *Registry) begin(now time.Time, s *sub) {
	for {
		if r.tid++; r.tid != 0 && r.out[r.tid] == nil {
			break
		}
	}
	s.tid, s.tries = r.tid, r.cfg.Tries
	if s.failing {
		s.tries = 1
	}
	r.out[s.tid] = s
	s.party.out++
	r.stats.Sent++
	r.send(now, s)
}

// send sends a report, once more or for the first time.
func (r *Registry) send(now time.Time, s *sub) {
	s.tries--
	wait := max(r.cfg.Timeout, min(s.Info.RespTimeValue.Duration(), 2*r.cfg.Timeout))
	s.due = now.Add(wait).UnixNano()
	r.due = r.due.With(deadline{s.due, s.tid}, s)
	e := r.fabric.ByGUID(s.As)
	if e == nil || !r.mayHear(s, s.queue[0]) {
		return // it is late, and so is its answer: much may have changed meanwhile
	}
	out := Report{To: s.Address}
	if at := r.fabric.ByLID(out.To.LID); at == nil || at.Port != e.Port {
		out.To.LID = e.LID // it has moved to another
	}
	m := &out.MAD
	m.SetHeader(mad.Header{
		Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodReport, Attr: mad.AttrNotice, TID: ib.TID(s.tid),
	})
	if mad.Encode(m.SAData(), &s.queue[0].Report) != nil {
		return // no such notice can be made
	}
	r.eff.Send = append(r.eff.Send, out)
}

// stop takes the report of a subscription off the wire.
func (r *Registry) stop(s *sub) {
	if s.tid == 0 {
		return
	}
	delete(r.out, s.tid)
	r.due = r.due.Without(deadline{s.due, s.tid})
	s.tid = 0
	if s.mute {
		s.mute = false
		r.mute--
	}
	s.party.out--
	r.turn(s.party)
}

// Waits reports whether a packet from a LID is the expected answer to a report, sent by the receiver of that report.
func (r *Registry) Waits(from ib.LID, m *mad.MAD) bool { return r.answered(from, m) != nil }

// answered returns the subscription whose report is answered, or nil if there is none.
func (r *Registry) answered(from ib.LID, m *mad.MAD) *sub {
	if r.fabric == nil || m.Method() != mad.MethodReportResp || m.Attr() != mad.AttrNotice {
		return nil
	}
	s := r.out[uint32(m.TID())]
	if s == nil {
		return nil
	}
	if at := r.fabric.ByLID(from); at == nil || at.GUID != s.Port {
		return nil // the answer is from another port
	}
	return s
}

// Take takes the answer to a report, which came from a LID.
func (r *Registry) Take(now time.Time, from ib.LID, m *mad.MAD) (e Effects) {
	r.eff = &e
	s := r.answered(from, m)
	if s == nil {
		return e
	}
	r.stats.Answered++
	s.failing, s.party.mute = false, false
	r.done(s)
	r.pump(now)
	return e
}

// done goes on to the next report of a subscription.
func (r *Registry) done(s *sub) {
	r.stop(s)
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.party.wait--
	r.stats.Queued--
	r.line(s)
}

// Next returns when Expire has work to do; zero: never.
func (r *Registry) Next() (at time.Time) {
	if d, _, ok := r.due.First(); ok {
		at = time.Unix(0, d.at)
	}
	if d, _, ok := r.gone.First(); ok && (at.IsZero() || time.Unix(0, d.at).Before(at)) {
		at = time.Unix(0, d.at)
	}
	if !r.more.IsZero() && (at.IsZero() || r.more.Before(at)) {
		at = r.more
	}
	return at
}

// Expire sends unanswered reports again, abandons those that were sent often enough, and removes the subscriptions of ports
// that are gone for too long.
func (r *Registry) Expire(now time.Time) (e Effects) {
	r.eff = &e
	for {
		d, s, ok := r.due.First()
		if !ok || d.at > now.UnixNano() {
			break
		}
		r.due = r.due.Without(d)
		if s.tries > 0 {
			r.stats.Resent++
			r.send(now, s)
			continue
		}
		r.fail(s)
	}
	for {
		d, p, ok := r.gone.First()
		if !ok || d.at > now.UnixNano() {
			break
		}
		r.dismiss(p)
	}
	r.spread(now)
	r.pump(now)
	return e
}

// fail handles a report without an answer. The reports queued after it are dropped.
func (r *Registry) fail(s *sub) {
	r.stats.Failed++
	s.party.mute = true
	if r.cfg.DropOnFail {
		r.remove(s, Event{Kind: Dropped, Reason: NoAnswer})
		return
	}
	if !s.failing {
		r.eff.Events = append(r.eff.Events, Event{Kind: Failed, Port: s.As, Info: s.Info})
	}
	s.failing = true
	r.quiet(s)
}

// quiet drops the reports that a subscription waits for.
func (r *Registry) quiet(s *sub) {
	s.unready()
	r.stop(s)
	r.stats.Dropped += uint64(len(s.queue))
	r.stats.Queued -= len(s.queue)
	s.party.wait -= len(s.queue)
	s.queue = nil
}

// unready removes a subscription from those that have a report to send.
func (s *sub) unready() {
	if s.ready {
		s.ready = false
		s.party.ready = slices.DeleteFunc(s.party.ready, func(o *sub) bool { return o == s })
	}
}
