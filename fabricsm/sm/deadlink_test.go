package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestSwappedCablesOfKeyedHosts: two hosts that keep their M_Keys change places. No manager shows them a key there, so
// nothing answers. The report names the device that belongs there and the other link.
func TestSwappedCablesOfKeyedHosts(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 5, Radix: 6})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, keyed(t), 1)
	e.start()
	e.mustSettle(time.Minute)
	hs := hosts(e.list)
	a, b := hs[0], hs[2]
	e.takeEvents()
	if err := e.fab.Swap(sim.Endpoint{Node: a.node.Name, Port: a.num}, sim.Endpoint{Node: b.node.Name, Port: b.num}); err != nil {
		t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
	e.run(10 * time.Second)
	dead, pairs := told[*sm.NodeUnreachable](e), 0
	if len(dead) != 2 {
		t.Fatalf("told %v, want two links", dead)
	}
	for _, d := range dead {
		want := a
		if d.Place == b.place {
			want = b
		}
		if d.Place != want.place || !slices.Contains(d.Keyed, want.node.PortGUID(want.num)) {
			t.Errorf("told %+v", d)
		}
		if text := d.String(); !strings.Contains(text, want.node.PortGUID(want.num).String()) || !strings.Contains(text, "keys move") {
			t.Errorf("said %q", text)
		}
		if d.With == a.place && d.Place == b.place || d.With == b.place && d.Place == a.place {
			pairs++
			if text := d.String(); !strings.Contains(text, d.With.String()) || !strings.Contains(text, "swapped") {
				t.Errorf("said %q", text)
			}
		}
	}
	if pairs != 1 {
		t.Errorf("%d of the two are told with the other one, want the second", pairs)
	}
}
