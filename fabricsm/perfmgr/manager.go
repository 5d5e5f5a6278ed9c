package perfmgr

import (
	"fmt"
	"math/bits"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Options say how ports are read. Each field is required.
type Options struct {
	Interval time.Duration // from the begin of one pass to that of the next
	Rate     int           // requests in a second, at most
	Window   int           // agents that are read at once, at most MaxWindow
	Timeout  time.Duration // for which a request waits for its answer
	// Draw returns random bits. Transactions are made of them, so that no device answers a request that it has not seen.
	Draw func() uint32
}

// MaxWindow bounds Options.Window.
const MaxWindow = 1024

// burst is how long a pause may be whose requests are sent at once afterwards.
const burst = 10 * time.Millisecond

// Manager reads counters. Use New.
type Manager struct {
	Options
	slotMask uint32 // of a transaction: the bits that name the slot

	known map[key]*agent
	list  []*agent // those that are listed, in the order in which they are read
	at    int      // in list
	size  int      // of list, when there was one

	pass   uint64
	active bool
	rested bool      // there was nothing to read since the last pass
	begun  time.Time // of the pass, or of the last one
	due    time.Time // when the next pass begins
	gap    time.Duration
	free   time.Time // when the next request may be sent
	window window

	info     mad.ClassPortInfo // here, as locals would be allocated for each answer
	extended mad.PortCountersExtended
	counters mad.PortCounters
	stats    Stats
}

// New makes a Manager that knows no agent.
func New(o Options) (*Manager, error) {
	if o.Interval <= 0 || o.Rate <= 0 || o.Timeout <= 0 || o.Window <= 0 || o.Window > MaxWindow || o.Draw == nil {
		return nil, fmt.Errorf("read counters every %v, at %d requests a second, %d at once, with a timeout of %v: want values above 0, a window of at most %d, and random transactions",
			o.Interval, o.Rate, o.Window, o.Timeout, MaxWindow)
	}
	return &Manager{
		Options: o, slotMask: 1<<bits.Len(uint(o.Window-1)) - 1, known: map[key]*agent{}, window: newWindow(o.Window),
		stats: Stats{Interval: o.Interval},
	}, nil
}

// SetAgents says which agents there are. Of two with the same node and port, the first counts. What is known of others is kept for
// a while, so that the totals of a device that comes back go on.
func (m *Manager) SetAgents(now time.Time, all []Agent) {
	for _, a := range m.list {
		a.listed = false
	}
	empty := len(m.list) == 0
	m.list, m.at = m.list[:0], 0
	for i := range all {
		m.set(&all[i])
	}
	if empty && !m.active {
		m.due, m.rested = now, true // there was nothing to read
	}
	gone := 0
	for k, a := range m.known {
		switch {
		case a.listed:
			a.gone = time.Time{}
			continue
		case a.gone.IsZero():
			a.gone = now
			m.abort(a)
		case now.Sub(a.gone) > forget:
			delete(m.known, k)
			continue
		}
		gone++
	}
	if len(m.list) > 0 {
		m.size = len(m.list)
	}
	if gone > m.size+MaxWindow { // a device that shows ever new GUIDs takes no more memory than the fabric
		for k, a := range m.known {
			if !a.listed {
				delete(m.known, k)
			}
		}
	}
	m.over(now)
	if len(m.list) == 0 {
		m.stats.Between = 0
		m.survey(now)
	}
}

func (m *Manager) set(is *Agent) {
	k := key{is.GUID, is.At}
	a := m.known[k]
	switch {
	case a == nil:
		a = &agent{slot: none}
		m.known[k] = a
	case a.listed:
		return
	}
	other := a.list(is.Ports)
	if a.LID != is.LID {
		other, a.asked, a.fails, a.again = true, false, 0, time.Time{}
	}
	a.Agent, a.listed = Agent{GUID: is.GUID, At: is.At, LID: is.LID}, true
	if other {
		m.abort(a)
	}
	m.list = append(m.list, a)
}

// abort ends the reading of an agent, which is read again in this pass.
func (m *Manager) abort(a *agent) {
	a.pass = 0
	if a.slot != none {
		m.window.drop(a.slot)
	}
}

// Wake returns when Next or Expire has something to do, unless an answer comes before.
func (m *Manager) Wake() time.Time {
	at := m.due
	if m.active {
		at = m.begun.Add(2 * m.Interval) // at the latest; an answer, a timeout or the end of the pass comes before
		if m.window.ready.n > 0 || m.at < len(m.list) && len(m.window.free) > 0 {
			at = m.free
		}
	}
	if first := m.window.first; first != none && m.window.slots[first].until.Before(at) {
		at = m.window.slots[first].until
	}
	return at
}

// Reading has the totals of a port.
type Reading struct {
	GUID   ib.GUID // of the node
	Port   ib.PortNum
	Has    Set // the counters that the port has
	Totals Values
}

// Append appends the totals of all ports that were read lately.
func (m *Manager) Append(now time.Time, to []Reading) []Reading {
	oldest := now.Add(-m.stale())
	for _, a := range m.list {
		for i := range a.ports {
			if p := &a.ports[i]; p.newest().After(oldest) {
				to = append(to, Reading{GUID: a.GUID, Port: p.num, Has: p.has, Totals: p.total})
			}
		}
	}
	return to
}

// stale returns the age from which values are not shown.
func (m *Manager) stale() time.Duration { return 3 * max(m.Interval, m.stats.Took) }
