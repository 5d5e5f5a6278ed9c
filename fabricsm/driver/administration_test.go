package driver

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// fullLane is a lane that takes a limited number of packets and receives none.
type fullLane struct {
	transport.SALane

	mu   sync.Mutex
	room int
	took []transport.Packet
	all  chan bool // closed when as many were taken as want says
	want int
}

func (l *fullLane) TrySend(p []transport.Packet) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(l.room, len(p))
	l.room -= n
	l.took = append(l.took, p[:n]...)
	if n > 0 && len(l.took) == l.want {
		close(l.all)
	}
	return n, nil
}

func newAdministration(t *testing.T, l *fullLane) *administration {
	t.Helper()
	agent, err := sa.New(sa.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &administration{
		lane: l, agent: agent, gate: newGate(agent.Front()), views: make(chan *sm.View, 1), timer: time.NewTimer(time.Hour),
		wake: make(chan bool, 1), told: make(chan told, 1), ended: make(chan struct{}), failed: make(chan error, 1),
	}
}

func numbered(count uint16) []transport.Packet {
	all := make([]transport.Packet, count)
	for i := range all {
		all[i].PKeyIndex = uint16(i)
	}
	return all
}

// TestUnsentGoesLater: packets that the wire had no room for are sent later, in order, also without further requests.
func TestUnsentGoesLater(t *testing.T) {
	l := &fullLane{room: 2, want: 9, all: make(chan bool)}
	a := newAdministration(t, l)
	a.mu.Lock()
	err := a.push(numbered(9))
	a.mu.Unlock()
	if err != nil || len(l.took) != 2 {
		t.Fatalf("%d taken, %v", len(l.took), err)
	}
	l.room = 100
	var look sync.WaitGroup
	look.Go(a.look)
	<-l.all
	close(a.ended)
	look.Wait()
	for i := range l.took {
		if l.took[i].PKeyIndex != uint16(i) {
			t.Errorf("packet %d is number %d", i, l.took[i].PKeyIndex)
		}
	}
}

// TestUnsentIsBounded: while too many packets wait for room, requests are dropped.
func TestUnsentIsBounded(t *testing.T) {
	l := &fullLane{}
	a := newAdministration(t, l)
	var ask transport.Packet
	ask.QP, ask.LID = 1, 2
	ask.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrClassPortInfo})
	if err := a.take([]transport.Packet{ask}); err != nil || a.agent.Stats().Packets != 1 {
		t.Fatalf("%v, %+v", err, a.agent.Stats())
	}
	if err := a.push(numbered(mostUnsent + 1)); err != nil {
		t.Fatal(err)
	}
	if err := a.take([]transport.Packet{ask, ask}); err != nil || a.agent.Stats().Packets != 1 {
		t.Errorf("%v, %+v", err, a.agent.Stats())
	}
}

// slowStore is a store that answers when it is let to.
type slowStore struct {
	let   chan bool
	mu    sync.Mutex
	facts []sm.Fact
}

func (s *slowStore) Load() ([]sm.Fact, error) { return nil, nil }

func (s *slowStore) Save(f []sm.Fact) error {
	<-s.let
	s.mu.Lock()
	s.facts = append(s.facts, f...)
	s.mu.Unlock()
	return nil
}

// TestNobodyWaitsForTheStore: only a client that registers something waits for the store, or for the core. All other
// requests are answered, however much is to be saved and passed on. In the end all of it was done, in order.
func TestNobodyWaitsForTheStore(t *testing.T) {
	l := &fullLane{room: 1 << 20, want: 1 << 30, all: make(chan bool)}
	a := newAdministration(t, l)
	store := &slowStore{let: make(chan bool)}
	a.store = store
	var keep sync.WaitGroup
	keep.Go(a.keep)
	const all = 3 * mostUnsent
	for i := range all {
		a.mu.Lock()
		a.out.Save = append(a.out.Save, sm.Fact{Kind: sm.FactSAGroup, Name: strconv.Itoa(i), Body: "x"})
		a.out.Tell = append(a.out.Tell, &sm.GroupsChanged{Made: []ib.LID{ib.LID(i)}})
		a.out.Held = append(a.out.Held, transport.Packet{PKeyIndex: uint16(i)})
		a.out.Send = append(a.out.Send, transport.Packet{PKeyIndex: 0xFFFF})
		if err := a.flush(); err != nil {
			t.Fatal(err)
		}
		a.mu.Unlock()
	}
	l.mu.Lock()
	if len(l.took) != all {
		t.Errorf("%d answers were sent while the store does not answer, want %d", len(l.took), all)
	}
	l.mu.Unlock()
	close(store.let)
	for next := 0; next < all; {
		for _, in := range (<-a.told).tell {
			if got := in.(*sm.GroupsChanged).Made[0]; got != ib.LID(next) {
				t.Fatalf("told of %d, want %d", got, next)
			}
			next++
		}
	}
	close(a.ended)
	keep.Wait()
	if len(store.facts) != all || store.facts[all-1].Name != strconv.Itoa(all-1) {
		t.Errorf("%d facts are kept", len(store.facts))
	}
	held, last := 0, -1 // answers beyond the room for waiting ones are missing, whenever keep began
	for _, p := range l.took {
		if p.PKeyIndex != 0xFFFF {
			if int(p.PKeyIndex) <= last {
				t.Fatalf("answer %d goes after %d", p.PKeyIndex, last)
			}
			held, last = held+1, int(p.PKeyIndex)
		}
	}
	if held < mostUnsent || held > 2*mostUnsent {
		t.Errorf("%d answers went after the facts, want no more than may wait, twice", held)
	}
}

// TestStatusHasFloods: dropped packets of other classes are part of the status of subnet administration.
func TestStatusHasFloods(t *testing.T) {
	a := newAdministration(t, &fullLane{})
	now := time.Now()
	p := transport.Packet{LID: 7, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodGet})
	const all = 1000
	for range all {
		a.gate.front.Admit(now, &p)
	}
	a.gate.front.Report(now.Add(2 * time.Second))
	s := a.status().Front
	of := &s.Limiter[limiter.Other]
	if of[limiter.NodeRate] == 0 || of[limiter.Pass]+of[limiter.NodeRate] != all || len(s.Violations) != 1 || s.Violations[0].Count != of[limiter.NodeRate] {
		t.Errorf("%d passed, %d are dropped, listed are %v", of[limiter.Pass], of[limiter.NodeRate], s.Violations)
	}
}
