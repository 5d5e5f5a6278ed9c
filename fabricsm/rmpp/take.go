package rmpp

import (
	"slices"
	"time"

	"portcullis/fabricsm/mad"
)

// Take takes a packet of class SubnAdm. A packet without RMPPActive is for the caller, with any other contents of its RMPP
// header: some clients fill it in.
func (t *Table[A]) Take(now time.Time, m *mad.MAD, from Party[A], sink Sink[A]) (Outcome, Message) {
	if m.Class() != mad.ClassSubnAdm || !m.RMPPFlags().Has(mad.RMPPActive) {
		return Plain, Message{}
	}
	t.in = *m
	p := packet[A]{
		now: now, m: &t.in, from: from, sink: sink,
		key: Key{TID: m.TID(), LID: from.LID, QP: from.QP, Method: m.Method()},
	}
	switch {
	case m.RMPPVersion() != mad.RMPPVersion:
		t.refuse(&p, mad.RMPPUnV)
	case m.RMPPType() == mad.RMPPData:
		return t.data(&p)
	case m.RMPPType() == mad.RMPPAck:
		t.ack(&p)
	case m.RMPPType() == mad.RMPPStop:
		t.ended(&p, PeerStopped, m.RMPPStatus() == mad.RMPPResX)
	case m.RMPPType() == mad.RMPPAbort:
		t.ended(&p, PeerAborted, m.RMPPStatus() >= mad.RMPPT2L)
	default:
		t.refuse(&p, mad.RMPPBadT)
	}
	return Used, Message{}
}

// packet is the packet that Take handles.
type packet[A any] struct {
	now  time.Time
	m    *mad.MAD
	from Party[A]
	key  Key // as if its method were that of segments to us
	sink Sink[A]
}

// sender is the transaction that a packet from the receiver of our segments means.
func (t *Table[A]) sender(p *packet[A]) *session[A] {
	k := p.key
	k.Method ^= responseBit
	return t.sessions[place{k, true}]
}

// receiver is the transaction that a packet from the sender of segments means.
func (t *Table[A]) receiver(p *packet[A]) *session[A] { return t.sessions[place{p.key, false}] }

func (t *Table[A]) accepts(m mad.Method) bool { return slices.Contains(t.cfg.Accept, m) }

// refuse ends the transactions of a packet that breaks the rules, and answers ABORT. A packet that belongs to no
// transaction is answered only if it is a request.
func (t *Table[A]) refuse(p *packet[A], s mad.RMPPStatus) {
	known := false
	for _, x := range [...]*session[A]{t.sender(p), t.receiver(p)} {
		if x != nil && !x.idle() {
			known = true
			t.end(x, Aborted, s, p.sink)
		}
	}
	if !known && (!t.accepts(p.key.Method) || answers(p.m.RMPPType())) {
		t.stats.Ignored++
		return
	}
	t.stats.abort(s)
	t.reply(p, mad.RMPPAbort, s, 0, 0)
}

// answers reports whether a type of packet begins nothing.
func answers(y mad.RMPPType) bool {
	return y == mad.RMPPAck || y == mad.RMPPStop || y == mad.RMPPAbort
}

// reply answers a packet with one without data.
func (t *Table[A]) reply(p *packet[A], y mad.RMPPType, s mad.RMPPStatus, d1, d2 uint32) {
	reply(&t.out, p.m[:headLen], y, s, d1, d2)
	p.sink.Send(p.from.Back, &t.out)
}

// ended takes a STOP or ABORT. It comes from the receiver of our segments, or from a sender of segments to us. If no
// transaction ends, there is no answer: two tables that answer each other's ABORTs would not stop.
func (t *Table[A]) ended(p *packet[A], c Cause, legal bool) {
	known := false
	for _, x := range [...]*session[A]{t.sender(p), t.receiver(p)} {
		if x == nil || x.idle() {
			continue
		}
		known = true
		if legal {
			t.end(x, c, p.m.RMPPStatus(), p.sink)
		} else {
			t.end(x, Aborted, mad.RMPPBadStatus, p.sink)
		}
	}
	switch {
	case !known:
		t.stats.Ignored++
	case !legal:
		t.stats.abort(mad.RMPPBadStatus)
		t.reply(p, mad.RMPPAbort, mad.RMPPBadStatus, 0, 0)
	}
}

// ack takes an ACK.
func (t *Table[A]) ack(p *packet[A]) {
	s := t.sender(p)
	if s == nil {
		t.ackOfZero(p)
		return
	}
	if p.m.RMPPStatus() != mad.RMPPNormal {
		t.refuse(p, mad.RMPPBadStatus)
		return
	}
	was := s.send.window
	further, bad := s.send.ack(p.m.SegmentNumber(), p.m.NewWindowLast())
	switch {
	case bad != mad.RMPPNormal:
		t.refuse(p, bad)
		return
	case s.send.done():
		t.two(p, s)
		t.end(s, Done, mad.RMPPNormal, p.sink)
		return
	case further:
		s.tries, s.moved = 0, p.now
		s.ackAt = p.now.Add(t.cfg.Timeout)
	case s.send.window == was:
		return // acknowledged before
	}
	t.turn(p.now, s, p.sink)
}

