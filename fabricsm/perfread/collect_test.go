package perfread_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/perfread"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
)

func plan(t testing.TB) *netlist.Netlist {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// settled returns a simulated fabric as the Subnet Manager set it, and what it saw.
func settled(t testing.TB, l *netlist.Netlist) (*sim.Fabric, *topo.Fabric) {
	t.Helper()
	stage, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm"})
	if err != nil {
		t.Fatal(err)
	}
	stage.Start()
	stage.Want(sm.Intent{Revision: 1})
	if err := stage.Settle(5 * time.Minute); err != nil {
		t.Fatal(err)
	}
	f := stage.View().Fabric
	stage.Crash()
	return stage.Fabric, f
}

// links returns how many ports of a netlist have a cable.
func links(l *netlist.Netlist) (n int) {
	for i := range l.Nodes {
		for num := 1; num < len(l.Nodes[i].Ports); num++ {
			if l.Nodes[i].Ports[num].Peer != "" {
				n++
			}
		}
	}
	return n
}

// of returns the totals of a port of a netlist.
func of(t *testing.T, c *perfread.Collector, l *netlist.Netlist, node string, num ib.PortNum) perfmgr.Reading {
	t.Helper()
	for _, r := range c.Append(nil) {
		for i := range l.Nodes {
			if l.Nodes[i].Name == node && l.Nodes[i].GUID == r.GUID && r.Port == num {
				return r
			}
		}
	}
	t.Fatalf("%s port %d was not read", node, num)
	return perfmgr.Reading{}
}

// wire is a port whose fabric is a simulator, and that loses packets.
type wire struct {
	station *sim.Station
	lose    func(n int) bool        // nil: nothing
	change  func(*transport.Packet) // what arrives; nil: nothing

	mu     sync.Mutex
	more   *sync.Cond
	queue  []transport.Packet
	at     []time.Time // of each request
	closed bool
	failed error
}

func newWire(t *testing.T, f *sim.Fabric) *wire {
	t.Helper()
	s, err := f.Station("sm", false)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{station: s}
	w.more = sync.NewCond(&w.mu)
	return w
}

func (w *wire) Send(packets []transport.Packet) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range packets {
		w.at = append(w.at, time.Now())
		if w.lose == nil || !w.lose(len(w.at)) {
			w.queue = append(w.queue, w.station.Exchange(packets[i:i+1], nil)...)
		}
	}
	w.more.Broadcast()
	return len(packets), nil
}

func (w *wire) Receive(packets []transport.Packet) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 && !w.closed && w.failed == nil {
		w.more.Wait()
	}
	switch {
	case w.closed:
		return 0, transport.ErrClosed
	case w.failed != nil:
		return 0, w.failed
	}
	n := copy(packets, w.queue)
	w.queue = w.queue[n:]
	for i := range packets[:n] {
		if w.change != nil {
			w.change(&packets[i])
		}
	}
	return n, nil
}

func (w *wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = err
	w.more.Broadcast()
}

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.more.Broadcast()
	return nil
}

func (*wire) SetIsSM(bool) error { return nil }
func (w *wire) GUID() ib.GUID    { return w.station.GUID() }

func newCollector(t *testing.T, o perfread.Options) *perfread.Collector {
	t.Helper()
	c, err := perfread.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// All ports of a simulated fabric are read in each interval, no faster than the rate, and errors that links have are seen.
func TestReadsSimulator(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f, seen := settled(t, l)
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, f)
		c := newCollector(t, perfread.Options{Rate: 200})
		c.See(seen)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx, w) }()
		<-time.After(25 * time.Second)
		if s := c.Stats(); s.Passes != 1 || s.Current != links(l) || s.Ports != links(l) || s.TimedOut+s.Refused+s.Invalid+s.Strays != 0 {
			t.Errorf("%+v, want %d ports", s, links(l))
		}
		before := of(t, c, l, "leaf1", 2)
		if sent := f.PacketsSent("leaf1", 2); before.Totals[perfmgr.XmitPkts] == 0 || before.Totals[perfmgr.XmitPkts] > sent {
			t.Errorf("leaf1 port 2 has sent %d packets, was read to have sent %d", sent, before.Totals[perfmgr.XmitPkts])
		}
		if err := f.LinkErrors("leaf1", 2, sim.SymbolError, 7); err != nil {
			t.Error(err)
		}
		<-time.After(30 * time.Second)
		after := of(t, c, l, "leaf1", 2)
		if after.Totals[perfmgr.SymbolErrors] != before.Totals[perfmgr.SymbolErrors]+7 || after.Totals[perfmgr.XmitData] <= before.Totals[perfmgr.XmitData] {
			t.Errorf("before %v\nafter %v", before.Totals, after.Totals)
		}
		for i := 205; i < len(w.at); i++ {
			if took := w.at[i].Sub(w.at[i-205]); took < time.Second {
				t.Errorf("requests %d to %d were sent in %v", i-205, i, took)
			}
		}
		c.See(nil)
		if n := len(c.Append(nil)); n > 0 {
			t.Errorf("without a fabric %d ports are shown", n)
		}
		cancel()
		if err := <-ended; err != nil || !w.closed {
			t.Errorf("it ended with %v; port closed: %v", err, w.closed)
		}
	})
}

// What is lost is read in the next pass, and the loss of some keeps no others.
func TestLoss(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f, seen := settled(t, l)
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, f)
		w.lose = func(n int) bool { return n%9 == 4 }
		c := newCollector(t, perfread.Options{})
		c.See(seen)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx, w) }()
		<-time.After(100 * time.Second)
		if s := c.Stats(); s.Passes != 4 || s.Current != links(l) || s.TimedOut == 0 {
			t.Errorf("%+v, want %d ports", s, links(l))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// If the port fails, so does Run, and another one goes on with what was counted.
func TestPortFails(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f, seen := settled(t, l)
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, perfread.Options{})
		c.See(seen)
		w := newWire(t, f)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context(), w) }()
		<-time.After(time.Second / 10)
		gone := errors.New("cable pulled")
		w.fail(gone)
		if err := <-ended; !errors.Is(err, gone) || !w.closed {
			t.Errorf("it ended with %v; port closed: %v", err, w.closed)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- c.Run(ctx, newWire(t, f)) }()
		<-time.After(time.Minute)
		if s := c.Stats(); s.Current != links(l) {
			t.Errorf("%+v", s)
		}
		cancel()
		<-ended
	})
}
