package sm_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dor"
	toroidal "portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/topo"
)

// TestViewsShowWhatDevicesHold compares all that a view shows of devices with what
// the simulated ones hold, before and after some of them come, go and reboot.
func TestViewsShowWhatDevicesHold(t *testing.T) {
	tree := func(t *testing.T, o sim.Options, cfg sm.Config) *env {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Leaves: 2, Spines: 2, Radix: 8})
		return newEnv(t, list(t, l, err), o, cfg, 1)
	}
	for _, tt := range []struct {
		name  string
		make  func(*testing.T, sim.Options, sm.Config) *env
		o     sim.Options
		cfg   sm.Config
		lanes bool
	}{
		{"plain", tree, sim.Options{}, sm.Config{AuditPeriod: -1}, false},
		{"with quality of service", tree, sim.Options{}, sm.Config{QoS: qosOptions(t, oddQoS...), AuditPeriod: -1}, true},
		{"lanes by layer", torusEnv, sim.Options{}, sm.Config{Engines: []route.Engine{dor.Engine{Lanes: 4}}, AuditPeriod: -1}, true},
		{"lanes by wildcard", torusEnv, sim.Options{SLtoVLWildcard: true}, sm.Config{Engines: []route.Engine{dor.Engine{Lanes: 4}}, AuditPeriod: -1}, true},
		{"lanes by port", torusEnv, sim.Options{}, sm.Config{Engines: []route.Engine{toroidal.Engine{Lanes: 4}}, AuditPeriod: -1}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.make(t, tt.o, tt.cfg)
			e.start()
			all := hosts(e.list)
			e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{all[1].grant(0x8001), all[2].grant(0x8002)}})
			e.mustSettle(30 * time.Second)
			w := make(wanted)
			for _, h := range all[:4] {
				w.join(e, ib.MinMulticastLID, h.node.Name, mcast.FullMember)
				w.join(e, ib.MinMulticastLID+40, h.node.Name, mcast.FullMember)
			}
			e.mustSettle(30 * time.Second)
			first := e.view
			was := first.PortInfo(first.Fabric.PortByGUID(all[1].node.PortGUID(1)))
			judgeShown(e, tt.lanes)

			cut(e, all[1].node.Name)
			e.run(2 * time.Second)
			e.mustSettle(30 * time.Second)
			judgeShown(e, tt.lanes)
			if p := first.Fabric.PortByGUID(all[1].node.PortGUID(1)); first.PortInfo(p) != was {
				t.Error("an older view changed")
			}
			for i := range e.list.Nodes {
				if n := &e.list.Nodes[i]; n.Type == ib.NodeSwitch {
					if err := e.fab.Reboot(n.Name); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			e.arrive(e.st.Take(nil))
			e.run(3 * time.Second)
			e.mustSettle(time.Minute)
			judgeShown(e, tt.lanes)
		})
	}
}

// judgeShown compares the newest view with the simulated devices. Lanes are known of
// all cabled ports, or of none.
func judgeShown(e *env, lanes bool) {
	e.t.Helper()
	v, f := e.view, e.view.Fabric
	for i := range e.list.Nodes {
		n := &e.list.Nodes[i]
		id := f.NodeByGUID(n.GUID)
		if id == topo.None {
			continue
		}
		if n.Type == ib.NodeSwitch {
			want := make([]byte, 20)
			info := e.fab.SwitchInfo(n.Name)
			if err := mad.Encode(want, &info); err != nil {
				e.t.Fatal(err)
			}
			if got := v.SwitchInfo(id); got == nil || string(got[:]) != string(want) {
				e.t.Fatalf("SwitchInfo of %s: got %x, want %x", n.Name, got, want)
			}
		} else if v.SwitchInfo(id) != nil {
			e.t.Fatalf("%s has SwitchInfo and is no switch", n.Name)
		}
		for num := range n.Ports {
			p := f.PortOf(id, ib.PortNum(num))
			if num == 0 && n.Type != ib.NodeSwitch {
				if v.PortInfo(p) != nil {
					e.t.Fatalf("%s has a port 0", n.Name)
				}
				continue
			}
			judgeShownPort(e, n, p)
			if f.LinkUp(p) != topo.None {
				judgeShownLanes(e, n, p, lanes)
			}
		}
	}
}

