package sm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	toroidal "portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestLanesByPortFollowCables pulls cables of a torus and plugs them in again, also while tables are being written. In the
// end devices hold the lanes that the routes want for each pair of ports.
func TestLanesByPortFollowCables(t *testing.T) {
	e := torusEnv(t, sim.Options{}, sm.Config{Engines: []route.Engine{toroidal.Engine{Lanes: 4}}, AuditPeriod: -1})
	e.start()
	e.mustSettle(30 * time.Second)
	judgeByPort(e)
	var sw *netlist.Node
	for i := range e.list.Nodes {
		if e.list.Nodes[i].Type == ib.NodeSwitch {
			sw = &e.list.Nodes[i]
			break
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// From none to all of what it takes to settle again, in steps.
	for pause := time.Duration(0); pause < 1200*time.Microsecond; pause += 200 * time.Microsecond {
		for port := ib.PortNum(2); port <= 5; port++ {
			must(e.fab.Unlink(sw.Name, port))
		}
		e.run(2 * time.Second) // for traps that are on their way
		e.mustSettle(30 * time.Second)
		for port := ib.PortNum(2); port <= 5; port++ {
			peer := sw.Ports[port]
			must(e.fab.Relink(sw.Name, port, peer.Peer, peer.PeerPort))
			e.run(pause)
		}
		e.run(2 * time.Second) // for traps that are on their way
		e.mustSettle(30 * time.Second)
		judgeByPort(e)
		for _, p := range e.problems() {
			if strings.Contains(p, "SLtoVL") {
				t.Errorf("with pauses of %v: %s", pause, p)
			}
		}
	}
}

// judgeByPort compares the SL-to-VL tables of switches with those that the routes
// want. Multicast has a level of its own, which is left out.
func judgeByPort(e *env) {
	e.t.Helper()
	tables, f := e.view.Tables, e.view.Fabric
	if !tables.LanesByPort() {
		e.t.Fatalf("%s does not deal lanes by port", tables.Engine)
	}
	for i := range e.list.Nodes {
		n := &e.list.Nodes[i]
		if n.Type != ib.NodeSwitch {
			continue
		}
		id := f.NodeByGUID(n.GUID)
		for in := range n.Ports {
			for out := 2; out <= 5; out++ {
				if in == out {
					continue
				}
				want := tables.SwitchLanes(id, ib.PortNum(in), ib.PortNum(out))
				got := e.fab.SLtoVL(n.Name, ib.PortNum(in), ib.PortNum(out)).VL
				got[e.view.Multicast.SL] = want[e.view.Multicast.SL]
				if d := cmp.Diff(want, got); d != "" {
					e.t.Fatalf("%s from port %d to %d (-want +got):\n%s", n.Name, in, out, d)
				}
			}
		}
	}
}
