package sm_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/topo"
)

// eachPair visits the cabled ports of a netlist: of switches with each ingress
// port.
func eachPair(l *netlist.Netlist, visit func(n *netlist.Node, in, out ib.PortNum, trunk bool)) {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for out := 1; out < len(n.Ports); out++ {
			if n.Ports[out].Peer == "" {
				continue
			}
			if n.Type != ib.NodeSwitch {
				visit(n, 0, ib.PortNum(out), false)
				continue
			}
			for in := range n.Ports {
				visit(n, ib.PortNum(in), ib.PortNum(out), l.Find(n.Ports[out].Peer).Type == ib.NodeSwitch)
			}
		}
	}
}

func torusEnv(t *testing.T, o sim.Options, cfg sm.Config) *env {
	t.Helper()
	l, err := netlist.Parse("torus", []byte(torus(4, 4)))
	e := newEnv(t, list(t, l, err), o, cfg, 1)
	return e
}

// torus returns the netlist of a torus with a host on port 1 of each switch, and ports 2 to 5 to the neighbours in +x,
// -x, +y and -y.
func torus(x, y int) string {
	var b strings.Builder
	name := func(i, j int) string { return fmt.Sprintf("s%d_%d", (i+x)%x, (j+y)%y) }
	host := func(i, j int) string {
		if i == 0 && j == 0 {
			return "sm"
		}
		return fmt.Sprintf("h%d_%d", i, j)
	}
	for i := range x {
		for j := range y {
			fmt.Fprintf(&b, "Switch 8 %q\n[1] %q[1]\n[2] %q[3]\n[3] %q[2]\n[4] %q[5]\n[5] %q[4]\n\n",
				name(i, j), host(i, j), name(i+1, j), name(i-1, j), name(i, j+1), name(i, j-1))
			fmt.Fprintf(&b, "Ca 1 %q\n[1] %q[1]\n\n", host(i, j), name(i, j))
		}
	}
	return b.String()
}

func TestLayeredRoutesGetTheirLanes(t *testing.T) {
	for _, o := range []sim.Options{{}, {SLtoVLWildcard: true}} {
		t.Run(fmt.Sprintf("wildcards %v", o.SLtoVLWildcard), func(t *testing.T) {
			e := torusEnv(t, o, sm.Config{Engines: []route.Engine{dor.Engine{Lanes: 4}}, AuditPeriod: -1})
			var order []string // of writes
			e.logSend = func(r *sm.Request) {
				toHost := r.MAD.Attr() == mad.AttrSLtoVLMappingTable && r.MAD.Mod()&0xFF < 2
				if r.MAD.Method() == mad.MethodSet && !toHost {
					order = append(order, r.MAD.Attr().String())
				}
			}
			e.start()
			e.mustSettle(30 * time.Second)
			tables := e.view.Tables
			if tables.Layers() < 2 {
				t.Fatalf("%d layers", tables.Layers())
			}
			want := tables.SLtoVL()
			if sl := e.view.Multicast.SL; int(sl) != tables.Layers() {
				t.Fatalf("multicast has SL %d beside %d layers", sl, tables.Layers())
			}
			want[tables.Layers()] = ib.VL(tables.Layers())
			judgeLayers(e, want)
			lanes, forwarding := false, false
			for _, attr := range order {
				forwarding = forwarding || attr == "LinearForwardingTable"
				lanes = lanes || forwarding && attr == "SLtoVLMappingTable"
			}
			if lanes || !forwarding {
				t.Error("forwarding was written before all lanes were")
			}
			if n := e.smps["Set SLtoVLMappingTable"]; o.SLtoVLWildcard && n > 200 {
				t.Errorf("%d Sets with wildcards", n)
			}
			for i := range e.list.Nodes {
				n := &e.list.Nodes[i]
				p := e.view.Fabric.PortByGUID(n.PortGUID(1))
				if n.Type == ib.NodeSwitch {
					continue
				}
				if sl := tables.SL(e.view.Fabric.Port(p).LID, e.view.LID); e.fab.PortInfo(n.Name, 1).MasterSMSL != sl {
					t.Errorf("%s uses SL %d towards the SM, the routes want %d", n.Name, e.fab.PortInfo(n.Name, 1).MasterSMSL, sl)
				}
			}
			before, was := e.sets(), maps.Clone(e.smps)
			e.start()
			e.mustSettle(30 * time.Second)
			if n := e.sets() - before; n != 0 {
				t.Errorf("a restart wrote %d times: %v, before %v", n, e.smps, was)
			}
		})
	}
}

