package rmpp

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// port has the transactions of one port in a Table.
type port[A any] struct {
	base       ib.LID
	count      int
	head       *session[A]
	prev, next *port[A] // with as many transactions
}

// open makes room for a transaction and adds it. It is not scheduled.
func (t *Table[A]) open(now time.Time, p Party[A], at place, sink Sink[A]) (*session[A], error) {
	if t.sessions[at] != nil {
		return nil, ErrBusy
	}
	base := p.Port
	if base == 0 {
		base = p.LID
	}
	if !t.room(now, base, sink) {
		t.stats.Refused++
		return nil, ErrNoRoom
	}
	var s *session[A]
	if n := len(t.idle); n > 0 {
		s = t.idle[n-1]
		t.idle = t.idle[:n-1]
	} else {
		s = &session[A]{index: -1}
	}
	s.place, s.back, s.moved = at, p.Back, now
	t.sessions[at] = s
	t.join(base, s)
	t.stats.open(at.sending)
	return s, nil
}

// maxIdleBuffer is how long a buffer is kept for the next message, in bytes.
const maxIdleBuffer = 16 << 10

// close removes a transaction and keeps its reusable parts.
func (t *Table[A]) close(s *session[A]) {
	delete(t.sessions, s.place)
	t.unschedule(s)
	t.leave(s)
	if r := s.send.ring(); r != nil {
		t.idleRings = append(t.idleRings, r)
	}
	buf := s.recv.buf[:0]
	if cap(buf) > maxIdleBuffer {
		buf = nil
	}
	*s = session[A]{index: -1}
	s.recv.buf = buf
	t.idle = append(t.idle, s)
}

// room makes room for one more transaction of a port, if it may have one.
func (t *Table[A]) room(now time.Time, base ib.LID, sink Sink[A]) bool {
	mine := 0
	if p := t.ports[base]; p != nil {
		mine = p.count
		if mine >= t.cfg.PerPort {
			return t.evict(now, p, t.cfg.Timeout, sink)
		}
	}
	if len(t.sessions) < t.cfg.Sessions {
		return true
	}
	for n := t.cfg.PerPort; n >= mine+2; n-- {
		if p := t.byCount[n]; p != nil {
			return t.evict(now, p, 0, sink)
		}
	}
	return false
}

// evict ends that transaction of a port whose peer has been silent longest, the first
// of several, if it was for so long at least.
func (t *Table[A]) evict(now time.Time, p *port[A], silent time.Duration, sink Sink[A]) bool {
	var victim *session[A]
	for s := p.head; s != nil; s = s.next {
		if now.Sub(s.moved) >= silent && (victim == nil || !s.moved.After(victim.moved)) {
			victim = s
		}
	}
	if victim == nil {
		return false
	}
	t.stats.Evicted++
	if !victim.idle() {
		t.stats.Stops++
		t.control(victim, mad.RMPPStop, mad.RMPPResX, sink)
	}
	t.end(victim, Stopped, mad.RMPPResX, sink)
	return true
}

// join counts a transaction for its port.
func (t *Table[A]) join(base ib.LID, s *session[A]) {
	p := t.ports[base]
	switch {
	case p != nil:
		t.unlist(p)
	case len(t.idlePorts) > 0:
		p = t.idlePorts[len(t.idlePorts)-1]
		t.idlePorts = t.idlePorts[:len(t.idlePorts)-1]
		p.base = base
		t.ports[base] = p
	default:
		p = &port[A]{base: base}
		t.ports[base] = p
	}
	s.port, s.prev, s.next = p, nil, p.head
	if p.head != nil {
		p.head.prev = s
	}
	p.head = s
	p.count++
	t.list(p)
}

// leave uncounts it.
func (t *Table[A]) leave(s *session[A]) {
	p := s.port
	t.unlist(p)
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		p.head = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	p.count--
	if p.count > 0 {
		t.list(p)
		return
	}
	delete(t.ports, p.base)
	*p = port[A]{}
	t.idlePorts = append(t.idlePorts, p)
}

func (t *Table[A]) list(p *port[A]) {
	p.prev, p.next = nil, t.byCount[p.count]
	if p.next != nil {
		p.next.prev = p
	}
	t.byCount[p.count] = p
}

func (t *Table[A]) unlist(p *port[A]) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		t.byCount[p.count] = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
}
