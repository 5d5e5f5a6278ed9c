package lonesm

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// meter is a port that counts the requests sent through it, and remembers when
// each kind of them began and ended.
type meter struct {
	transport.Port
	began time.Time

	mu    sync.Mutex
	spans map[requestKind]*span
	last  requestKind // of the last request, as most are like the one before
	span  *span       // of those
	sent  uint64
	trap  burst
}

// pollMeter is a meter of a port that can be polled.
type pollMeter struct {
	*meter
	poller transport.Poller
}

// port returns the port to be used.
func (m *meter) port() transport.Port {
	if p, ok := m.Port.(transport.Poller); ok {
		return &pollMeter{m, p}
	}
	return m
}

// TrySend implements transport.Poller.
func (m *pollMeter) TrySend(p []transport.Packet) (int, error) {
	at := time.Since(m.began)
	n, err := m.poller.TrySend(p)
	m.count(p[:n], at)
	return n, err
}

// TryReceive implements transport.Poller.
func (m *pollMeter) TryReceive(p []transport.Packet) (int, error) {
	n, err := m.poller.TryReceive(p)
	m.look(p[:n])
	return n, err
}

// Pause implements transport.Poller.
func (m *pollMeter) Pause(d time.Duration) error { return m.poller.Pause(d) }

// Wait implements transport.Poller.
func (m *pollMeter) Wait() error { return m.poller.Wait() }

// SA implements transport.Laned where the port does. Packets of that lane are not counted: they are not the subnet
// manager's.
func (m *meter) SA() (transport.SALane, error) {
	if p, ok := m.Port.(transport.Laned); ok {
		return p.SA()
	}
	return nil, fmt.Errorf("%T: %w", m.Port, errors.ErrUnsupported)
}

// requestKind distinguishes requests as a person does: by what they do.
type requestKind struct {
	method mad.Method
	attr   mad.AttrID
	state  ib.PortState // that a Set of PortInfo asks for
}

// span is how many requests there were of a kind, and when.
type span struct {
	sent        uint64
	first, last time.Duration // since the start of the process
}

// burst is a group of traps that came close together.
type burst struct {
	first, last time.Time
	sent        uint64 // requests before the first
}

// near is how close traps are that have one cause.
const near = time.Second

// stateOffset is where a PortInfo holds, in the lower half, the port state.
const stateOffset = 32

func kindOf(m *mad.MAD) requestKind {
	k := requestKind{method: m.Method(), attr: m.Attr()}
	if k.method == mad.MethodSet && k.attr == mad.AttrPortInfo {
		k.state = ib.PortState(m.Data()[stateOffset] & 0xF)
	}
	return k
}

// Send implements transport.Port.
func (m *meter) Send(p []transport.Packet) (int, error) {
	m.count(p, time.Since(m.began))
	return m.Port.Send(p)
}

func (m *meter) count(p []transport.Packet, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spans == nil {
		m.spans = make(map[requestKind]*span)
	}
	for i := range p {
		k := kindOf(&p[i].MAD)
		if k.method != mad.MethodGet && k.method != mad.MethodSet {
			continue // an answer of ours, or a TrapRepress
		}
		s := m.span
		if s == nil || k != m.last {
			if s = m.spans[k]; s == nil {
				s = &span{first: at}
				m.spans[k] = s
			}
			m.last, m.span = k, s
		}
		s.sent++
		s.last = at
		m.sent++
	}
}

// Receive implements transport.Port.
func (m *meter) Receive(p []transport.Packet) (int, error) {
	n, err := m.Port.Receive(p)
	m.look(p[:n])
	return n, err
}

// look notes traps.
func (m *meter) look(p []transport.Packet) {
	for i := range p {
		if p[i].MAD.Method() == mad.MethodTrap {
			m.trapped(time.Now())
			return
		}
	}
}

func (m *meter) trapped(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.trap.last) > near {
		m.trap = burst{first: now, sent: m.sent}
	}
	m.trap.last = now
}

// requests is how many were sent so far.
func (m *meter) requests() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent
}

// lately returns the beginning of the traps that came just before now.
func (m *meter) lately(now time.Time) (b burst, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trap, now.Sub(m.trap.last) <= near
}

// answered records that the work caused by the traps so far is done.
func (m *meter) answered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trap = burst{}
}