// two opens the window for the answer, if the message that is now acknowledged was a
// request of ours: by an ACK of its segment 0.
func (t *Table[A]) two(p *packet[A], s *session[A]) {
	if s.place.key.Method&responseBit != 0 {
		return
	}
	if x := t.receiver(p); x != nil && x.twoSided && x.recv.inOrder == 0 {
		t.zero(p, x)
	}
}

func (t *Table[A]) zero(p *packet[A], x *session[A]) {
	x.recv.window = max(x.recv.window, x.recv.step)
	t.reply(p, mad.RMPPAck, mad.RMPPNormal, 0, x.recv.window)
}

// ackOfZero takes an ACK that acknowledges none of our segments. It may be that of segment 0, with the window that a peer
// grants at first for the answer to its message. Or it is the last ACK for a request of ours, repeated because the peer did
// not get our ACK.
func (t *Table[A]) ackOfZero(p *packet[A]) {
	n, window := p.m.SegmentNumber(), p.m.NewWindowLast()
	if n == 0 && p.m.RMPPStatus() == mad.RMPPNormal && t.memory.grant(p.now, p.key, window) {
		return
	}
	if x := t.receiver(p); n > 0 && x != nil && x.twoSided && x.idle() {
		t.zero(p, x)
		return
	}
	t.stats.Ignored++
}

// data takes a segment.
func (t *Table[A]) data(p *packet[A]) (Outcome, Message) {
	first := p.m.RMPPFlags().Has(mad.RMPPFirst)
	n := p.m.SegmentNumber()
	switch {
	case p.m.RMPPStatus() != mad.RMPPNormal:
		t.refuse(p, mad.RMPPBadStatus)
		return Used, Message{}
	case first != (n == 1) || n == 0:
		t.refuse(p, mad.RMPPBadSegment)
		return Used, Message{}
	}
	s := t.receiver(p)
	if s == nil {
		return t.fresh(p)
	}
	v, bad := s.recv.take(p.m)
	if s.expected && v != vDrop {
		s.expected = false
		s.endAt = p.now.Add(t.cfg.ReceiveLimit)
		t.schedule(s, s.endAt)
	}
	if v != vDrop {
		s.moved = p.now
	}
	switch v {
	case vDrop:
	case vAck:
		s.recv.ack(&t.out, p.m)
		p.sink.Send(p.from.Back, &t.out)
	case vStop:
		t.stats.Stops++
		t.end(s, Stopped, bad, p.sink)
		t.reply(p, mad.RMPPStop, bad, 0, 0)
	case vAbort:
		t.refuse(p, bad)
	case vWhole:
		return t.whole(p, s)
	}
	return Used, Message{}
}

// whole hands a message over whose last segment has come.
func (t *Table[A]) whole(p *packet[A], s *session[A]) (Outcome, Message) {
	msg := t.message(p, &s.recv)
	t.end(s, Done, mad.RMPPNormal, p.sink)
	return Whole, msg
}

// message acknowledges and remembers a message.
func (t *Table[A]) message(p *packet[A], r *receiver) Message {
	r.ack(&t.out, p.m)
	p.sink.Send(p.from.Back, &t.out)
	t.memory.keep(p.now, p.key, r.last, r.window)
	t.stats.Messages++
	copy(t.msg[:], r.head[:])
	clear(t.msg[headLen:])
	d := r.data()
	copy(t.msg[headLen:], d)
	return Message{Head: &t.msg, Data: d}
}

// fresh takes a segment of a message that we are not receiving.
func (t *Table[A]) fresh(p *packet[A]) (Outcome, Message) {
	if last, window, ok := t.memory.find(p.now, p.key); ok {
		if p.m.SegmentNumber() <= last {
			t.reply(p, mad.RMPPAck, mad.RMPPNormal, last, window)
		}
		return Used, Message{}
	}
	switch {
	case p.m.SegmentNumber() != 1 || p.key.Method.IsResponse():
		t.stats.Ignored++ // of a transaction that has ended, or that was never requested
		return Used, Message{}
	case !t.accepts(p.key.Method):
		t.stats.abort(mad.RMPPUnspecified)
		t.reply(p, mad.RMPPAbort, mad.RMPPUnspecified, 0, 0)
		return Used, Message{}
	}
	// Most messages are whole with their first segment: those need no room.
	t.one.start(t.cfg.MaxMessage, t.cfg.ReceiveWindow)
	switch v, bad := t.one.take(p.m); v {
	case vDrop: // not with a first segment
	case vWhole:
		return Whole, t.message(p, &t.one)
	case vStop:
		t.stats.Stops++
		t.reply(p, mad.RMPPStop, bad, 0, 0)
	case vAbort:
		t.refuse(p, bad)
	case vAck:
		s, err := t.open(p.now, p.from, place{p.key, false}, p.sink)
		if err != nil {
			t.stats.Stops++
			t.reply(p, mad.RMPPStop, mad.RMPPResX, 0, 0)
			break
		}
		s.recv, t.one = t.one, s.recv
		s.endAt = p.now.Add(t.cfg.ReceiveLimit)
		t.schedule(s, s.endAt)
		s.recv.ack(&t.out, p.m)
		p.sink.Send(p.from.Back, &t.out)
	}
	return Used, Message{}
}
