package query_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/api/fabric/query"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
)

// TestMuteSwitches: the state of the subnet manager names the switches that send no trap
// 259, and no others.
func TestMuteSwitches(t *testing.T) {
	for _, mute := range []bool{false, true} {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
		if err != nil {
			t.Fatal(err)
		}
		s, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm", Fabric: sim.Options{Device: sim.Device{NoPKeyTraps: mute}}, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		s.Want(sm.Intent{Revision: 1})
		if err := s.Settle(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		o := query.New(query.Options{})
		o.OnView(s.View())
		var want []ib.GUID
		for _, n := range l.Nodes {
			if mute && n.Type == ib.NodeSwitch {
				want = append(want, n.GUID)
			}
		}
		got, err := o.SM(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got.Mute)
		slices.Sort(want)
		if !slices.Equal(got.Mute, want) {
			t.Errorf("mute switches %v, want %v", got.Mute, want)
		}
	}
}