// judgeLayers compares the SL-to-VL tables that the simulated devices have.
func judgeLayers(e *env, want [16]ib.VL) {
	e.t.Helper()
	eachPair(e.list, func(n *netlist.Node, in, out ib.PortNum, _ bool) {
		if d := cmp.Diff(want, e.fab.SLtoVL(n.Name, in, out).VL); d != "" {
			e.t.Fatalf("%s from port %d to %d (-want +got):\n%s", n.Name, in, out, d)
		}
	})
}

func TestMulticastOnALaneOfItsOwn(t *testing.T) {
	e := torusEnv(t, sim.Options{}, sm.Config{Engines: []route.Engine{dor.Engine{Lanes: 4}}})
	e.start()
	e.mustSettle(30 * time.Second)
	w := spread(e, 10, 6, 3)
	e.step(w.set(e))
	e.mustSettle(30 * time.Second)
	w.judge(e)
}

func TestTooFewLanesAreRefused(t *testing.T) {
	for name, cfg := range map[string]sm.Config{
		"by policy":          {Ports: portpolicy.Config{MaxOperationalVLs: 1}},
		"tables not written": {SLtoVL: sm.SLtoVLOff},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Engines = []route.Engine{dor.Engine{Lanes: 4}}
			e := torusEnv(t, sim.Options{}, cfg)
			e.start()
			e.run(10 * time.Second)
			if !strings.Contains(strings.Join(e.problems(), "\n"), "lane") || e.view.Tables != nil {
				t.Errorf("problems %q, tables %v", e.problems(), e.view.Tables != nil)
			}
		})
	}
}

func qosOptions(t testing.TB, lines ...string) (o qos.Options) {
	t.Helper()
	for _, l := range append(lines, "qos TRUE") {
		name, value, _ := strings.Cut(l, " ")
		if known, err := o.Set(name, value); !known || err != nil {
			t.Fatalf("%s: %v", l, err)
		}
	}
	return o
}

// oddQoS are options that differ from what devices power on with.
var oddQoS = []string{
	"qos_sl2vl 1,0,3,2,5,4,7,6,0,0,0,0,0,0,0,15", "qos_high_limit 9", "qos_ca_high_limit 4",
	"qos_swe_vlarb_high 0:1,1:2,9:3", "qos_vlarb_low 0:8",
}

func TestQoS(t *testing.T) {
	for _, tt := range []struct {
		name    string
		o       sim.Options
		options []string
		slvl    int // Sets of SL-to-VL tables at most
	}{
		{"defaults", sim.Options{}, nil, 8},
		{"other tables", sim.Options{}, oddQoS, 6*7*8 + 8},
		{"other tables by wildcard", sim.Options{SLtoVLWildcard: true}, oddQoS, 4*8 + 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Leaves: 2, Spines: 2, Radix: 8})
			o := qosOptions(t, tt.options...)
			e := newEnv(t, list(t, l, err), tt.o, sm.Config{QoS: o, AuditPeriod: time.Minute}, 1)
			e.start()
			e.mustSettle(30 * time.Second)
			judgeQoS(e, &o)
			if n := e.smps["Set SLtoVLMappingTable"]; n > tt.slvl {
				t.Errorf("%d Sets of SL-to-VL tables, want at most %d", n, tt.slvl)
			}
			t.Logf("SMPs: %v", e.smps)
			before := e.sets()
			e.start()
			e.mustSettle(30 * time.Second)
			if n := e.sets() - before; n != 0 {
				t.Errorf("a restart wrote %d times", n)
			}
			e.run(3 * time.Minute)
			if n := e.sets() - before; n != 0 {
				t.Errorf("the audit wrote %d times", n)
			}
			if err := e.fab.Reboot("spine1"); err != nil {
				t.Fatal(err)
			}
			e.arrive(e.st.Take(nil))
			e.run(3 * time.Second)
			e.mustSettle(time.Minute)
			judgeQoS(e, &o)
		})
	}
}

