package ibsim_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// lab is a fabric that was brought up, with the port of a subnet manager on it, its
// lane of subnet administration, and a host that asks.
type lab struct {
	port *ibsim.Port
	sa   transport.SALane
	host *sim.Station
	next *sim.Station // another
	lid  ib.LID       // of the port
}

func newLab(t testing.TB) *lab {
	t.Helper()
	return newLabWith(t, true)
}

// newLabWith is newLab, or a port without lanes.
func newLabWith(t testing.TB, lanes bool) *lab {
	t.Helper()
	list, err := netlist.Chain(netlist.Shape{Hosts: 3, Switches: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := sim.New(list)
	port, err := f.Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	err = driver.Run(t.Context(), driver.Options{
		Port: port, Core: sm.Config{Enforcement: sm.Accepted}, Until: driver.UntilSettled,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{lid: f.PortInfo("sm", 1).LID}
	l.port, err = ibsim.Dial(t.Context(), ibsim.Options{Socket: simtest.Serve(t, f).Socket, Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.port.Close() })
	if lanes {
		if l.sa, err = l.port.SA(); err != nil {
			t.Fatal(err)
		}
	}
	if l.host, err = f.Station("h1", false); err != nil {
		t.Fatal(err)
	}
	if l.next, err = f.Station("h2", false); err != nil {
		t.Fatal(err)
	}
	return l
}

// ask sends requests of subnet administration and as many of subnet management, with
// transactions from first on.
func (l *lab) ask(first, count ib.TID) {
	for tid := first; tid < first+count; tid++ {
		l.host.Send(l.question(mad.ClassSubnAdm, tid), l.question(mad.ClassSubn, tid))
	}
}

func (l *lab) question(c mad.Class, tid ib.TID) transport.Packet {
	p := transport.Packet{LID: l.lid}
	h := mad.Header{Class: c, ClassVersion: 1, Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: tid}
	if c == mad.ClassSubnAdm {
		p.QP, h.ClassVersion, h.Attr = 1, mad.SAClassVersion, mad.AttrPathRecord
	}
	p.MAD.SetHeader(h)
	return p
}

// gather takes packets of one lane, in order, until there are so many.
func gather(t *testing.T, l transport.Lane, class mad.Class, first, count ib.TID) {
	t.Helper()
	buf := make([]transport.Packet, 7)
	for next := first; next < first+count; {
		n, err := l.TryReceive(buf)
		if err == nil && n == 0 {
			err = l.Wait()
		}
		if err != nil {
			t.Errorf("%v: %v", class, err)
			return
		}
		for i := range buf[:n] {
			if m := &buf[i].MAD; m.Class() != class || uint32(m.TID()) != uint32(next) {
				t.Errorf("%v %v came, want %v %v", m.Class(), m.TID(), class, next)
			}
			next++
		}
	}
}

// Each lane gets its own packets in order, whichever lane receives.
func TestLanesSplit(t *testing.T) {
	const count = 100
	t.Run("the SM's first", func(t *testing.T) {
		l := newLab(t)
		l.ask(1, count)
		gather(t, l.port, mad.ClassSubn, 1, count)
		gather(t, l.sa, mad.ClassSubnAdm, 1, count)
	})
	t.Run("the SA's first", func(t *testing.T) {
		l := newLab(t)
		l.ask(1, count)
		gather(t, l.sa, mad.ClassSubnAdm, 1, count)
		gather(t, l.port, mad.ClassSubn, 1, count)
	})
	t.Run("both at once", func(t *testing.T) {
		l := newLab(t)
		for i := range ib.TID(20) { // not all at once: the queue of an adapter holds 512
			var both sync.WaitGroup
			both.Go(func() { gather(t, l.port, mad.ClassSubn, 1+i*count, count) })
			both.Go(func() { gather(t, l.sa, mad.ClassSubnAdm, 1+i*count, count) })
			l.ask(1+i*count, count)
			both.Wait()
		}
		if l.sa.Dropped() != 0 {
			t.Errorf("%d dropped", l.sa.Dropped())
		}
	})
	t.Run("by Receive", func(t *testing.T) {
		l := newLab(t)
		l.ask(1, 2)
		in := make([]transport.Packet, 1)
		for tid := range uint32(2) {
			if n, err := l.port.Receive(in); n != 1 || err != nil || in[0].MAD.Class() != mad.ClassSubn || uint32(in[0].MAD.TID()) != 1+tid {
				t.Errorf("%d, %v, %v", n, err, in[0].MAD.Header())
			}
		}
	})
}

// serve answers the packets of a lane until it is closed. It also receives while it waits for room to send; otherwise it
// could wait forever.
func serve(t testing.TB, l transport.Lane) {
	buf := make([]transport.Packet, 64)
	var out []transport.Packet
	for {
		n, err := l.TryReceive(buf)
		for i := range buf[:n] {
			buf[i].MAD.Respond(mad.StatusOK)
		}
		out = append(out, buf[:n]...)
		sent := 0
		if err == nil && len(out) > 0 {
			sent, err = l.TrySend(out)
			out = out[:copy(out, out[sent:])]
		}
		switch {
		case err != nil || n > 0 || sent > 0:
		case len(out) > 0:
			err = l.Pause(100 * time.Microsecond)
		default:
			err = l.Wait()
		}
		if errors.Is(err, transport.ErrClosed) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// answered sends a request and waits for its answer.
func (l *lab) answered(t *testing.T, c mad.Class, tid ib.TID) {
	t.Helper()
	l.host.Send(l.question(c, tid))
	in := make([]transport.Packet, 1)
	if n, err := l.host.Port().Receive(in); n != 1 || err != nil || in[0].Undelivered || in[0].MAD.Class() != c || uint32(in[0].MAD.TID()) != uint32(tid) {
		t.Fatalf("%d, %v: %v", n, err, in[0].MAD.Header())
	}
}

// While one lane does not come to receive, the other is served all the same. The
// test would wait for ever if not.
func TestLanesServeAlone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		busy  func(*lab) transport.Lane
		alive func(*lab) transport.Lane
		class mad.Class
	}{
		{
			"the SM is busy",
			func(l *lab) transport.Lane { return l.port }, func(l *lab) transport.Lane { return l.sa }, mad.ClassSubnAdm,
		},
		{
			"the SA is busy",
			func(l *lab) transport.Lane { return l.sa }, func(l *lab) transport.Lane { return l.port }, mad.ClassSubn,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			var server sync.WaitGroup
			defer server.Wait()
			defer l.port.Close()
			server.Go(func() { serve(t, tt.alive(l)) })
			busy, buf := tt.busy(l), make([]transport.Packet, 4)
			for round := range ib.TID(5) {
				for i := range ib.TID(10) {
					l.answered(t, tt.class, 1+100*round+i)
				}
				// It is there for a moment, so that the other relies on it, and goes.
				if _, err := busy.TryReceive(buf); err != nil {
					t.Fatal(err)
				}
				if err := busy.Pause(time.Millisecond); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Both sleep, and each is woken for its own.
func TestLanesSleep(t *testing.T) {
	l := newLab(t)
	var servers sync.WaitGroup
	defer servers.Wait()
	defer l.port.Close()
	servers.Go(func() { serve(t, l.port) })
	servers.Go(func() { serve(t, l.sa) })
	for i := range ib.TID(200) {
		class := mad.ClassSubn
		if i%3 == 0 || i > 100 && i < 150 {
			class = mad.ClassSubnAdm
		}
		l.answered(t, class, 1+i)
	}
}

// A flood that is not answered costs the lane of subnet administration only packets of the flooding source, and the other
// lane none.
func TestLanesDrop(t *testing.T) {
	const most, flood = 4096 / 2, 5000 // of one source
	l := newLab(t)
	var server sync.WaitGroup
	defer server.Wait()
	defer l.port.Close()
	server.Go(func() { serve(t, l.port) })
	for i := range ib.TID(flood) {
		l.host.Send(l.question(mad.ClassSubnAdm, i))
		if i%400 == 0 { // all before it has left the queue of the adapter, which holds 512
			l.answered(t, mad.ClassSubn, 1+i)
		}
	}
	l.answered(t, mad.ClassSubn, flood+1) // behind them all
	if got := l.sa.Dropped(); got != flood-most {
		t.Errorf("%d of %d dropped, want all but %d", got, flood, most)
	}
	l.next.Send(l.question(mad.ClassSubnAdm, most))
	l.answered(t, mad.ClassSubn, flood+2)
	if got := l.sa.Dropped(); got != flood-most {
		t.Errorf("%d dropped after another asked, want %d as before", got, flood-most)
	}
	gather(t, l.sa, mad.ClassSubnAdm, 0, most+1)
}

func TestLanesClose(t *testing.T) {
	l := newLab(t)
	ends := make(chan error)
	go func() { ends <- l.port.Wait() }()
	go func() { ends <- l.sa.Wait() }()
	if err := l.port.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ends; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Wait: %v", err)
		}
	}
	buf := make([]transport.Packet, 1)
	if _, err := l.sa.TryReceive(buf); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("TryReceive: %v", err)
	}
	if _, err := l.sa.TrySend(buf); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("TrySend: %v", err)
	}
	if err := l.sa.Pause(time.Second); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Pause: %v", err)
	}
}

func TestLanesAllocateNothing(t *testing.T) {
	l := newLab(t)
	buf := make([]transport.Packet, 16)
	question := []transport.Packet{l.question(mad.ClassSubnAdm, 1), l.question(mad.ClassSubn, 1)}
	round := func(first, second transport.Lane) {
		l.host.Send(question...)
		for _, lane := range []transport.Lane{first, second} {
			n, err := lane.TryReceive(buf)
			for n == 0 && err == nil {
				if err = lane.Pause(time.Second); err == nil {
					n, err = lane.TryReceive(buf)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			buf[0].MAD.Respond(mad.StatusOK)
			if n, err := lane.TrySend(buf[:1]); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		for range 2 {
			if n, err := l.host.Port().Receive(buf[:1]); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	round(l.port, l.sa)
	round(l.sa, l.port)
	if got := testing.AllocsPerRun(50, func() { round(l.port, l.sa); round(l.sa, l.port) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
