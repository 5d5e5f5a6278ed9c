package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// bounce changes the GUIDs of a node while the cables of its ports are out.
func bounce(e *env, node string, guid ib.GUID) {
	e.t.Helper()
	n := e.list.Find(node)
	do := func(err error) {
		e.t.Helper()
		if err != nil {
			e.t.Fatal(err)
		}
		e.arrive(e.st.Take(nil))
	}
	for num := 1; num < len(n.Ports); num++ {
		do(e.fab.Unlink(node, ib.PortNum(num)))
	}
	e.run(50 * time.Millisecond)
	do(e.fab.SetGUIDs(node, guid, guid))
	for num := 1; num < len(n.Ports); num++ {
		do(e.fab.Relink(node, ib.PortNum(num), n.Ports[num].Peer, n.Ports[num].PeerPort))
	}
	e.run(50 * time.Millisecond)
}

// TestDuplicateGUIDs: a host that takes the node GUID or a port GUID of a tenant
// gets nothing, and the tenant keeps what it has.
func TestDuplicateGUIDs(t *testing.T) {
	for name, offset := range map[string]ib.GUID{"node GUID": 0, "port GUID": 1} {
		t.Run(name, func(t *testing.T) {
			l, err := netlist.DualPort(netlist.Shape{Hosts: 4, Radix: 8})
			e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
			w := watch(e)
			e.start()
			victim, forger := l.Find("h1"), l.Find("h3")
			in := sm.Intent{Revision: 1}
			var forged []endPort
			for _, h := range hosts(l) {
				switch h.node {
				case victim:
					in.Grants = append(in.Grants, h.grant(0x8001))
				case forger:
					forged = append(forged, h)
				}
			}
			e.want(in)
			e.mustSettle(10 * time.Second)
			own := forger.GUID
			bounce(e, "h3", victim.GUID+offset)
			e.run(500 * time.Millisecond)
			events := e.takeEvents()
			stolen := func(h *endPort) bool { return forger.PortGUID(h.num)-own+victim.GUID+offset <= victim.PortGUID(2) }
			for _, h := range forged {
				_, told := find(events, func(d *sm.DuplicateGUID) bool { return d.Second == h.place && d.First.Switch != 0 })
				closed := e.fab.PortInfo(h.peer, h.pnum).PortState != ib.PortActive
				if stolen(&h) && (!told || !closed) {
					t.Errorf("forger at %v: told %v, closed %v; events %v", h.place, told, closed, events)
				}
				if k := tenants(e.fab.PKeys(h.peer, h.pnum)); len(k) > 0 {
					t.Errorf("switch port %v of the forger holds %v", h.place, k)
				}
			}
			for _, g := range in.Grants {
				if gone, ok := find(events, func(p *sm.PortGone) bool { return p.GUID == g.GUID && p.Place == g.Place }); ok {
					t.Errorf("the tenant suffers: %v", gone)
				}
				if !slices.Contains(w.hcaOf(w.host(g.GUID)), ib.PKey(0x8001)) {
					t.Errorf("the tenant lost its P_Key at %v", g.Place)
				}
			}
			twin := func(p string) bool { return strings.HasPrefix(p, "GUID ") }
			if !slices.ContainsFunc(e.problems(), twin) {
				t.Errorf("problems: %q", e.problems())
			}

			bounce(e, "h3", own)
			e.run(2 * time.Minute)
			e.mustSettle(time.Minute)
			if slices.ContainsFunc(e.problems(), twin) {
				t.Errorf("problems after the forger gave up: %q", e.problems())
			}
			w.checkEnd()
		})
	}
}

