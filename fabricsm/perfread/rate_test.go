package perfread_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/perfread"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/topo"
)

// Data packets that cross links of a simulated fabric make the rate of each port on their way, and of no other.
func TestRatesOfTraffic(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f, seen := settled(t, l)
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, perfread.Options{})
		c.See(seen)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx, newWire(t, f)) }()
		<-time.After(20 * time.Second)
		const packets, size = 3000, 8 + 12 + 2048 + 4 // with headers and ICRC
		near, far := peer(t, l, "sm", 1), ib.Place{Switch: guidOf(t, l, "leaf2"), Port: 2}
		host := peer(t, l, "leaf2", 2)
		packet := sim.Data{SLID: lidOf(seen, guidOf(t, l, "sm"), 1), DLID: lidOf(seen, host.Switch, host.Port), PKey: 0xFFFF, DestQP: 2, Payload: 2048}
		for range packets {
			r, err := f.Inject(sim.Endpoint{Node: "sm", Port: 1}, packet)
			if err != nil || r.Fate != sim.Delivered {
				t.Fatalf("%v, %+v", err, r)
			}
		}
		<-time.After(30 * time.Second)
		const want = packets * size / 30
		for name, tt := range map[string]struct {
			of        ib.Place
			xmit, rcv float64
		}{
			"to the host":      {far, want, 0},
			"from the sender":  {near, 0, want},
			"at a port beside": {ib.Place{Switch: far.Switch, Port: 1}, 0, 0},
		} {
			r := c.Rates([]ib.Place{tt.of}, nil)[0]
			const management = 2000 // bytes a second of the reading itself
			if r.State != perfmgr.Rated || math.Abs(float64(r.Xmit)-tt.xmit) > management || math.Abs(float64(r.Rcv)-tt.rcv) > management {
				t.Errorf("%s: %+v, want %.0f and %.0f", name, r, tt.xmit, tt.rcv)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Of ibsim, the rate of a port is what its counters have grown by between two readings, as perfquery agrees.
func TestRatesOfIbsim(t *testing.T) {
	t.Parallel()
	l := plan(t)
	lab, seen := onIbsim(t, l)
	leaf := guidOf(t, l, "leaf2")
	began := time.Now()
	c := run(t, lab.Socket(), seen, perfread.Options{Every: 5 * time.Second, Timeout: 2 * time.Second})
	for round := range 10 {
		c.await(1)
		passes, first := c.Stats().Passes, of(t, c.Collector, l, "leaf2", 2)
		grown := traffic(t, lab, l, seen)
		ended := time.Now()
		c.await(passes + 1)
		r, second := c.Rates([]ib.Place{{Switch: leaf, Port: 2}}, nil)[0], of(t, c.Collector, l, "leaf2", 2)
		if c.Stats().Passes != passes+1 || r.Age > time.Since(ended) {
			t.Logf("round %d: the port was read before perfquery had ended", round)
			continue
		}
		c.end()
		words := second.Totals[perfmgr.XmitData] - first.Totals[perfmgr.XmitData]
		if r.State != perfmgr.Rated || math.Abs(float64(r.Xmit)*r.Span.Seconds()-4*float64(words)) > 4 || words < grown || grown < 10*64 {
			t.Errorf("%+v after %d words, of which perfquery saw %d", r, words, grown)
		}
		if r.Span < 4*time.Second || r.Span > time.Since(began) {
			t.Errorf("the readings were %v apart", r.Span)
		}
		return
	}
	t.Fatal("in each round the port was read before perfquery had ended")
}

// traffic has perfquery read the host at port 2 of leaf2, and returns how many words that port of leaf2 sent meanwhile.
func traffic(t *testing.T, lab querier, l *netlist.Netlist, seen *topo.Fabric) uint64 {
	t.Helper()
	leaf, host := lidOf(seen, guidOf(t, l, "leaf2"), 2), peer(t, l, "leaf2", 2)
	before := show(t, lab, leaf, 2)
	for range 10 {
		show(t, lab, lidOf(seen, host.Switch, host.Port), host.Port)
	}
	return show(t, lab, leaf, 2)["PortXmitData"] - before["PortXmitData"]
}

// peer returns the other end of a cable of a netlist.
func peer(t *testing.T, l *netlist.Netlist, node string, num ib.PortNum) ib.Place {
	t.Helper()
	for i := range l.Nodes {
		if l.Nodes[i].Name == node {
			p := &l.Nodes[i].Ports[num]
			return ib.Place{Switch: guidOf(t, l, p.Peer), Port: p.PeerPort}
		}
	}
	t.Fatalf("there is no %s", node)
	return ib.Place{}
}
