package testbed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/transport"
)

const (
	// answerTime is how long a packet and its answer take.
	answerTime = 10 * time.Microsecond
	// timeout is how long an answer is waited for.
	timeout = 200 * time.Millisecond
	// maxTurns bounds the work between two calls of a test: a manager that needs more is in an endless loop.
	maxTurns = 5_000_000
)

// Epoch is when virtual time begins.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Options describe the stage.
type Options struct {
	Netlist *netlist.Netlist
	Manager string      // node of the Subnet Manager; "" is the first of the netlist
	Fabric  sim.Options // Seed is set
	SM      sm.Config   // PortGUID is set
	SA      *sa.Config  // nil: no request is answered
	Seed    uint64
	Work    Work // how long packets take

	// CountedTIDs uses consecutive transaction ids for requests, for drills.
	CountedTIDs bool

	// Keys creates the manager of the keys of classes, if any are configured; nil: keymgr.New.
	Keys func(sm.ClassKeysConfig, keymgr.Fabric) KeyManager

	// Forgets names facts that do not get saved, for drills; nil: none.
	Forgets func(*sm.Fact) bool
}

// Happened is an event and when, since the start of the stage.
type Happened struct {
	At    time.Duration
	Event sm.Event
}

// Stage is a fabric with its Subnet Manager. It is not safe for concurrent use.
type Stage struct {
	// Fabric is for attacks, cable changes and inspection. Its time is the stage's: do not Advance it.
	Fabric *sim.Fabric
	List   *netlist.Netlist // as the fabric was built
	SM     sm.Config        // of the next Start
	SA     *sa.Config       // of the next Start; nil: no request is answered
	Work   Work

	// OnSend sees every request on its way; true loses it. OnAnswer sees every answer and every unsolicited packet, may
	// change it, and loses it with true. OnStep runs after each step of a manager. Each may be nil.
	OnSend   func(*sm.Request) (lose bool)
	OnAnswer func(*transport.Packet) (lose bool)
	OnStep   func()

	// Delays returns the additional delays of a packet to the manager; it arrives once for each number. nil: each packet
	// arrives once, at once.
	Delays func(*transport.Packet) []time.Duration

	station  *sim.Station
	core     *sm.Core // nil while no manager runs
	keys     classKeys
	counters counters
	sa       administration
	front    *sa.Front // nil while no manager runs
	queues   [2]queue  // to the core and to subnet administration
	newKeys  func(sm.ClassKeysConfig, keymgr.Fabric) KeyManager
	rng      *rand.Rand
	counted  bool // CountedTIDs
	forgets  func(*sm.Fact) bool
	lastTID  uint32 // of these
	now      time.Time
	facts    []sm.Fact
	intent   sm.Intent
	view     *sm.View
	events   []Happened

	inbox []arrival // by time, then order
	seq   int
	out   map[ib.TID]*pending
	order []*pending // of requests that are out, by when they time out; some ended
	wake  time.Time
	job   *sm.RouteJob
	turns int // since the last call from outside

	overflowed uint64
	crowdEnd   time.Time       // until when requests are sent again
	repeated   map[ib.TID]bool // requests that were sent again and have ended
	err        error
}

// New builds the fabric. No manager runs before Start.
func New(o Options) (*Stage, error) {
	o.Fabric.Seed = o.Seed
	s := &Stage{
		Fabric: sim.NewWith(o.Netlist, o.Fabric), List: o.Netlist, SM: o.SM, SA: o.SA, Work: o.Work,
		rng: rand.New(rand.NewPCG(o.Seed, 1)), counted: o.CountedTIDs, forgets: o.Forgets, newKeys: o.Keys, now: Epoch,
	}
	station, err := s.Fabric.Station(o.Manager, true)
	if err != nil {
		return nil, fmt.Errorf("stage: %w", err)
	}
	s.station, s.SM.PortGUID = station, station.GUID()
	return s, nil
}

// Start starts a manager, or starts it again after Crash, with the saved facts. It knows of no intent before Want.
func (s *Stage) Start() {
	s.Crash()
	s.core = sm.New(s.SM)
	s.station.SetIsSM(true)
	s.startKeys(slices.Clone(s.facts))
	s.startCounters()
	if s.err = s.startAdministration(); s.err != nil {
		return
	}
	if s.err = s.startFront(); s.err != nil {
		return
	}
	s.Step(&sm.Started{Facts: slices.Clone(s.facts)})
}

