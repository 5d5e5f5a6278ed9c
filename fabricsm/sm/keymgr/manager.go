package keymgr

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Fabric returns the present state of an end port; *sm.Core is one.
type Fabric interface {
	KeyPort(topo.PortID) (sm.KeyPort, bool)
}

// Input is one thing that happened.
type Input interface{ input() }

// Started begins the life of a manager, with all facts that were saved.
type Started struct{ Facts []sm.Fact }

// Seen is a new view of the core.
type Seen struct{ View *sm.View }

// Received is a GMP of a class with keys that is no answer to a request.
type Received sm.Received

// Reply is how a request ended.
type Reply sm.Reply

// Woken says that the time of Output.Wake has come.
type Woken struct{}

// Release removes the keys of all devices. No device gets one any more, not after a restart either, until Resume. A second
// Release reports the result again.
type Release struct{}

// Resume has devices get keys again after Release.
type Resume struct{}

// Retire destroys the keys of a device that left permanently; see sm.RetireKey. A device that is seen keeps them.
type Retire struct{ GUID ib.GUID }

func (*Started) input()  {}
func (*Seen) input()     {}
func (*Received) input() {}
func (*Reply) input()    {}
func (*Woken) input()    {}
func (*Release) input()  {}
func (*Resume) input()   {}
func (*Retire) input()   {}

// Output is what one Step wants done. It is valid until the next Step.
type Output struct {
	Save   []sm.Fact     // durable first
	Answer []sm.Response // then on the wire, on QP1
	Send   []sm.Request  // then these, by LID to QP1; ids are those of this manager alone
	Events []sm.Event
	Judged []sm.ClassTrapJudged // for the core: what became of traps that it lists
	Status *Status              // nil when nothing is new
	Wake   time.Time            // step Woken in by then; zero: no need
}

const (
	// tries is how often a request without an answer is sent.
	tries = 3
	// maxSets is how often the same is written to a device that does not keep it.
	maxSets = 3
	// reactEvery is the shortest time between two reactions to traps of an agent.
	reactEvery = time.Second
	// calmFor is how long the fabric must have been settled before silence counts: longer than all tries of a request take.
	calmFor = time.Second
	// lookEvery is how often a settled device is asked whose lease never ends.
	lookEvery = 10 * time.Minute
	// againMin and againMax bound the doubling pause before a device that did not answer, or cannot have its key, is asked
	// again.
	againMin, againMax = time.Minute, time.Hour
)

// classes is how many management classes with keys there are.
const classes = 3

// n2n is the index of class 0x0C.
const (
	cc = iota
	vs
	n2n
)

// class is all about one management class.
type class struct {
	cfg     sm.ClassKeyConfig
	mad     mad.KeyClass
	kind    keys.Kind
	first   fifo // agents to be worked on
	again   fifo // those whose request is to be repeated, when first is empty
	out     int  // requests out
	stages  [numStages]int
	single  int // keyed agents of devices that hold one key at a time
	turning int // agents whose key is being changed
}

// Manager assigns the keys of classes. Use New. It is not safe for concurrent use.
type Manager struct {
	cfg     sm.ClassKeysConfig
	fabric  Fabric
	born    time.Time
	now     time.Time
	started bool

	book    *keys.Book
	classes classTable

	view    *sm.View
	parked  int    // upper bound of the agents that wait for the fabric to be settled
	lid     ib.LID // of the port we are attached to
	master  bool
	ready   bool      // the fabric was settled once under this master
	settled bool      // it is now
	calm    time.Time // since when

	roster
	cabling cabling

	wire   work.Slots[request] // at most one for each agent, and no more than the windows of the classes together
	timers timers

	rotation rotation
	release  release
	strays   uint64 // traps from unknown sources
	changed  bool   // since the last Status
	shown    time.Time
	out      outbox
}

// New makes a manager. It does nothing before it is stepped with Started. The
// configuration must have been checked.
func New(cfg sm.ClassKeysConfig, fabric Fabric) *Manager {
	m := &Manager{cfg: cfg, fabric: fabric, roster: newRoster()}
	for i, x := range [classes]struct {
		cfg   sm.ClassKeyConfig
		class mad.Class
		kind  keys.Kind
	}{
		cc:  {cfg.CC, mad.ClassCongestionControl, keys.CCKey},
		vs:  {cfg.VS, mad.ClassVendorVS, keys.VSKey},
		n2n: {cfg.N2N, mad.ClassVendorN2N, keys.N2NKey},
	} {
		c := &m.classes[i]
		c.cfg, c.kind = x.cfg, x.kind
		c.mad, _ = mad.LookupKeyClass(x.class)
		if c.cfg.Window == 0 {
			c.cfg.Window = defaultWindow
		}
	}
	return m
}

// defaultWindow is how many requests of a class are out at once.
const defaultWindow = 500

// Step advances the manager by one input. It never blocks. now must not go back.
func (m *Manager) Step(now time.Time, in Input) Output {
	m.now = now
	m.out.empty()
	if s, ok := in.(*Started); ok && !m.started {
		m.start(s)
	}
	if !m.started {
		return m.out.Output
	}
	switch in := in.(type) {
	case *Seen:
		m.see(in.View)
	case *Received:
		m.received(in)
	case *Reply:
		m.reply(in)
	case *Release:
		m.releaseAll()
	case *Resume:
		m.resume()
	case *Retire:
		m.retireDevice(in.GUID)
	}
	m.fire()
	m.pump()
	m.rotate()
	m.pump()
	m.tellReleased()
	m.tellStatus()
	m.out.Wake = m.wake()
	return m.out.Output
}

func (m *Manager) start(s *Started) {
	m.started, m.born = true, m.now
	records := sm.KeyRecords(s.Facts)
	ours := records[:0]
	for _, r := range records {
		if ofClass(r.Kind) {
			ours = append(ours, r)
		}
	}
	book, err := keys.NewBook(ours)
	if err != nil {
		// The loader of facts checks them. Without them no key may be assigned.
		m.out.event(&sm.ClassKeyProblem{Reason: err.Error()})
		m.started = false
		return
	}
	m.book = book
	m.cabling = cabling{ports: m.fabric, book: book, devices: &m.roster}
	m.release.on = sm.KeysWereReleased(s.Facts)
	m.startRotation(s.Facts)
}

// ofClass reports whether this package assigns keys of a kind.
func ofClass(k keys.Kind) bool {
	return k == keys.CCKey || k == keys.VSKey || k == keys.N2NKey || k == keys.N2NNodeKey
}

// wake returns the earliest time at which work is due.
func (m *Manager) wake() time.Time {
	var at time.Time
	if len(m.timers) > 0 {
		at = m.born.Add(m.timers[0].at)
	}
	if r := m.rotation.at; !r.IsZero() && m.mayRotate() && (at.IsZero() || r.Before(at)) {
		at = r
	}
	return at
}
