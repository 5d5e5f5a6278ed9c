package sm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// bounce gives a node other GUIDs while the cables of its ports are out.
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
