package perfmgr

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// data is where the attribute begins in a MAD of the class.
const data = 64

// classVersion is that of performance management.
const classVersion = 1

// Next writes the next request and returns the LID it is for. It returns false while none is due. The destination is QP1.
func (m *Manager) Next(now time.Time, to *mad.MAD) (ib.LID, bool) {
	if !m.active {
		if now.Before(m.due) {
			return 0, false
		}
		m.begin(now)
	}
	if m.free.After(now) {
		return 0, false
	}
	i, ok := m.window.ready.pop()
	if !ok {
		if i, ok = m.start(now); !ok {
			m.over(now)
			return 0, false
		}
	}
	if earliest := now.Add(-burst); m.free.Before(earliest) {
		m.free = earliest
	}
	m.free = m.free.Add(m.gap)
	return m.ask(i, now, to), true
}

// begin begins a pass.
func (m *Manager) begin(now time.Time) {
	if m.pass > 0 && !m.rested {
		m.stats.Between = now.Sub(m.begun)
	}
	m.rested = false
	m.pass++
	m.active, m.begun, m.due, m.at = true, now, now.Add(m.Interval), 0
	requests := 1
	for _, a := range m.list {
		requests += a.requests()
	}
	m.gap = max(min(m.Interval*9/10/time.Duration(requests), longestGap), time.Second/time.Duration(m.Rate))
}

// longestGap is the time between two requests of a fabric that needs few.
const longestGap = 10 * time.Millisecond

// start begins to read the next agent whose turn it is.
func (m *Manager) start(now time.Time) (int, bool) {
	for len(m.window.free) > 0 && m.at < len(m.list) {
		a := m.list[m.at]
		m.at++
		if a.pass == m.pass || a.again.After(now) {
			continue
		}
		a.pass = m.pass
		first, ok := a.next(0)
		if !ok {
			continue
		}
		i := m.window.take(a)
		s := &m.window.slots[i]
		s.port = first
		if a.asked {
			s.step = a.offer.first()
		}
		return i, true
	}
	return 0, false
}

func (o offer) first() step {
	if o.long != 0 {
		return askLong
	}
	return askShort
}

// ask writes the request of a slot.
func (m *Manager) ask(i int, now time.Time, to *mad.MAD) ib.LID {
	s := &m.window.slots[i]
	tid := m.Draw()&^m.slotMask | uint32(i) | 1<<31 // never 0
	*to = mad.MAD{}
	to.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: classVersion, Method: mad.MethodGet, Attr: s.step.attr(), TID: ib.TID(tid)})
	if s.step != askInfo {
		to[data+1] = byte(s.agent.ports[s.port].num)
	}
	m.window.sent(i, tid, now.Add(m.Timeout))
	return s.agent.LID
}

func (s step) attr() mad.AttrID {
	switch s {
	case askInfo:
		return mad.AttrClassPortInfo
	case askLong:
		return mad.PerfAttrPortCountersExtended
	default:
		return mad.PerfAttrPortCounters
	}
}

// find returns the slot of a request that is out.
func (m *Manager) find(id ib.TID) (int, bool) {
	tid := uint32(id) // the kernel has the other half
	i := int(tid & m.slotMask)
	if i >= len(m.window.slots) || !m.window.slots[i].out || m.window.slots[i].tid != tid {
		return 0, false
	}
	return i, true
}

// Answer takes a MAD that came from a LID. What does not answer a request that is out is counted and left alone.
func (m *Manager) Answer(now time.Time, from ib.LID, is *mad.MAD) {
	i, ok := m.find(is.TID())
	if !ok || is.Class() != mad.ClassPerf || is.Method() != mad.MethodGetResp || from != m.window.slots[i].agent.LID {
		m.stats.Strays++
		return
	}
	m.window.back(i)
	s := &m.window.slots[i]
	switch {
	case is.Attr() != s.step.attr() || s.step != askInfo && is[data+1] != byte(s.agent.ports[s.port].num):
		m.stats.Invalid++
		m.failed(i, now)
	case is.Status().IsBusy():
		m.stats.Refused++
		m.failed(i, now)
	case is.Status() != mad.StatusOK:
		m.stats.Refused++
		s.agent.fails = 0
		s.refused(is.Status())
		m.advance(i, now)
	default:
		m.stats.Answered++
		s.agent.fails = 0
		m.take(s, now, is[data:])
		m.advance(i, now)
	}
}

