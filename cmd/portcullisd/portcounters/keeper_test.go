package portcounters_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/portcounters"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// site is a fabric whose counters a keeper has read.
type site struct {
	*portcounters.Keeper
	list  *netlist.Netlist
	end   context.CancelFunc
	over  chan struct{}
	mu    sync.Mutex
	log   bytes.Buffer
	view  *sm.View
	opens int
	fails error // of opening the port
	wires []*wire
}

func (s *site) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *site) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// set changes the site while the keeper runs.
func (s *site) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// show changes the view.
func (s *site) show(change func(*sm.View)) {
	s.set(func() {
		v := *s.view
		change(&v)
		s.view = &v
	})
}

func settled(t *testing.T) (*netlist.Netlist, *sim.Fabric, *sm.View) {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	stage, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm"})
	if err != nil {
		t.Fatal(err)
	}
	stage.Start()
	stage.Want(sm.Intent{Revision: 1})
	if err := stage.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	v := stage.View()
	stage.Crash()
	return l, stage.Fabric, v
}

// keep begins to keep counters. It is to be called in a bubble of synctest.
func keep(t *testing.T, change func(*site)) *site {
	t.Helper()
	l, f, v := settled(t)
	s := &site{list: l, view: v, over: make(chan struct{})}
	k, err := portcounters.New(portcounters.Options{
		Every: 30 * time.Second, Rate: 1000, Timeout: 200 * time.Millisecond, Log: slog.New(slog.NewTextHandler(s, nil)),
		View: func() (*sm.View, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.view == nil {
				return nil, errors.New("unseen")
			}
			return s.view, nil
		},
		Open: func(_ context.Context, timeout time.Duration) (transport.Port, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.opens++; timeout != 500*time.Millisecond {
				t.Errorf("a timeout of %v", timeout)
			}
			if s.fails != nil {
				return nil, s.fails
			}
			station, err := f.Station("sm", false)
			if err != nil {
				return nil, err
			}
			w := &wire{Station: station, at: make(chan struct{}, 1), closed: make(chan struct{})}
			s.wires = append(s.wires, w)
			return w, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Keeper = k
	if change != nil {
		change(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.end = cancel
	go func() { defer close(s.over); k.Keep(ctx) }()
	return s
}

func (s *site) stop() { s.end(); <-s.over }

// after lets time pass.
func after(d time.Duration) { <-time.After(d); synctest.Wait() }

// wire is a port of the simulator that waits as synctest knows it.
type wire struct {
	*sim.Station
	at     chan struct{}
	closed chan struct{}
	once   sync.Once
	fails  error
}

func (w *wire) Send(p []transport.Packet) (int, error) {
	w.Station.Send(p...)
	select {
	case w.at <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (w *wire) Receive(p []transport.Packet) (int, error) {
	for {
		if in := w.Take(nil); len(in) > 0 {
			return copy(p, in), nil
		}
		select {
		case <-w.at:
		case <-w.closed:
			if w.fails != nil {
				return 0, w.fails
			}
			return 0, transport.ErrClosed
		}
	}
}

func (w *wire) lose(err error)   { w.once.Do(func() { w.fails = err; close(w.closed) }) }
func (w *wire) Close() error     { w.once.Do(func() { close(w.closed) }); return nil }
func (*wire) SetIsSM(bool) error { return nil }

// ports returns how many ports of the site have a cable.
func (s *site) ports() (n int) {
	for i := range s.list.Nodes {
		for num := 1; num < len(s.list.Nodes[i].Ports); num++ {
			if s.list.Nodes[i].Ports[num].Peer != "" {
				n++
			}
		}
	}
	return n
}

// places returns the ports of switches that have a cable.
func (s *site) places() (all []ib.Place) {
	for i := range s.list.Nodes {
		n := &s.list.Nodes[i]
		for num := 1; num < len(n.Ports) && n.Type == ib.NodeSwitch; num++ {
			if n.Ports[num].Peer != "" {
				all = append(all, ib.Place{Switch: n.GUID, Port: ib.PortNum(num)})
			}
		}
	}
	return all
}

// rates counts ports of switches by the state of their rate.
func (s *site) rates() map[perfmgr.RateState]int {
	n := map[perfmgr.RateState]int{}
	for _, r := range s.Rates(s.places(), nil) {
		n[r.State]++
	}
	return n
}

// Counters are read while this Subnet Manager is master, from when it has settled the fabric.
func TestReadsAsMaster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := keep(t, func(s *site) { v := *s.view; v.Settled = false; s.view = &v })
		defer s.stop()
		after(time.Minute)
		if s.opens > 0 {
			t.Error("the fabric was read before it was settled")
		}
		s.show(func(v *sm.View) { v.Settled = true })
		after(10 * time.Second)
		if n := len(s.Append(nil)); n != s.ports() || s.opens != 1 {
			t.Errorf("%d ports are shown, want %d; the port was opened %d times", n, s.ports(), s.opens)
		}
		s.show(func(v *sm.View) { v.Settled = false }) // it works on a change
		after(time.Minute)
		if n := len(s.Append(nil)); n != s.ports() || s.opens != 1 {
			t.Errorf("while it works %d ports are shown; the port was opened %d times", n, s.opens)
		}
		if r := s.rates(); r[perfmgr.Rated] == 0 || r[perfmgr.Rated] != len(s.places()) {
			t.Errorf("after two readings ports of switches have rates in the states %v", r)
		}
		s.show(func(v *sm.View) { v.State = ib.SMStandby })
		after(2 * time.Second)
		if n := len(s.Append(nil)); n > 0 {
			t.Errorf("as standby %d ports are shown", n)
		}
		if r := s.rates(); r[perfmgr.Unread] != len(s.places()) {
			t.Errorf("as standby there are rates: %v", r)
		}
		asked := s.Stats()
		after(5 * time.Minute)
		if now := s.Stats(); now.Answered != asked.Answered || s.opens != 1 {
			t.Errorf("as standby: %+v; the port was opened %d times", now, s.opens)
		}
		s.show(func(v *sm.View) { v.State, v.Settled = ib.SMMaster, true })
		after(time.Minute)
		if n := len(s.Append(nil)); n != s.ports() || s.opens != 2 {
			t.Errorf("as master again %d ports are shown; the port was opened %d times", n, s.opens)
		}
		if s.logged() != "" {
			t.Errorf("logged:\n%s", s.logged())
		}
		s.stop()
		if n := len(s.Append(nil)); n > 0 {
			t.Errorf("afterwards %d ports are shown", n)
		}
		for _, w := range s.wires {
			select {
			case <-w.closed:
			default:
				t.Error("a port was left open")
			}
		}
	})
}

// A port that cannot be opened, or is lost, is tried again with pauses that grow, and reported once.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := keep(t, func(s *site) { s.fails = errors.New("the adapter is gone") })
		defer s.stop()
		after(time.Hour)
		if n := strings.Count(s.logged(), "the adapter is gone"); n != 1 || s.opens < 15 || s.opens > 25 {
			t.Errorf("tried %d times; logged\n%s", s.opens, s.logged())
		}
		s.set(func() { s.fails = nil })
		after(6 * time.Minute)
		if n := len(s.Append(nil)); n != s.ports() {
			t.Errorf("%d ports are shown", n)
		}
		s.wires[0].lose(errors.New("cable pulled"))
		after(10 * time.Second)
		if n := len(s.Append(nil)); n != s.ports() || !strings.Contains(s.logged(), "cable pulled") {
			t.Errorf("%d ports are shown; logged\n%s", n, s.logged())
		}
	})
}

// A view that shows nothing any more ends the reading.
func TestFabricGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := keep(t, nil)
		defer s.stop()
		after(10 * time.Second)
		v := s.view
		s.set(func() { s.view = nil })
		after(2 * time.Second)
		if n := len(s.Append(nil)); n > 0 {
			t.Errorf("%d ports are shown", n)
		}
		s.set(func() { s.view = v })
		after(40 * time.Second)
		if n := len(s.Append(nil)); n != s.ports() {
			t.Errorf("%d ports are shown", n)
		}
	})
}

// Without an interval there is no keeper.
func TestConfigured(t *testing.T) {
	t.Parallel()
	var c config.Fabric
	if k, err := portcounters.Of(&c, nil, nil); k != nil || err != nil {
		t.Errorf("%v, %v", k, err)
	}
	c.PortCounts, c.Port = config.Counters{Every: time.Minute, Rate: 100}, "sim:some.net"
	if k, err := portcounters.Of(&c, nil, nil); k != nil || err != nil {
		t.Errorf("of a port without a second attachment: %v, %v", k, err)
	}
	c.Port = "ibsim:sim/Hca1"
	if k, err := portcounters.Of(&c, nil, nil); k == nil || err != nil || k.Stats().Interval != time.Minute {
		t.Errorf("%v, %v", k, err)
	}
}
