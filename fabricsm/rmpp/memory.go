package rmpp

import "time"

// memory knows messages that arrived whole a while ago: their last segments may come
// again, because our ACK was lost.
type memory struct {
	at   map[Key]remembered
	fifo []Key // those in at, a ring from head on, oldest first
	head int
	max  int
	age  time.Duration
}

type remembered struct {
	until  time.Time
	last   uint32 // its last segment
	window uint32 // NewWindowLast in our last ACK
	answer uint32 // the window that the peer granted for the answer; 0: not yet
}

// keep remembers a message. The oldest is forgotten if there are too many.
func (m *memory) keep(now time.Time, k Key, last, window uint32) {
	m.forget(now)
	if _, ok := m.at[k]; !ok {
		if len(m.at) == m.max {
			m.drop()
		}
		if len(m.at) == len(m.fifo) {
			m.grow()
		}
		m.fifo[(m.head+len(m.at))%len(m.fifo)] = k
	}
	m.at[k] = remembered{until: now.Add(m.age), last: last, window: window}
}

func (m *memory) grow() {
	bigger := make([]Key, min(m.max, max(16, 2*len(m.fifo))))
	n := copy(bigger, m.fifo[m.head:])
	copy(bigger[n:], m.fifo[:m.head])
	m.fifo, m.head = bigger, 0
}

// drop forgets the oldest.
func (m *memory) drop() {
	delete(m.at, m.fifo[m.head])
	m.head = (m.head + 1) % len(m.fifo)
}

// forget drops entries that are too old.
func (m *memory) forget(now time.Time) {
	for len(m.at) > 0 && !m.at[m.fifo[m.head]].until.After(now) {
		m.drop()
	}
}

// find returns the values for an ACK of a message.
func (m *memory) find(now time.Time, k Key) (last, window uint32, ok bool) {
	r, ok := m.at[k]
	if !ok || !r.until.After(now) {
		return 0, 0, false
	}
	return r.last, r.window, true
}

// grant notes the window that a peer grants for the answer to its message, and
// reports whether there was one.
func (m *memory) grant(now time.Time, k Key, window uint32) bool {
	r, ok := m.at[k]
	if !ok || !r.until.After(now) {
		return false
	}
	r.answer = window
	m.at[k] = r
	return true
}

// window returns the window that the peer granted for the answer to its message, or 1.
func (m *memory) window(now time.Time, k Key) uint32 {
	if r, ok := m.at[k]; ok && r.until.After(now) {
		return max(r.answer, 1)
	}
	return 1
}