func judgeShownPort(e *env, n *netlist.Node, p topo.PortID) {
	e.t.Helper()
	num := e.view.Fabric.Port(p).Num
	shown := e.view.PortInfo(p)
	if shown == nil {
		if e.fab.PortInfo(n.Name, num).PortState != ib.PortDown {
			e.t.Fatalf("%s port %d is not shown", n.Name, num)
		}
		return
	}
	var got mad.PortInfo
	if err := mad.Decode(shown[:], &got); err != nil {
		e.t.Fatal(err)
	}
	want := e.fab.PortInfo(n.Name, num)
	want.MKey, want.ClientReregister, want.LocalPortNum = ib.MKey{}, false, got.LocalPortNum
	if d := cmp.Diff(want, got, cmp.AllowUnexported(ib.MKey{})); d != "" {
		e.t.Fatalf("PortInfo of %s port %d (-want +got):\n%s", n.Name, num, d)
	}
	for b := range e.view.PKeyBlocks(p) {
		for i, k := range e.view.PKeyBlock(p, b) {
			if held := e.fab.PKeyAt(n.Name, num, b*mad.PKeysPerBlock+i); held != k {
				e.t.Fatalf("%s port %d holds %v at %d of block %d, and %v is shown", n.Name, num, held, i, b, k)
			}
		}
	}
	if len(e.view.PKeyBlock(p, e.view.PKeyBlocks(p))) != 0 || e.view.PKeyBlock(p, -1) != nil {
		e.t.Fatalf("%s port %d has more blocks than it has", n.Name, num)
	}
}

func judgeShownLanes(e *env, n *netlist.Node, p topo.PortID, lanes bool) {
	e.t.Helper()
	num := e.view.Fabric.Port(p).Num
	ins := len(n.Ports)
	if n.Type != ib.NodeSwitch {
		ins = 1
	}
	for in := range ins {
		vl, known := e.view.SLtoVL(p, ib.PortNum(in))
		if known != lanes || e.view.LeavesSLtoVL(p) == known {
			e.t.Fatalf("SL-to-VL table of %s from port %d to %d: known %v, want %v", n.Name, in, num, known, lanes)
		}
		if d := cmp.Diff(e.fab.SLtoVL(n.Name, ib.PortNum(in), num).VL, vl); lanes && in != int(num) && d != "" {
			e.t.Fatalf("SL-to-VL table of %s from port %d to %d (-want +got):\n%s", n.Name, in, num, d)
		}
	}
	info := e.fab.PortInfo(n.Name, num)
	for half := mad.VLArbHalf(0); half <= mad.VLArbHigh32+1; half++ {
		got, known := e.view.VLArbitration(p, half)
		if want := e.cfg.QoS.Enabled && (half == mad.VLArbLow0 || half == mad.VLArbHigh0); known != want || e.view.LeavesVLArbitration(p, half) != (!known && half >= mad.VLArbLow0 && half <= mad.VLArbHigh32) {
			e.t.Fatalf("%v of %s port %d: known %v, want %v", half, n.Name, num, known, want)
		}
		if !known {
			continue
		}
		want := e.fab.VLArbitration(n.Name, num, half)
		for i := int(info.VLArbitrationLowCap); i < len(want.Entry); i++ {
			want.Entry[i] = mad.VLArbEntry{}
		}
		if d := cmp.Diff(want.Entry[:], got.Entry[:], cmp.Comparer(func(a, b mad.VLArbEntry) bool { return a == b })); d != "" {
			e.t.Fatalf("%v of %s port %d (-want +got):\n%s", half, n.Name, num, d)
		}
	}
}

// TestMulticastPortsOfAView compares them with the tables of the simulated switches.
func TestMulticastPortsOfAView(t *testing.T) {
	e := multicastEnv(t, sim.Options{})
	w := spread(e, 7, 9, 1)
	e.step(w.set(e))
	e.mustSettle(30 * time.Second)
	some := 0
	for i := range e.list.Nodes {
		n := &e.list.Nodes[i]
		if n.Type != ib.NodeSwitch {
			continue
		}
		id := e.view.Fabric.NodeByGUID(n.GUID)
		for mlid := ib.MinMulticastLID; mlid < ib.MinMulticastLID+64; mlid++ {
			var got []ib.PortNum
			if ports := e.view.Multicast.PortsOf(id, mlid); ports != nil {
				ports.Each(func(p ib.PortNum) { got = append(got, p) })
			}
			want := e.fab.MulticastPorts(n.Name, mlid)
			if some += len(want); len(got)+len(want) > 0 && !cmp.Equal(got, want) {
				t.Errorf("%s sends multicast 0x%x to %v, shown is %v", n.Name, uint16(mlid), want, got)
			}
		}
	}
	if some == 0 {
		t.Error("no switch forwards any group")
	}
	var none *multicast.View
	if none.PortsOf(0, ib.MinMulticastLID) != nil {
		t.Error("without multicast there are ports of a group")
	}
}
