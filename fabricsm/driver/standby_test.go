package driver_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// TestStandbyLeads: a manager that stands by sends no Set, saves nothing and is no subnet manager to others, however long
// that takes. Then it leads with what it has read. It reads the ports of the switch and its own again, to see that all
// links stayed up, and no table.
func TestStandbyLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const radix = 8
		list, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: radix})
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
		if err != nil || last == nil || !last.Settled || sets == 0 || wrong != 0 || after != reads || gets > reads+radix+1 || time.Since(began) > time.Second {
			t.Errorf("%v after %v: %d Sets, %d of them without a lease, %d Gets after %d", err, time.Since(began), sets, wrong, gets, reads)
		}
	})
}

// standingBy runs a fabric until it is settled by one instance, and makes a Standby at another
// port, with the facts that keep returns true for.
func standingBy(t *testing.T, l *netlist.Netlist, core sm.Config, keep func(*sm.Fact) bool) (f *sim.Fabric, node string, s *driver.Standby, w *witness) {
	t.Helper()
	f = sim.NewWith(l, sim.Options{LoseSilently: true})
	port, err := f.Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	store := &memory{}
	core.Followed = true
	if err := driver.Run(t.Context(), driver.Options{Port: port, Store: store, Core: core, Until: driver.UntilSettled}, nil); err != nil {
		t.Fatal(err)
	}
	node = l.Nodes[slices.IndexFunc(l.Nodes, func(n netlist.Node) bool { return n.Type == ib.NodeCA && n.Name != "sm" })].Name
	at, err := f.Attach(node, true)
	if err != nil {
		t.Fatal(err)
	}
	facts, _ := store.Load()
	w = &witness{lease: &leased{}}
	s, err = driver.NewStandby(driver.Options{Port: &seenPort{at, w}, Core: core}, slices.DeleteFunc(facts, func(f sm.Fact) bool { return !keep(&f) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return f, node, s, w
}

// TestStandbyEnds: a Standby whose own port loses its link ends within two seconds, and so does
// one that finds what facts do not say. Neither holds what it has read.
func TestStandbyEnds(t *testing.T) {
	list, err := netlist.Chain(netlist.Shape{Hosts: 4, Switches: 2})
	if err != nil {
		t.Fatal(err)
	}
	keyed := sm.Config{MKey: sm.MKeyConfig{Source: keys.Random{Reader: rand.Reader}, Places: sm.PlacesSeen}}
	for name, tt := range map[string]struct {
		core sm.Config
		keep func(*sm.Fact) bool
		pull bool
		want error
	}{
		"link":  {sm.Config{}, func(*sm.Fact) bool { return true }, true, driver.ErrUnlinked},
		"facts": {keyed, func(f *sm.Fact) bool { return f.Kind != sm.FactBehind }, false, driver.ErrDiverged},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, node, s, _ := standingBy(t, list, tt.core, tt.keep)
				pulled := time.Now().Add(10 * time.Second)
				if tt.pull {
					time.AfterFunc(time.Until(pulled), func() {
						if !s.Complete() {
							t.Error("the fabric is not read before the cable is pulled")
						}
						_ = f.Unlink(node, 1)
					})
				}
				ctx, end := context.WithTimeout(t.Context(), time.Minute)
				defer end()
				if err := s.Run(ctx); !errors.Is(err, tt.want) || time.Since(pulled) > 2*time.Second {
					t.Errorf("ended %v after the pull with %v, want %v", time.Since(pulled), err, tt.want)
				}
				if s.Holds() || s.Complete() {
					t.Errorf("holds %v, complete %v", s.Holds(), s.Complete())
				}
			})
		})
	}
}

// TestStandbyTakesNoTraps: traps are for the master. A Standby does not answer one that a host
// sends it, and reads nothing for it.
func TestStandbyTakesNoTraps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 8})
		if err != nil {
			t.Fatal(err)
		}
		f, node, s, w := standingBy(t, list, sm.Config{}, func(*sm.Fact) bool { return true })
		from, err := f.Attach(list.Nodes[len(list.Nodes)-1].Name, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = from.Close() })
		sw := f.PortInfo(list.Nodes[slices.IndexFunc(list.Nodes, func(n netlist.Node) bool { return n.Type == ib.NodeSwitch })].Name, 0).LID
		before := 0
		count := func() (gets, repressed int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.gets, w.repressed
		}
		time.AfterFunc(20*time.Second, func() {
			before, _ = count()
			for i := range 100 {
				p := transport.Packet{LID: f.PortInfo(node, 1).LID}
				mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(i + 1)}, nil, ib.MKey{})
				_ = mad.Encode(p.MAD.Data(), &mad.Trap128{NoticeHeader: mad.NoticeHeader{
					IsGeneric: true, Type: mad.NoticeUrgent, ProducerType: uint32(ib.NodeSwitch), TrapNumber: mad.TrapLinkStateChange, IssuerLID: sw,
				}, SwitchLID: sw})
				if _, err := from.Send([]transport.Packet{p}); err != nil {
					t.Error(err)
				}
			}
		})
		ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
		defer end()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if gets, repressed := count(); gets-before > 11 || repressed > 0 {
			t.Errorf("%d Gets in the ten seconds after a flood of traps, want those of the own port; %d traps answered", gets-before, repressed)
		}
	})
}
