package shadow

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// Options say how a fabric is asked.
type Options struct {
	// Rate is how many questions are sent in a second, at most; 0: as many as the Subnet Manager has.
	Rate int
	// Silent is called for each way that leads to a device which answers nothing, nil: nothing is reported. It must not block.
	Silent func(Silence)
	// Locked is called for each port that would refuse what is written, time and again, as its M_Key is another one or is
	// hidden, nil: nothing is reported. It must not block.
	Locked func(Where)
}

// Silence is a device that answered nothing, though the link to it is up.
type Silence struct {
	Route mad.Route
	// Node is the device before it, and Port the one of it that leads there; Node is 0 for the device that the fabric is
	// asked from.
	Node ib.GUID
	Port ib.PortNum
	Name string // of Node
}

// patience is how many questions remain without an answer before a device is reported as silent.
const patience = 2

// Port is a port of a Subnet Manager that only looks. It implements transport.Port.
type Port struct {
	wire  gets
	every time.Duration // between two questions
	free  time.Time     // when the next one may be sent

	mu      sync.Mutex
	silent  func(Silence)
	locked  func(Where)
	overlay overlay
	out     map[uint32]asked      // by the half of the transaction id that is ours
	waits   map[mad.Route]waiting // ways on which nothing ever answered
	heard   map[mad.Route]struct{}
	asked   uint64
}

// asked is a request of the Subnet Manager for which a question is out.
type asked struct {
	question
	set  bool
	mod  uint32  // of the request; that of the question differs where devices answer no Get of it
	key  ib.MKey // of the request
	data [mad.DataSize]byte
}

// waiting counts questions without an answer.
type waiting struct {
	count    int
	reported bool
}

// maxWaiting bounds what is remembered of questions that nothing answered.
const maxWaiting = 1 << 16

// New returns a port over a real one, which it closes.
func New(real transport.Port, o Options) *Port {
	p := &Port{
		wire: gets{real}, silent: o.Silent, locked: o.Locked, overlay: newOverlay(),
		out: make(map[uint32]asked), waits: make(map[mad.Route]waiting), heard: make(map[mad.Route]struct{}),
	}
	if o.Rate > 0 {
		p.every = time.Second / time.Duration(o.Rate)
	}
	return p
}

// GUID implements transport.Port.
func (p *Port) GUID() ib.GUID { return p.wire.guid() }

// SetIsSM implements transport.Port. The port stays what it is.
func (p *Port) SetIsSM(bool) error { return nil }

// Close implements transport.Port.
func (p *Port) Close() error { return p.wire.close() }

// Send implements transport.Port. What cannot be asked is not sent, and so gets no answer.
func (p *Port) Send(packets []transport.Packet) (int, error) {
	for i := range packets {
		q, ok := p.ask(&packets[i].MAD)
		if !ok {
			continue
		}
		p.pace()
		if _, err := p.wire.send([]question{q}); err != nil {
			return i, err
		}
	}
	return len(packets), nil
}

// burst is how long a pause may be whose questions are sent at once afterwards.
const burst = 10 * time.Millisecond

// pace waits until the next question may be sent.
func (p *Port) pace() {
	if p.every == 0 {
		return
	}
	now := time.Now()
	if p.free.Before(now.Add(-burst)) {
		p.free = now.Add(-burst)
	}
	if wait := p.free.Sub(now); wait > 0 {
		time.Sleep(wait)
	}
	p.free = p.free.Add(p.every)
}

// ask records a request, and returns the question that stands for it.
func (p *Port) ask(m *mad.MAD) (question, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := m.Method() == mad.MethodSet
	if !m.IsDR() || !set && m.Method() != mad.MethodGet || set && !canWrite(m.Attr()) {
		p.overlay.withheld++
		return question{}, false
	}
	a := asked{question: question{tid: m.TID(), attr: m.Attr(), mod: m.Mod(), route: m.Route()}, set: set, mod: m.Mod(), key: m.MKey()}
	at, known := p.overlay.resolve(a.route)
	if known && p.overlay.isCut(a.route) {
		return question{}, false // the link to it would be down
	}
	a.question.mod = readable(a.attr, a.mod, at)
	a.question.key = p.overlay.realKey(at, a.key)
	copy(a.data[:], m.Data())
	if len(p.out) >= maxWaiting {
		clear(p.out)
	}
	p.out[uint32(a.tid)] = a
	p.asked++
	p.unheard(a.route)
	return a.question, true
}

// unheard counts a question on a way on which nothing answered yet.
func (p *Port) unheard(r mad.Route) {
	if _, ok := p.heard[r]; ok {
		return
	}
	w := p.waits[r]
	w.count++
	if w.count > patience && !w.reported {
		w.reported = true
		if p.silent != nil {
			p.silent(p.silence(r))
		}
	}
	p.waits[r] = w
}

func (p *Port) silence(r mad.Route) Silence {
	s := Silence{Route: r}
	if r.Len() == 0 {
		return s
	}
	if at, ok := p.overlay.resolve(prefix(r)); ok {
		s.Node, s.Port, s.Name = at.node, r.At(r.Len()-1), p.overlay.name(at.node)
	}
	return s
}

// silences lists the devices that answered nothing.
func (p *Port) silences() (out []Silence) {
	for r := range p.waits {
		out = append(out, p.silence(r))
	}
	slices.SortFunc(out, func(a, b Silence) int { return cmp.Compare(a.Route.String(), b.Route.String()) })
	return out
}

// Receive implements transport.Port. Only answers to what was asked arrive.
func (p *Port) Receive(packets []transport.Packet) (int, error) {
	for {
		n, err := p.wire.receive(packets)
		kept := 0
		for i := range n {
			if p.answer(&packets[i]) {
				packets[kept] = packets[i]
				kept++
			}
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}

// answer turns the answer to a question into that to the request, and reports whether there is one.
func (p *Port) answer(packet *transport.Packet) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &packet.MAD
	a, ok := p.out[uint32(m.TID())]
	if !ok {
		return false
	}
	if packet.Undelivered {
		delete(p.out, uint32(m.TID()))
		return true
	}
	if !m.IsDR() || m.Method() != mad.MethodGetResp || m.Attr() != a.attr || m.Mod() != a.question.mod || !m.Returning() || m.Route() != a.route {
		return false
	}
	delete(p.out, uint32(m.TID()))
	p.heard[a.route] = struct{}{}
	delete(p.waits, a.route)
	m.SetMod(a.mod)
	if m.Status() != mad.StatusOK {
		return true
	}
	locked := len(p.overlay.refused) > 0 && p.overlay.refused[p.overlay.keyEnd(a.route)] > patience
	ok = p.overlay.answer(&a, m.Data())
	if at := p.overlay.keyEnd(a.route); !locked && p.overlay.refused[at] > patience && p.locked != nil {
		p.locked(p.overlay.where(at))
	}
	return ok
}

// Unnamed counts the devices that have not said yet how they are called.
func (p *Port) Unnamed() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.overlay.devices {
		if !d.named {
			n++
		}
	}
	return n
}
