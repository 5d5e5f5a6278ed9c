// Package seentest provides tests with the view that a real subnet manager has of a simulated fabric, at times that are the
// same in every run.
package seentest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Show is what was shown: every view and event, in order. The last view is of
// the settled fabric.
type Show struct {
	Views  []*sm.View
	Events []sm.Event
}

// Settled returns the last view.
func (s *Show) Settled() *sm.View { return s.Views[len(s.Views)-1] }

// Unsettled returns the last view of a master that is not settled.
func (s *Show) Unsettled(t testing.TB) *sm.View {
	t.Helper()
	for i := len(s.Views) - 1; i >= 0; i-- {
		if v := s.Views[i]; !v.Settled && v.State == ib.SMMaster {
			return v
		}
	}
	t.Fatal("no view of an unsettled fabric was shown")
	return nil
}

// Run brings a simulated fabric up from its first CA until it is settled with
// an intent and all names are read. Faults are by node name.
func Run(t *testing.T, text string, in sm.Intent, faults map[string]sim.Fault) *Show {
	t.Helper()
	l, err := netlist.Parse(t.Name(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	show := &Show{}
	synctest.Test(t, func(t *testing.T) {
		f := sim.NewWith(l, sim.Options{LoseSilently: true})
		for node, fault := range faults {
			if err := f.SetFault(node, fault); err != nil {
				t.Fatal(err)
			}
		}
		port, err := f.Attach(firstCA(l), true)
		if err != nil {
			t.Fatal(err)
		}
		intents := make(chan sm.Intent, 1)
		intents <- in
		err = driver.Run(context.Background(), driver.Options{
			Port: slow{port}, Core: sm.Config{ViewEvery: 1, IntentWait: 1 << 40},
			OnEvent: func(e sm.Event) { show.Events = append(show.Events, e) },
			OnView:  func(v *sm.View) { show.Views = append(show.Views, v) },
			Until:   func(v *sm.View) bool { return v.Settled && v.Revision == in.Revision && named(v) },
		}, intents)
		time.Sleep(time.Second) // the receiver ends a moment later
		if err != nil {
			t.Fatal(err)
		}
	})
	return show
}

// named reports whether the names of all nodes were read, which comes last.
func named(v *sm.View) bool {
	for _, id := range v.Fabric.ByGUID() {
		if v.Fabric.Node(id).Description == "" {
			return false
		}
	}
	return true
}

// slow is a port whose answers take time, so that views are made in between.
type slow struct{ transport.Port }

// Receive implements transport.Port.
func (s slow) Receive(p []transport.Packet) (int, error) {
	n, err := s.Port.Receive(p)
	time.Sleep(50 * time.Microsecond) // of the test's own clock
	return n, err
}

func firstCA(l *netlist.Netlist) string {
	for i := range l.Nodes {
		if l.Nodes[i].Type == ib.NodeCA {
			return l.Nodes[i].Name
		}
	}
	return ""
}

// Tree is a fabric of two leaves and a spine, in which there is one way between
// any two: the subnet manager and h1 on leaf1; h2, and two CAs with the same
// description, on leaf2.
const Tree = `caguid=0x0020000000000000
Ca 1 "sm"	# "sm"
[1] "leaf1"[1]	# lid 0 lmc 0 "leaf1" lid 0 4xEDR

caguid=0x0020000000000100
Ca 1 "h1"	# "h1 mlx5_0"
[1] "leaf1"[2]	# lid 0 lmc 0 "leaf1" lid 0 4xEDR

caguid=0x0020000000000200
Ca 1 "h2"	# "h2 mlx5_0"
[1] "leaf2"[1]	# lid 0 lmc 0 "leaf2" lid 0 4xEDR

caguid=0x0020000000000300
Ca 1 "h3"	# "ConnectX"
[1] "leaf2"[2]	# lid 0 lmc 0 "leaf2" lid 0 4xEDR

caguid=0x0020000000000400
Ca 1 "h4"	# "ConnectX"
[1] "leaf2"[3]	# lid 0 lmc 0 "leaf2" lid 0 1xEDR

switchguid=0x0010000100000001
Switch 8 "leaf1"	# "leaf1" base port 0 lid 0 lmc 0
[1] "sm"[1]	# "sm" lid 0 4xEDR
[2] "h1"[1]	# "h1" lid 0 4xEDR
[7] "spine1"[1]	# "spine1" lid 0 4xEDR

switchguid=0x0010000100000002
Switch 8 "leaf2"	# "leaf2" base port 0 lid 0 lmc 0
[1] "h2"[1]	# "h2" lid 0 4xEDR
[2] "h3"[1]	# "h3" lid 0 4xEDR
[3] "h4"[1]	# "h4" lid 0 1xEDR
[7] "spine1"[2]	# "spine1" lid 0 4xEDR

switchguid=0x0010000200000001
Switch 8 "spine1"	# "spine1" base port 0 lid 0 lmc 0
[1] "leaf1"[7]	# "leaf1" lid 0 4xEDR
[2] "leaf2"[7]	# "leaf2" lid 0 4xEDR
`

// Grants puts h1 and h2 of Tree into one partition.
func Grants() sm.Intent {
	grant := func(guid, leaf ib.GUID, port ib.PortNum) sm.Grant {
		return sm.Grant{GUID: guid, PKey: 0x8001, Place: ib.Place{Switch: leaf, Port: port}}
	}
	return sm.Intent{Revision: 7, Grants: []sm.Grant{
		grant(0x0020000000000101, 0x0010000100000001, 2), grant(0x0020000000000201, 0x0010000100000002, 1),
	}}
}

// Hosts names two adapters of Tree.
func Hosts() map[ib.GUID]string {
	return map[ib.GUID]string{0x0020000000000100: "compute-1", 0x0020000000000200: "compute-2"}
}
