package perfread_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/perfread"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
)

// Switch ports with a link and active ports of others are read, by the LID that answers for them.
func TestAgents(t *testing.T) {
	t.Parallel()
	var b topo.Builder
	sw := b.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeSwitch, NumPorts: 4})
	twin := b.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	dual := b.AddNode(topo.Node{GUID: 0x30, Type: ib.NodeCA, NumPorts: 3})
	lone := b.AddNode(topo.Node{GUID: 0x40, Type: ib.NodeSwitch, NumPorts: 2})
	noLID := b.AddNode(topo.Node{GUID: 0x50, Type: ib.NodeSwitch, NumPorts: 1})
	set := func(n topo.NodeID, num ib.PortNum, lid ib.LID, state ib.PortState) {
		p := b.Port(b.PortOf(n, num))
		p.LID, p.State = lid, state
		b.SetPort(b.PortOf(n, num), p)
	}
	set(sw, 0, 5, ib.PortActive)
	set(sw, 1, 0, ib.PortActive)
	set(sw, 2, 0, ib.PortDown)
	set(sw, 3, 0, ib.PortInit)
	set(twin, 1, 6, ib.PortActive)
	set(dual, 1, 7, ib.PortActive)
	set(dual, 2, 8, ib.PortInit)
	set(dual, 3, 9, ib.PortActive)
	set(lone, 0, 10, ib.PortActive)
	set(noLID, 1, 0, ib.PortActive)
	want := []perfmgr.Agent{
		{GUID: 0x20, LID: 5, Ports: []ib.PortNum{1, 3}},
		{GUID: 0x30, At: 1, LID: 7, Ports: []ib.PortNum{1}},
		{GUID: 0x30, At: 3, LID: 9, Ports: []ib.PortNum{3}},
	}
	if diff := cmp.Diff(perfread.Agents(b.Freeze()), want); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
}

// A request that comes back ends at once, and an answer from another queue pair is none.
func TestArrivals(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f, seen := settled(t, l)
	for name, x := range map[string]struct {
		change         func(*transport.Packet)
		least, atMost  time.Duration // of a pass
		timedOut, good bool
	}{
		"undelivered": {func(p *transport.Packet) { p.Undelivered = true; p.MAD.SetMethod(1) }, 0, 400 * time.Millisecond, true, false},
		"other QP":    {func(p *transport.Packet) { p.QP = 2 }, 500 * time.Millisecond, 10 * time.Second, true, false},
		"unchanged":   {func(*transport.Packet) {}, 0, 5 * time.Second, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t, f)
				w.change = x.change
				c := newCollector(t, perfread.Options{})
				c.See(seen)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- c.Run(ctx, w) }()
				<-time.After(20 * time.Second)
				s := c.Stats()
				if s.Passes != 1 || s.Took < x.least || s.Took > x.atMost || (s.TimedOut > 0) != x.timedOut || (s.Answered > 0) != x.good || (s.Current > 0) != x.good {
					t.Errorf("%+v", s)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
