package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/fault"
)

// TestLoops checks that cables that lead back to where they come from harm no other node.
func TestLoops(t *testing.T) {
	type loop func(e *env, a, b *endPort) (closed []ib.Place)
	for name, plug := range map[string]loop{
		"a port looped to itself": func(e *env, a, _ *endPort) []ib.Place {
			sw := e.list.Find(a.peer)
			e.hostile = map[string]liar{a.node.Name: func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
				if len(rest) > 0 || r.MAD.Attr() != mad.AttrNodeInfo {
					return mad.MAD{}, true
				}
				return answer(r, &mad.NodeInfo{
					BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeSwitch, NumPorts: uint8(sw.NumPorts()),
					NodeGUID: sw.GUID, PortGUID: sw.GUID, LocalPortNum: a.pnum, PartitionCap: 32,
				})
			}}
			return []ib.Place{a.place}
		},
		"two ports of a switch": func(e *env, a, b *endPort) []ib.Place {
			e.replug([]*endPort{a, b}, func() error { return e.fab.Relink(a.peer, a.pnum, b.peer, b.pnum) })
			return nil
		},
		"two ports of an adapter": func(e *env, a, b *endPort) []ib.Place {
			e.replug([]*endPort{a, b}, func() error { return e.fab.Relink(a.node.Name, a.num, b.node.Name, b.num) })
			return nil
		},
	} {
		for _, late := range []bool{false, true} {
			when := map[bool]string{false: " at the start", true: " later"}[late]
			t.Run(name+when, func(t *testing.T) {
				l := tree(t, 16, 8)
				e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
				hs := hosts(l)
				i := slices.IndexFunc(hs, func(h endPort) bool { return h.peer == hs[4].peer })
				a, b := hs[i], hs[i+1]
				in := sm.Intent{Revision: 1}
				for _, h := range hs {
					if h.node != a.node && h.node != b.node {
						in.Grants = append(in.Grants, h.grant(0x8001))
					}
				}
				var closed []ib.Place
				if !late {
					closed = plug(e, &a, &b)
				}
				e.start()
				e.want(in)
				e.mustSettle(20 * time.Second)
				if late {
					closed = plug(e, &a, &b)
					e.fab.Unlink(a.node.Name, a.num)
					e.arrive(e.st.Take(nil))
					e.run(50 * time.Millisecond)
					e.fab.Relink(a.node.Name, a.num, a.peer, a.pnum)
					e.arrive(e.st.Take(nil))
				}
				e.run(time.Minute)
				e.mustSettle(time.Minute)
				wantServed(t, e, hs, in.Grants)
				for _, pl := range closed {
					if !slices.ContainsFunc(e.view.Faults, func(f fault.Fault) bool { return f.Place == pl }) {
						t.Errorf("nothing is told of %v: %q", pl, e.problems())
					}
				}
				sets := e.sets()
				e.run(3 * time.Minute)
				if n := e.sets() - sets; n > 0 {
					t.Errorf("%d Sets after the fabric was settled", n)
				}
			})
		}
	}
}

// replug takes cables out and puts in another.
func (e *env) replug(out []*endPort, in func() error) {
	e.t.Helper()
	for _, h := range out {
		if err := e.fab.Unlink(h.node.Name, h.num); err != nil {
			e.t.Fatal(err)
		}
	}
	if err := in(); err != nil {
		e.t.Fatal(err)
	}
	packets := e.st.Take(nil)
	if e.core != nil {
		e.arrive(packets)
	}
}

// wantServed wants grants to be in force and the ports of those hosts Active.
func wantServed(t *testing.T, e *env, hs []endPort, grants []sm.Grant) {
	t.Helper()
	for _, g := range grants {
		h := hs[slices.IndexFunc(hs, func(h endPort) bool { return h.place == g.Place })]
		if s := e.fab.PortInfo(h.node.Name, h.num).PortState; s != ib.PortActive {
			t.Errorf("%s is %v, want Active", h.node.Name, s)
		}
		if !slices.Contains(e.fab.PKeys(h.node.Name, h.num), g.PKey) || !slices.Contains(e.fab.PKeys(h.peer, h.pnum), g.PKey) {
			t.Errorf("%s, or the port in front of it, does not hold %v", h.node.Name, g.PKey)
		}
	}
}

// TestTwinsAtTheStart: two nodes show one GUID from the start on. The node with the grant works, even if the other one is
// found first. The rest settles, and both places are reported.
func TestTwinsAtTheStart(t *testing.T) {
	for _, c := range []struct {
		name    string
		granted string // node with the grant
		forger  string
		offset  ib.GUID // of the forger's node GUID
	}{
		{"node GUID, the first granted", "h1", "h3", 0},
		{"node GUID, the second granted", "h3", "h1", 0},
		{"port GUID, the first granted", "h1", "h3", 1},
		{"port GUID, the second granted", "h3", "h1", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := netlist.DualPort(netlist.Shape{Hosts: 4, Radix: 8})
			e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
			victim := l.Find(c.granted)
			guid := victim.GUID + c.offset
			if err := e.fab.SetGUIDs(c.forger, guid, guid); err != nil {
				t.Fatal(err)
			}
			hs := hosts(l)
			in := sm.Intent{Revision: 1}
			for _, h := range hs {
				if h.node.Name != c.forger {
					in.Grants = append(in.Grants, h.grant(0x8001))
				}
			}
			e.start()
			e.want(in)
			e.run(time.Minute)
			e.mustSettle(time.Minute)
			wantServed(t, e, hs, in.Grants)
			told := false
			for _, ev := range e.takeEvents() {
				d, ok := ev.(*sm.DuplicateGUID)
				told = told || ok && !d.First.IsZero() && !d.Second.IsZero()
			}
			if !told {
				t.Errorf("no event names both places; problems %q", e.problems())
			}
			for _, h := range hs {
				if h.node.Name == c.forger && len(tenants(e.fab.PKeys(h.peer, h.pnum))) > 0 {
					t.Errorf("the port in front of the forger holds %v", e.fab.PKeys(h.peer, h.pnum))
				}
			}
		})
	}
}

// TestTwinSwitchesAtTheStart: two leaves show one GUID. The SM's own works, and
// hosts on all others.
func TestTwinSwitchesAtTheStart(t *testing.T) {
	l := tree(t, 16, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	own := l.Find(l.Find("sm").Ports[1].Peer)
	var leaves []string
	for _, h := range hs {
		if h.peer != own.Name && !slices.Contains(leaves, h.peer) {
			leaves = append(leaves, h.peer)
		}
	}
	if len(leaves) < 3 {
		t.Fatalf("leaves %q: want three but that of the subnet manager", leaves)
	}
	first, second := l.Find(leaves[0]), leaves[1]
	if err := e.fab.SetGUIDs(second, first.GUID, first.GUID); err != nil {
		t.Fatal(err)
	}
	in := sm.Intent{Revision: 1}
	for _, h := range hs {
		if h.peer != first.Name && h.peer != second {
			in.Grants = append(in.Grants, h.grant(0x8001))
		}
	}
	e.start()
	e.want(in)
	e.run(2 * time.Minute)
	e.mustSettle(time.Minute)
	wantServed(t, e, hs, in.Grants)
	d, ok := find(e.takeEvents(), func(d *sm.DuplicateGUID) bool { return d.GUID == first.GUID })
	if !ok || d.First.IsZero() || d.Second.IsZero() {
		t.Errorf("told %v, want both places; problems %q", d, e.problems())
	}
}
