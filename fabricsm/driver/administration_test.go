package driver

import (
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// fullLane is a lane that takes so many packets and gives none.
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
		lane: l, agent: agent, views: make(chan *sm.View, 1), timer: time.NewTimer(time.Hour),
		kept: make(chan kept, keepAhead), ended: make(chan struct{}), failed: make(chan error, 1),
	}
}

func numbered(count uint16) []transport.Packet {
	all := make([]transport.Packet, count)
	for i := range all {
		all[i].PKeyIndex = uint16(i)
	}
	return all
}

// What the wire had no room for goes, in order, although nobody asks anything more.
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

// While too much waits for room, what is asked is dropped.
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