// TestBorrowedNodeGUID: a host that shows a tenant's node GUID, as a port of it
// that has no cable, does not become part of the tenant's node, and its silence
// is not the tenant's.
func TestBorrowedNodeGUID(t *testing.T) {
	l, err := netlist.DualPort(netlist.Shape{Hosts: 4, Radix: 8})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	victim := l.Find("h1")
	var one, two, liar *endPort
	hs := hosts(l)
	for i := range hs {
		switch h := &hs[i]; {
		case h.node == victim && h.num == 1:
			one = h
		case h.node == victim:
			two = h
		case h.node.Name == "h3" && h.num == 1:
			liar = h
		}
	}
	e.fab.Unlink(victim.Name, two.num)
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{one.grant(0x8001)}})
	e.mustSettle(10 * time.Second)
	e.takeEvents()
	turnInto(e, liar, func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if len(rest) > 0 || r.MAD.Attr() != mad.AttrNodeInfo {
			return mad.MAD{}, true // silent
		}
		return answer(r, &mad.NodeInfo{
			BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: uint8(victim.NumPorts()),
			NodeGUID: victim.GUID, PortGUID: victim.PortGUID(two.num), LocalPortNum: two.num, PartitionCap: 32,
		})
	})
	e.run(30 * time.Second)
	events := e.takeEvents()
	if _, ok := find(events, func(d *sm.DuplicateGUID) bool { return d.GUID == victim.GUID && d.Second == liar.place }); !ok {
		t.Errorf("the second place is not told; events %v", events)
	}
	if u, ok := find(events, func(u *sm.NodeUnreachable) bool { return u.GUID == victim.GUID }); ok {
		t.Errorf("the tenant counts as silent: %v", u)
	}
	if g, ok := find(events, func(g *sm.PortGone) bool { return g.Place == one.place }); ok {
		t.Errorf("the tenant suffers: %v", g)
	}
	if e.linked(liar.place) {
		t.Errorf("the liar's place %v is linked", liar.place)
	}

	// The true second port is welcome at once.
	delete(e.hostile, liar.node.Name)
	e.fab.Relink(victim.Name, two.num, two.peer, two.pnum)
	e.arrive(e.st.Take(nil))
	e.run(5 * time.Second)
	f := e.view.Fabric
	if p := f.PortByGUID(victim.PortGUID(two.num)); p == topo.None || f.PlaceOf(p) != two.place || f.Port(p).State != ib.PortActive {
		t.Errorf("the tenant's second port is not Active at its place; problems %q", e.problems())
	}
}

// TestSilentSecondPort: one port of an adapter that falls silent does not take
// the other with it.
func TestSilentSecondPort(t *testing.T) {
	l, err := netlist.DualPort(netlist.Shape{Hosts: 4, Radix: 8})
	e := newEnv(t, list(t, l, err), sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: -1}, 1)
	hs := hosts(l)
	i := slices.IndexFunc(hs, func(h endPort) bool { return h.node.Name == "h1" && h.num == 1 })
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{hs[i].grant(0x8001), hs[i+1].grant(0x8001)}})
	e.mustSettle(10 * time.Second)
	e.takeEvents()
	second := hs[i+1]
	sw := l.Find(second.peer)
	e.hostile = map[string]liar{"h1": func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		route := r.MAD.Route()
		over := route.Len() > 0 && route.At(route.Len()-1) == second.pnum && e.lastSwitch(route) == sw.Name
		return mad.MAD{}, over
	}}
	e.want(sm.Intent{Revision: 2, Grants: []sm.Grant{hs[i].grant(0x8001)}})
	e.run(20 * time.Second)
	for _, ev := range e.takeEvents() {
		if u, ok := ev.(*sm.NodeUnreachable); ok && u.GUID == hs[i].node.GUID {
			t.Errorf("the whole adapter counts as silent: %v", u)
		}
		if g, ok := ev.(*sm.PortGone); ok && g.Place == hs[i].place {
			t.Errorf("the first port suffers: %v", g)
		}
	}
}

// lastSwitch returns the switch that a route leaves by its last hop.
func (e *env) lastSwitch(route mad.Route) string {
	at := e.list.Find("sm")
	for i := range route.Len() - 1 {
		at = e.list.Find(at.Ports[route.At(i)].Peer)
	}
	return at.Name
}
