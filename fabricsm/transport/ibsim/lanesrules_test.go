package ibsim

import (
	"context"
	"crypto/rand"
	"runtime"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// twoLanes is a port with lanes whose socket ends with the test, which sends by the
// other end.
func twoLanes(t *testing.T) (p *Port, sa saLane, other *sender) {
	t.Helper()
	name := "portcullis-" + rand.Text()
	var ends [2]*socket
	for i, end := range []string{":in", ":out"} {
		s, err := openSocket(name + end)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		ends[i] = s
	}
	for i, far := range []string{":out", ":in"} {
		if err := connect(ends[i], name+far); err != nil {
			t.Fatal(err)
		}
	}
	p = &Port{socket: name, data: ends[0], send: newSender(ends[0]), recv: newReceiver(ends[0]), closed: make(chan struct{})}
	lane, err := p.SA()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.lanes.close()
		_ = p.data.Close()
		p.lanes.free()
	})
	return p, lane.(saLane), newSender(ends[1])
}

func of(c mad.Class, tid ib.TID) transport.Packet {
	p := transport.Packet{LID: 1}
	p.MAD.SetHeader(mad.Header{Class: c, ClassVersion: 1, Method: mad.MethodGet, TID: tid})
	return p
}

// tids takes the waiting packets of a lane.
func tids(t *testing.T, l transport.Lane) (all []ib.TID) {
	t.Helper()
	buf := make([]transport.Packet, 3)
	for {
		n, err := l.TryReceive(buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
		for i := range buf[:n] {
			all = append(all, buf[i].MAD.TID())
		}
	}
}

func sameTIDs(t *testing.T, what string, got []ib.TID, want ...ib.TID) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

// When the SM's queue is full, the SA's lane takes nothing more from the socket: none
// of the SM's packets is lost because of the other lane.
func TestSMQueueNeverDrops(t *testing.T) {
	p, sa, other := twoLanes(t)
	p.lanes.sm.queue.most = 3
	out := []transport.Packet{
		of(mad.ClassSubn, 1), of(mad.ClassSubnAdm, 11), of(mad.ClassSubn, 2), of(mad.ClassSubn, 3),
		of(mad.ClassSubn, 4), of(mad.ClassSubnAdm, 12), of(mad.ClassSubn, 5),
	}
	if n, err := other.send(out, (*frameHeader).toClient); n != len(out) || err != nil {
		t.Fatal(n, err)
	}
	sameTIDs(t, "the SA's, while nobody takes the SM's", tids(t, sa), 11)
	sameTIDs(t, "the SM's", tids(t, p), 1, 2, 3, 4, 5)
	sameTIDs(t, "the SA's afterwards", tids(t, sa), 12)
	if sa.Dropped() != 0 {
		t.Errorf("%d dropped", sa.Dropped())
	}
}

// On a wire that the SM's lane found full, the SA's sends nothing before the SM's has
// got through, or has not come back for a while.
func TestSMGoesFirst(t *testing.T) {
	p, sa, other := twoLanes(t)
	many := make([]transport.Packet, 1000)
	for i := range many {
		many[i] = of(mad.ClassSubn, ib.TID(i))
	}
	n, err := p.TrySend(many)
	if n == 0 || n == len(many) || err != nil {
		t.Fatalf("sent %d, %v; want a wire that is full", n, err)
	}
	in := newReceiver(other.raw)
	buf := make([]transport.Packet, len(many))
	took := 0
	for took < n {
		k, err := in.await(buf, (*frameHeader).fromClient)
		if err != nil {
			t.Fatal(err)
		}
		took += k
	}
	p.lanes.refused.Store(time.Now().Add(time.Hour).UnixNano()) // the clock stands still for us
	answer := []transport.Packet{of(mad.ClassSubnAdm, 1)}
	if n, err := sa.TrySend(answer); n != 0 || err != nil {
		t.Errorf("the SA's lane sent %d, %v before the SM's", n, err)
	}
	if n, err := p.TrySend(many[:1]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := sa.TrySend(answer); n != 1 || err != nil {
		t.Errorf("the SA's lane sent %d, %v after the SM's", n, err)
	}
	p.lanes.refused.Store(time.Now().Add(-yield).UnixNano())
	if n, err := sa.TrySend(answer); n != 1 || err != nil {
		t.Errorf("the SA's lane sent %d, %v long after", n, err)
	}
}

// When both lanes sleep, one watches the socket: the SM's, unless the SA's had packets lately.
func TestWhoWatches(t *testing.T) {
	for _, tt := range []struct {
		name   string
		state  func(sm, sa *lane)
		sm, sa bool
	}{
		{"nobody has come yet", func(sm, sa *lane) { sm.stalled, sa.stalled = true, true }, true, true},
		{"no SA traffic", func(_, _ *lane) {}, true, false},
		{"SA traffic", func(_, sa *lane) { sa.hot = hot }, false, true},
		{"SA traffic, and it is busy", func(_, sa *lane) { sa.hot, sa.stalled = hot, true }, true, true},
		{"the SM is busy", func(sm, _ *lane) { sm.stalled = true }, true, true},
		{"the SA sleeps and watches", func(_, sa *lane) { sa.hot, sa.asleep, sa.watching = hot, true, true }, false, true},
		{"the SA sleeps and does not watch", func(_, sa *lane) { sa.hot, sa.asleep = hot, true }, true, true},
		{"the SM sleeps and watches", func(sm, _ *lane) { sm.asleep, sm.watching = true, true }, true, false},
		{"the SM sleeps and does not watch", func(sm, _ *lane) { sm.asleep = true }, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _, _ := twoLanes(t)
			l := p.lanes
			l.sm.stalled, l.sa.stalled = false, false
			tt.state(&l.sm, &l.sa)
			if sm, sa := l.sm.watches(), l.sa.watches(); sm != tt.sm || sa != tt.sa {
				t.Errorf("SM %v, SA %v; want %v, %v", sm, sa, tt.sm, tt.sa)
			}
			l.sm.asleep, l.sa.asleep = false, false
		})
	}
}

func TestQueue(t *testing.T) {
	q := queue{most: 150}
	next, want := ib.TID(0), ib.TID(0)
	buf := make([]transport.Packet, 100)
	for round := range 50 {
		for range 1 + round%70 {
			if p := q.push(); p != nil {
				*p = of(mad.ClassSubn, next)
				next++
			} else if q.room() != 0 {
				t.Fatalf("refused with room for %d", q.room())
			}
		}
		n := q.pop(buf[:1+round*7%60])
		for i := range buf[:n] {
			if got := buf[i].MAD.TID(); got != want {
				t.Fatalf("round %d: got %v, want %v", round, got, want)
			}
			want++
		}
	}
	if q.n+int(want) != int(next) || next < 1000 || len(q.ring) > q.most {
		t.Errorf("%d in, %d out, %d left in a ring of %d", next, want, q.n, len(q.ring))
	}
	if n := q.pop(make([]transport.Packet, 1000)); n+int(want) != int(next) || q.room() != q.most {
		t.Errorf("%d left, room for %d", n, q.room())
	}
}

// Two lanes that wait sleep: one watches, and no timer runs.
func TestIdle(t *testing.T) {
	p, sa, other := twoLanes(t)
	l := p.lanes
	var work sync.WaitGroup
	defer work.Wait()
	defer l.close()
	for _, x := range []*lane{&l.sm, &l.sa} {
		work.Go(func() {
			buf := make([]transport.Packet, 4)
			for {
				if _, err := x.receive(buf); err != nil {
					return
				}
				if _, err := x.wait(-1); err != nil {
					return
				}
			}
		})
	}
	for _, class := range []mad.Class{mad.ClassSubn, mad.ClassSubnAdm, mad.ClassSubn} {
		if n, err := other.send([]transport.Packet{of(class, 1)}, (*frameHeader).toClient); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		for idle := false; !idle; {
			l.mu.Lock()
			idle = l.sm.asleep && l.sa.asleep && !l.guarding && l.sm.queue.n+l.sa.queue.n == 0 && !somethingThere(p)
			if idle && !l.sm.watching && !l.sa.watching {
				t.Error("nobody watches")
			}
			l.mu.Unlock()
			runtime.Gosched()
		}
	}
	if sa.Dropped() != 0 {
		t.Errorf("%d dropped", sa.Dropped())
	}
}

// somethingThere reports whether packets are waiting on the socket.
func somethingThere(p *Port) (there bool) {
	_ = p.data.Control(func(fd uintptr) { there = somethingArrived(fd) })
	return there
}

// A lane that finds only packets of the other comes back after a while, however many
// more there are.
func TestFloodDoesNotKeep(t *testing.T) {
	p, sa, other := twoLanes(t)
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	defer flood.Wait()
	defer cancel()
	flood.Go(func() {
		many := make([]transport.Packet, batchSize)
		for i := range many {
			many[i] = of(mad.ClassSubnAdm, 1)
		}
		for ctx.Err() == nil {
			other.mu.Lock()
			other.done, other.want, other.errno = 0, other.b.load(many, (*frameHeader).toClient), 0
			_ = other.raw.Control(other.try)
			other.mu.Unlock()
		}
	})
	buf := make([]transport.Packet, 1)
	for sa.Dropped() == 0 {
		if n, err := p.TryReceive(buf); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n, err := sa.TryReceive(buf); n != 1 || err != nil {
		t.Error(n, err)
	}
}
