package driver_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestStandbyLeads: one that stands by sends no Set, saves nothing and is no subnet manager to
// others, for as long as it takes; then it leads with what it has read, and reads no
// forwarding table again.
func TestStandbyLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 8})
		if err != nil {
			t.Fatal(err)
		}
		fab := sim.NewWith(list, sim.Options{LoseSilently: true})
		port, err := fab.Attach("sm", true)
		if err != nil {
			t.Fatal(err)
		}
		other := list.Nodes[slices.IndexFunc(list.Nodes, func(n netlist.Node) bool { return n.Type == ib.NodeCA && n.Name != "sm" })].Name
		store, core := &memory{}, sm.Config{Followed: true}
		if err := driver.Run(t.Context(), driver.Options{Port: port, Store: store, Core: core, Until: driver.UntilSettled}, nil); err != nil {
			t.Fatal(err)
		}

		at, err := fab.Attach(other, false)
		if err != nil {
			t.Fatal(err)
		}
		lease := &leased{}
		w := &witness{lease: lease}
		facts, _ := store.Load()
		s, err := driver.NewStandby(driver.Options{Port: &seenPort{at, w}, Core: core}, facts)
		if err != nil {
			t.Fatal(err)
		}
		leads := false
		defer func() {
			if !leads {
				s.Close()
			}
		}()
		reading, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		if err := s.Run(reading); err != nil {
			t.Fatal(err)
		}
		sets, wrong, masters, reads := w.count()
		saved, _ := store.Load()
		if sets+wrong+masters != 0 || reads < 10 || len(saved) != len(facts) || !s.Holds() || !s.Complete() {
			t.Fatalf("%d Sets, %d claims to be master, %d Gets, %d facts saved, complete %v, holds %v", sets, masters, reads, len(saved)-len(facts), s.Complete(), s.Holds())
		}
		if fab.PortInfo(other, 1).CapabilityMask&mad.IsSM != 0 {
			t.Error("a standby says that its port has a subnet manager")
		}

		lease.hold(time.Hour)
		leads = true
		began := time.Now()
		var last *sm.View
		err = s.Lead(t.Context(), driver.Options{
			Store: store, Fence: lease, OnView: func(v *sm.View) { last = v }, Until: driver.UntilSettled,
		}, facts, nil)
		sets, wrong, _, after := w.count()
		w.mu.Lock()
		gets := w.gets
		w.mu.Unlock()
		if err != nil || last == nil || !last.Settled || sets == 0 || wrong != 0 || after != reads || gets > reads+len(list.Nodes) || time.Since(began) > time.Second {
			t.Errorf("%v after %v: %d Sets, %d of them without a lease, %d Gets after %d", err, time.Since(began), sets, wrong, gets, reads)
		}
	})
}