// judgeQoS compares the tables that the simulated devices have.
func judgeQoS(e *env, o *qos.Options) {
	e.t.Helper()
	eachPair(e.list, func(n *netlist.Node, in, out ib.PortNum, _ bool) {
		kind := qos.CA
		if n.Type == ib.NodeSwitch {
			kind = qos.SwitchExternal
		}
		table := o.Table(kind)
		info := e.fab.PortInfo(n.Name, out)
		if d := cmp.Diff(table.Lanes(info.OperationalVLs), e.fab.SLtoVL(n.Name, in, out).VL); d != "" {
			e.t.Fatalf("%s from port %d to %d (-want +got):\n%s", n.Name, in, out, d)
		}
		for half, high := range map[mad.VLArbHalf]bool{mad.VLArbLow0: false, mad.VLArbHigh0: true} {
			got := e.fab.VLArbitration(n.Name, out, half)
			for i, want := range table.Half(high, false, 8, info.OperationalVLs) {
				if got.Entry[i].VL != want.VL || got.Entry[i].Weight != want.Weight {
					e.t.Fatalf("%s port %d, %v, entry %d: %v, want %v", n.Name, out, half, i, got.Entry[i], want)
				}
			}
		}
		if info.VLHighLimit != table.HighLimit {
			e.t.Fatalf("%s port %d: VLHighLimit %d, want %d", n.Name, out, info.VLHighLimit, table.HighLimit)
		}
	})
}

// TestWithoutQoSNothingIsAsked holds that nothing is asked or written for what is
// switched off.
func TestWithoutQoSNothingIsAsked(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Leaves: 2, Spines: 2, Radix: 8})
	e := newEnv(t, list(t, l, err), sim.Options{}, sm.Config{Engines: []route.Engine{minhop.Engine{}}, AuditPeriod: time.Minute}, 1)
	e.start()
	e.mustSettle(30 * time.Second)
	e.run(3 * time.Minute)
	for k, n := range e.smps {
		for _, attr := range []string{"SLtoVL", "VLArb", "Multicast"} {
			if strings.Contains(k, attr) {
				t.Errorf("%d %s", n, k)
			}
		}
	}
}

// TestGroupsMoveToALane puts groups into a fabric whose routes leave no safe tree
// on their lane, and looks for the lane they are given.
func TestGroupsMoveToALane(t *testing.T) {
	e := torusEnv(t, sim.Options{}, sm.Config{})
	e.start()
	e.mustSettle(30 * time.Second)
	w := make(wanted)
	for _, h := range hosts(e.list)[:5] {
		w.join(e, ib.MinMulticastLID, h.node.Name, mcast.FullMember)
	}
	e.mustSettle(30 * time.Second)
	w.judge(e)
	gr := e.view.Multicast
	if gr.SL == 0 {
		return // the trees are proven beside the routes
	}
	n := e.list.Find(e.view.Fabric.Node(topo.NodeID(1)).Description)
	if vl := e.fab.SLtoVL(n.Name, 0, 1).VL[gr.SL]; vl == ib.VL15 {
		t.Errorf("SL %d of multicast is dropped", gr.SL)
	}
}