// refused takes that an agent does not have what it was asked for.
func (s *slot) refused(why mad.Status) {
	switch {
	case s.step == askInfo: // PortCounters is mandatory
		s.agent.offer, s.agent.asked = offer{}.shortened(), true
	case s.step == askLong && (why == mad.StatusUnsupportedMethod || why == mad.StatusUnsupportedMethodAttr):
		s.agent.offer = s.agent.offer.shortened()
	}
}

// take takes the values of an answer.
func (m *Manager) take(s *slot, now time.Time, from []byte) {
	a := s.agent
	var n news
	switch s.step {
	case askInfo:
		if mad.Decode(from, &m.info) != nil {
			m.info = mad.ClassPortInfo{}
		}
		a.offer, a.asked = offerOf(&m.info), true
		return
	case askLong:
		if mad.Decode(from, &m.extended) == nil {
			v := longValues(&m.extended)
			n = a.ports[s.port].take(long, &v, a.offer.long, now, m.spans())
		}
	case askShort:
		if mad.Decode(from, &m.counters) == nil {
			v := shortValues(&m.counters)
			n = a.ports[s.port].take(short, &v, a.offer.short, now, m.spans())
		}
	}
	if n.reset {
		m.stats.Resets++
		a.asked = false // it may be another firmware that counts now
	}
	if n.nonsense {
		m.stats.Implausible++
	}
}

// advance goes on to the next request of an agent, or ends its reading.
func (m *Manager) advance(i int, now time.Time) {
	s := &m.window.slots[i]
	switch {
	case s.step == askInfo && !s.agent.asked: // again
	case s.step == askInfo:
		s.step = s.agent.offer.first()
	case s.step == askLong && s.agent.offer.short != 0:
		s.step = askShort
	default:
		next, more := s.agent.next(s.port + 1)
		if !more {
			m.end(i, now)
			return
		}
		s.port, s.step = next, s.agent.offer.first()
	}
	m.window.ready.push(i)
}

// end ends the reading of an agent whose request is not out.
func (m *Manager) end(i int, now time.Time) {
	m.window.release(i)
	m.over(now)
}

const (
	// patience is how many requests in a row may go unanswered before the agent is left alone.
	patience = 2
	// longestBackoff is for how many intervals it is left alone at the most, as a power of two.
	longestBackoff = 4
)

// failed takes that a request of an agent was not answered.
func (m *Manager) failed(i int, now time.Time) {
	a := m.window.slots[i].agent
	if a.fails++; a.fails < patience {
		m.advance(i, now)
		return
	}
	a.again = now.Add(m.Interval<<min(a.fails-patience, longestBackoff) - m.Interval/2)
	m.end(i, now)
}

// Undelivered takes that a request came back without an answer.
func (m *Manager) Undelivered(now time.Time, id ib.TID) {
	if i, ok := m.find(id); ok {
		m.late(i, now)
	}
}

// Expire takes note of requests that were not answered in time.
func (m *Manager) Expire(now time.Time) {
	for i := m.window.first; i != none && !m.window.slots[i].until.After(now); i = m.window.first {
		m.late(i, now)
	}
}

func (m *Manager) late(i int, now time.Time) {
	m.stats.TimedOut++
	m.window.back(i)
	m.failed(i, now)
}

// over ends the pass if all agents were read.
func (m *Manager) over(now time.Time) {
	if !m.active || m.at < len(m.list) || m.window.busy() > 0 {
		return
	}
	m.active = false
	m.stats.Passes++
	m.stats.Took, m.stats.Begun = now.Sub(m.begun), m.begun
	m.survey(now)
}
