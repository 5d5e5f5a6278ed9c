package sm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/sham"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// shams are fabrics without end that a host may show, in a fabric with switches of some
// GUIDs.
func shams(real []ib.GUID) map[string]sham.Sham {
	return map[string]sham.Sham{
		"chain":         {Ports: 2},
		"binary tree":   {Ports: 3},
		"wide tree":     {Ports: 64},
		"widest tree":   {Ports: 254},
		"ever new GUID": {Ports: 64, GUID: func(path []ib.PortNum, visit int) ib.GUID { return sham.GUID(path) + ib.GUID(visit)<<40 }},
		"few GUIDs in turns": {Ports: 8, GUID: func(path []ib.PortNum, visit int) ib.GUID {
			return 0xbad0001 + ib.GUID((len(path)+visit)%5)
		}},
		"GUIDs of real switches": {Ports: 8, GUID: func(path []ib.PortNum, visit int) ib.GUID {
			return real[(int(sham.GUID(path))+visit)%len(real)]
		}},
		"slow answers": {Ports: 64, Delay: 190 * time.Millisecond},
		"slow chain":   {Ports: 2, Delay: 190 * time.Millisecond},
	}
}

// switchGUIDs lists the switches of a netlist.
func switchGUIDs(l *netlist.Netlist) (out []ib.GUID) {
	for i := range l.Nodes {
		if l.Nodes[i].Type == ib.NodeSwitch {
			out = append(out, l.Nodes[i].GUID)
		}
	}
	return out
}

// overgrown lists the places where too much was found.
func overgrown(events []sm.Event) (out []ib.Place) {
	for _, e := range events {
		if u, ok := e.(*health.Unhealthy); ok && u.Condition == health.Overgrown && !slices.Contains(out, u.Place) {
			out = append(out, u.Place)
		}
	}
	return out
}

// TestShownFabric: with the bounds as they are by default and neither inventory nor a
// declared topology, a host that shows a fabric without end costs a bounded number of
// requests, the others are served, its port alone is held and named, it is asked again
// ever more rarely, and when it is gone all is as it was.
func TestShownFabric(t *testing.T) {
	growth := sm.DefaultConfig().Growth
	for name := range shams([]ib.GUID{1}) {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %v", name, late), func(t *testing.T) {
				l := tree(t, 16, 8)
				e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
				s, bad := shams(switchGUIDs(l))[name], hosts(l)[3]
				bounded := s.GUID == nil || name == "ever new GUID"
				show := func(s *sham.Sham) {
					if err := e.fab.Pretend(bad.node.Name, s); err != nil {
						t.Fatal(err)
					}
				}
				most := e.weighViews()
				if !late {
					show(&s)
				}
				e.start()
				e.want(sm.Intent{Revision: 1})
				if late {
					e.mustSettle(20 * time.Second)
					e.fab.Unlink(bad.node.Name, bad.num)
					e.arrive(e.st.Take(nil))
					e.run(100 * time.Millisecond)
					show(&s)
					e.fab.Relink(bad.node.Name, bad.num, bad.peer, bad.pnum)
					e.arrive(e.st.Take(nil))
				}
				e.run(25 * time.Second)
				for _, h := range hosts(l) {
					if pi := e.fab.PortInfo(h.node.Name, h.num); h.node != bad.node && pi.PortState != ib.PortActive {
						t.Errorf("%s is %v, want Active; problems %q", h.node.Name, pi.PortState, e.problems())
					}
				}
				const each = 20_000
				asked := e.fab.Pretended(bad.node.Name)
				if asked > each {
					t.Errorf("it was asked %d times at first, want at most %d", asked, each)
				}
				if bound := weigh(e.view.Fabric) + 2*growth.Cable; *most > bound {
					t.Errorf("the fabric grew to the size of %d, want at most %d", *most, bound)
				}
				if held := overgrown(e.takeEvents()); bounded && !slices.Equal(held, []ib.Place{bad.place}) {
					t.Errorf("held %v, want %v alone; problems %q", held, bad.place, e.problems())
				}
				e.steps = 0
				e.run(time.Hour)
				if again := e.fab.Pretended(bad.node.Name) - asked; bounded && again > 6*each {
					t.Errorf("it was asked %d times within the hour after, want at most %d", again, 6*each)
				}

				e.fab.Unlink(bad.node.Name, bad.num)
				show(nil)
				e.arrive(e.st.Take(nil))
				e.run(time.Second)
				e.fab.Relink(bad.node.Name, bad.num, bad.peer, bad.pnum)
				e.arrive(e.st.Take(nil))
				e.steps = 0
				e.run(61 * time.Minute)
				if problems := e.problems(); len(problems) > 0 {
					t.Errorf("the host is itself again, problems %q", problems)
				}
				if pi := e.fab.PortInfo(bad.node.Name, bad.num); pi.PortState != ib.PortActive {
					t.Errorf("the host is itself again, its port %v", pi.PortState)
				}
			})
		}
	}
}

// TestLargestFabricIsNoSham: fabrics of up to 40,000 hosts are found whole with the
// bounds as they are by default, and while a host of theirs shows one without end
// nothing but its port is held.
func TestLargestFabricIsNoSham(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(netlist.Shape) (*netlist.Netlist, error)
		shape netlist.Shape
		large bool
	}{
		{name: "three levels, 5832 hosts", build: netlist.FatTree3, shape: netlist.Shape{Hosts: 5832, Radix: 36}},
		{name: "three levels, 40000 hosts", build: netlist.FatTree3, shape: netlist.Shape{Hosts: 40000, Radix: 64}, large: true},
	} {
		if c.large && testing.Short() {
			continue // takes minutes under the race detector
		}
		t.Run(c.name, func(t *testing.T) {
			l, err := c.build(c.shape)
			l = list(t, l, err)
			e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
			bad := hosts(l)[len(hosts(l))/2]
			if err := e.fab.Pretend(bad.node.Name, &sham.Sham{Ports: 64}); err != nil {
				t.Fatal(err)
			}
			e.start()
			for e.job == nil && e.next(e.now.Add(time.Minute)) {
				e.steps = 0
			}
			named := 0
			for _, f := range e.facts {
				if f.Kind == sm.FactLID && f.LID != 0 {
					named++
				}
			}
			if want := len(hosts(l)) - 1 + len(switchGUIDs(l)); named < want {
				t.Errorf("%d nodes have a LID, want %d at least", named, want)
			}
			got := overgrown(e.takeEvents())
			if !slices.Equal(got, []ib.Place{bad.place}) {
				t.Errorf("held %v, want %v alone", got, bad.place)
			}
		})
	}
}