// Crash ends the manager at once: its unsaved state and the packets on their way to it are lost.
func (s *Stage) Crash() {
	s.core, s.keys, s.counters, s.sa, s.view, s.job = nil, classKeys{}, counters{}, administration{}, nil, nil
	s.front = nil
	s.queues = [2]queue{}
	s.out, s.order, s.inbox, s.wake = make(map[ib.TID]*pending), nil, nil, time.Time{}
	s.crowdEnd, s.repeated = time.Time{}, make(map[ib.TID]bool)
	s.station.SetIsSM(false)
	s.station.Take(nil)
}

// Move ends the manager, and starts it on the adapter of another node with the saved facts. It knows of no intent before
// Want.
func (s *Stage) Move(node string) error {
	s.Crash()
	s.station.Close()
	station, err := s.Fabric.Station(node, true)
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	s.station, s.SM.PortGUID = station, station.GUID()
	s.Start()
	return s.err
}

// Running reports whether there is a manager.
func (s *Stage) Running() bool { return s.core != nil }

// Restore replaces the saved facts, for the next Start.
func (s *Stage) Restore(facts []sm.Fact) { s.facts = slices.Clone(facts) }

// Want replaces the intent.
func (s *Stage) Want(in sm.Intent) {
	s.intent = in
	s.Step(&sm.IntentSet{Intent: in})
}

// Intent returns the current intent.
func (s *Stage) Intent() sm.Intent { return s.intent }

// Grant wants more than before, or a membership in another form.
func (s *Stage) Grant(g ...sm.Grant) {
	s.intent.Revision++
	s.intent.Grants = append(without(s.intent.Grants, g), g...)
	s.Step(&sm.IntentChanged{Revision: s.intent.Revision, Grant: g})
}

// Withdraw wants less than before.
func (s *Stage) Withdraw(g ...sm.Grant) {
	s.intent.Revision++
	s.intent.Grants = without(s.intent.Grants, g)
	s.Step(&sm.IntentChanged{Revision: s.intent.Revision, Withdraw: g})
}

// without returns a list of grants without some, in either form.
func without(list, not []sm.Grant) []sm.Grant {
	return slices.DeleteFunc(slices.Clone(list), func(g sm.Grant) bool {
		return slices.ContainsFunc(not, func(o sm.Grant) bool {
			return o.GUID == g.GUID && o.Place == g.Place && o.PKey.Base() == g.PKey.Base()
		})
	})
}

// Now is the virtual time since the stage was built.
func (s *Stage) Now() time.Duration { return s.now.Sub(Epoch) }

// View is the last one, nil before the first.
func (s *Stage) View() *sm.View { return s.view }

// Facts returns the facts that managers saved, in order.
func (s *Stage) Facts() []sm.Fact { return s.facts }

// Events returns all events of the managers since the stage was built.
func (s *Stage) Events() []Happened { return s.events }

// Mark returns a position in the events; see Since.
func (s *Stage) Mark() int { return len(s.events) }

// Since returns the events after a mark.
func (s *Stage) Since(mark int) []Happened { return s.events[mark:] }

// Err reports that the stage stopped because the manager runs in an endless loop.
func (s *Stage) Err() error { return s.err }

var errNoRest = errors.New("the manager comes to no rest")

// Place returns where an end port is cabled in the netlist; zero if nowhere.
func (s *Stage) Place(node string, num ib.PortNum) ib.Place {
	n := s.List.Find(node)
	if n == nil || int(num) >= len(n.Ports) || n.Ports[num].Peer == "" {
		return ib.Place{}
	}
	at := n.Ports[num]
	return ib.Place{Switch: s.List.Find(at.Peer).GUID, Port: at.PeerPort}
}

// GUID returns the GUID of an end port in the netlist; zero if there is none.
func (s *Stage) GUID(node string, num ib.PortNum) ib.GUID {
	if n := s.List.Find(node); n != nil && int(num) < len(n.Ports) {
		return n.PortGUID(num)
	}
	return 0
}

// GrantOf is the grant of a P_Key to a port at its place in the netlist.
func (s *Stage) GrantOf(node string, num ib.PortNum, key ib.PKey) sm.Grant {
	return sm.Grant{GUID: s.GUID(node, num), PKey: key, Place: s.Place(node, num)}
}

// SwitchPort returns the switch port in front of an end port in the netlist.
func (s *Stage) SwitchPort(node string, num ib.PortNum) sim.Endpoint {
	n := s.List.Find(node)
	if n == nil || int(num) >= len(n.Ports) {
		return sim.Endpoint{}
	}
	return sim.Endpoint{Node: n.Ports[num].Peer, Port: n.Ports[num].PeerPort}
}
