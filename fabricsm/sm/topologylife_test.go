package sm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
)

// enforced is a settled fabric of two levels under enforcement.
func enforced(t testing.TB, change ...func(*topospec.Revision)) *env {
	l := tree(t, 7, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, under(law(t, l, change...), topospec.Enforce), 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	return e
}

// insert brings a node into the fabric, cabled to the port that is free.
func insert(e *env, kind ib.NodeType, name string, guid ib.GUID) error {
	n := netlist.NewNode(kind, name, guid, 2)
	n.Ports[1].Peer, n.Ports[1].PeerPort = "leaf2", 4
	return e.fab.Insert(n)
}

// TestWrongCables: each wrong cable is cut at its own port, and named.
func TestWrongCables(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(e *env) error
		off  []string
		says []string
	}{
		{
			"T148 the cables of two hosts swapped", func(e *env) error {
				return e.fab.Swap(sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "h6", Port: 1})
			},
			[]string{"leaf1/2", "leaf2/3"},
			[]string{"leaf1/2 swapped disabled", "leaf2/3 swapped disabled"},
		},
		{
			"a host at a port without a cable", func(e *env) error {
				return e.fab.Recable(sim.Endpoint{Node: "h2", Port: 1}, sim.Endpoint{Node: "leaf2", Port: 4})
			},
			[]string{"leaf2/4"},
			[]string{"leaf1/3 missing dark", "leaf2/4 spoof disabled"},
		},
		{
			"T150 a loop", func(e *env) error {
				return e.fab.Recable(sim.Endpoint{Node: "spine1", Port: 7}, sim.Endpoint{Node: "spine1", Port: 8})
			},
			[]string{"spine1/7", "spine1/8"},
			[]string{"leaf2/7 missing dark", "leaf2/8 missing dark", "spine1/7 spoof disabled", "spine1/8 spoof disabled"},
		},
		{
			"T150 a switch that nobody knows", func(e *env) error {
				return insert(e, ib.NodeSwitch, "own", 0xabc)
			},
			[]string{"leaf2/4"},
			[]string{"leaf2/4 unplanned disabled"},
		},
		{
			"T149 another fabric", func(e *env) error {
				return insert(e, ib.NodeCA, "alien", 0xabd)
			},
			[]string{"leaf2/4"},
			[]string{"leaf2/4 unplanned disabled"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := enforced(t)
			e.try(tt.do(e))
			e.run(30 * time.Second)
			if diff := cmp.Diff(tt.off, e.disabled()); diff != "" {
				t.Errorf("off (-want +got):\n%s\n%q", diff, e.problems())
			}
			if diff := cmp.Diff(tt.says, e.verdicts()); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s\n%q", diff, e.problems())
			}
		})
	}
}

// TestDisabledUntilReleased: a port that was switched off stays so over a restart, which writes nothing, and comes back
// when an operator releases it.
func TestDisabledUntilReleased(t *testing.T) {
	e := enforced(t)
	h := hosts(e.list)[4]
	e.try(e.fab.SetGUIDs("h5", 0xbad, 0xbad))
	e.try(e.fab.Bounce("h5", 1))
	e.run(5 * time.Second)
	off := []string{fmt.Sprintf("%s/%d", h.peer, h.pnum)}
	e.try(e.fab.SetGUIDs("h5", h.node.GUID, h.node.GUID))
	e.start() // forgets the routes to devices that are away
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	for range 2 {
		if got := e.disabled(); !slices.Equal(got, off) {
			t.Fatalf("off are %q, want %q", got, off)
		}
		before := e.sets()
		e.start()
		e.want(sm.Intent{Revision: 1})
		e.mustSettle(time.Minute)
		if n := e.sets() - before; n != 0 {
			t.Errorf("%d Sets after a restart, want none", n)
		}
	}
	e.step(&sm.HealthMarked{Place: h.place}) // portcullis fabric health release
	e.run(time.Minute)
	e.mustSettle(time.Minute)
	if got := e.disabled(); len(got) > 0 {
		t.Errorf("off are %q after the release", got)
	}
	if pi := e.fab.PortInfo("h5", 1); pi.PortState != ib.PortActive || len(e.problems()) > 0 {
		t.Errorf("h5 is %v, problems %q", pi.PortState, e.problems())
	}
	before := e.sets()
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	if n := e.sets() - before; n != 0 {
		t.Errorf("%d Sets after a restart, want none", n)
	}
}

// TestReleaseOfWhatIsStillWrong: a device that is released and is wrong again goes dark again.
func TestReleaseOfWhatIsStillWrong(t *testing.T) {
	e := enforced(t)
	h := hosts(e.list)[4]
	bounce(e, "h5", 0xbad)
	e.run(5 * time.Second)
	for range 3 {
		e.step(&sm.TopologyRelease{Place: h.place, By: "ada", Why: "try"})
		e.run(30 * time.Second)
		if len(e.disabled()) != 1 {
			t.Fatalf("off are %q", e.disabled())
		}
	}
	if pi := e.fab.PortInfo("h5", 1); pi.LID != 0 && pi.PortState > ib.PortInit {
		t.Errorf("h5 got in: %+v", pi)
	}
}

// TestEnforcementDoesNotBegin: with a file that is cut, empty or of another fabric
// nothing is switched off (T132).
func TestEnforcementDoesNotBegin(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(l *netlist.Netlist, r *topospec.Revision)
	}{
		{"half of the links", func(_ *netlist.Netlist, r *topospec.Revision) { r.Links = r.Links[:len(r.Links)/2] }},
		{"another fabric", func(_ *netlist.Netlist, r *topospec.Revision) {
			for i := range r.Devices {
				r.Devices[i].GUID += 0x1000000
			}
			for i := range r.Links {
				r.Links[i].A.GUID += 0x1000000
				r.Links[i].B.GUID += 0x1000000
			}
		}},
		{"twice as many hosts", func(_ *netlist.Netlist, r *topospec.Revision) {
			r.Devices = append(r.Devices, topospec.Device{GUID: 0x4000, Kind: topospec.KindSwitch, Name: "leaf3", Ports: 8})
			for i := range 8 {
				g := ib.GUID(0x5000 + i)
				r.Devices = append(r.Devices, topospec.Device{GUID: g, Kind: topospec.KindHCA, Name: fmt.Sprint(g), Ports: 1})
				r.Links = append(r.Links, topospec.Link{A: topospec.End{GUID: 0x4000, Port: ib.PortNum(1 + i)}, B: topospec.End{GUID: g, Port: 1}})
			}
		}},
	} {
		l := tree(t, 8, 8)
		wrong := law(t, l, func(r *topospec.Revision) { tt.change(l, r) })
		t.Run(tt.name+", from the start", func(t *testing.T) {
			e := newEnv(t, l, sim.Options{}, under(wrong, topospec.Enforce), 1)
			e.start()
			e.mustSettle(time.Minute)
			if got := e.disabled(); len(got) > 0 || e.view.Topology.Mode != topospec.Warn {
				t.Errorf("off are %q, the mode in force is %v", got, e.view.Topology.Mode)
			}
			if !slices.ContainsFunc(e.problems(), func(p string) bool { return strings.Contains(p, "not enforced") }) {
				t.Errorf("problems %q", e.problems())
			}
			if bad := inactive(e.view); len(bad) > 0 {
				t.Errorf("not Active: %v", bad)
			}
		})
		t.Run(tt.name+", later", func(t *testing.T) {
			e := enforced(t)
			digest := e.view.Topology.Digest
			e.takeEvents()
			e.step(&sm.TopologySet{Spec: wrong, Mode: topospec.Enforce, By: "ada"})
			e.run(10 * time.Second)
			e.mustSettle(time.Minute)
			if e.view.Topology.Digest != digest || len(e.disabled()) > 0 {
				t.Errorf("%v is in force, off are %q", e.view.Topology.Digest, e.disabled())
			}
			if !slices.ContainsFunc(e.takeEvents(), func(ev sm.Event) bool { _, ok := ev.(*declared.TopologyRefused); return ok }) {
				t.Error("nobody was told")
			}
		})
	}
}

// TestTopologyComesLater: a fabric gets a declared topology, another, and none.
func TestTopologyComesLater(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	without := law(t, l, func(r *topospec.Revision) {
		x := linkOf(r, l.Find("h5").GUID)
		x.A, x.B, x.State = hosts(l)[4].end(), topospec.End{}, topospec.Reserved
	})
	for _, step := range []struct {
		spec *topospec.Spec
		mode topospec.Mode
		off  int
	}{
		{law(t, l), topospec.Observe, 0},
		{without, topospec.Warn, 0},
		{without, topospec.Enforce, 1},
		{law(t, l), topospec.Enforce, 0},
		{without, topospec.Enforce, 1},
		{nil, topospec.Observe, 0},
	} {
		e.step(&sm.TopologySet{Spec: step.spec, Mode: step.mode, By: "ada"})
		e.run(time.Minute)
		e.mustSettle(time.Minute)
		if n := len(e.disabled()); n != step.off {
			t.Errorf("mode %v: off are %q, want %d; problems %q; events %v", step.mode, e.disabled(), step.off, e.problems(), e.takeEvents())
		}
		before := e.sets()
		e.step(&sm.TopologySet{Spec: step.spec, Mode: step.mode, By: "ada"})
		e.run(10 * time.Second)
		e.mustSettle(time.Minute)
		if n := e.sets() - before; n != 0 {
			t.Errorf("mode %v: %d Sets when the same came again", step.mode, n)
		}
	}
	if bad := inactive(e.view); len(bad) > 0 {
		t.Errorf("not Active: %v", bad)
	}
}

// TestOwnPlaceIsWrong: where the subnet manager is not where an enforced topology has
// it after a restart, nothing that works is touched.
func TestOwnPlaceIsWrong(t *testing.T) {
	e := enforced(t)
	e.try(e.fab.Recable(sim.Endpoint{Node: "sm", Port: 1}, sim.Endpoint{Node: "spine1", Port: 8}))
	before := e.sets()
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.run(30 * time.Second)
	if n := e.sets() - before; n != 0 || e.view.State == ib.SMMaster {
		t.Errorf("%d Sets, and it is %v", n, e.view.State)
	}
	if len(e.problems()) == 0 || !strings.Contains(e.problems()[0], "not where the declared topology has it") {
		t.Errorf("problems %q", e.problems())
	}
}

// TestLastWayStays: the only way to a switch is not cut, whatever shows there.
func TestLastWayStays(t *testing.T) {
	l, err := netlist.Chain(netlist.Shape{Hosts: 6, Switches: 3, Radix: 8})
	l = list(t, l, err)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, under(law(t, l), topospec.Enforce), 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	// The second switch is asked again and shows another number of its port.
	spec := law(t, l, func(r *topospec.Revision) {
		for i := range r.Links {
			if x := &r.Links[i]; r.Devices[slices.IndexFunc(r.Devices, func(d topospec.Device) bool { return d.GUID == x.B.GUID })].Kind == topospec.KindSwitch {
				x.B.Port = 7
				return
			}
		}
	})
	e.step(&sm.TopologySet{Spec: spec, Mode: topospec.Enforce, By: "ada"})
	e.run(30 * time.Second)
	if len(e.disabled()) > 0 {
		t.Errorf("off are %q", e.disabled())
	}
	if bad := inactive(e.view); len(bad) > 0 {
		t.Errorf("not Active: %v", bad)
	}
}

// TestStoppedAtTheFirstHop: a host that shows a fabric without end, or poses as a switch, is cut off at its own port, and
// no device behind it is asked (T21).
func TestStoppedAtTheFirstHop(t *testing.T) {
	for name, f := range map[string]func() liar{
		"an endless fabric": func() liar {
			return (&endless{
				fan: 8, guids: map[string]ib.GUID{}, info: map[string]mad.SwitchInfo{}, state: map[string]map[ib.PortNum]*mad.PortInfo{},
			}).answer
		},
		"a switch": func() liar { return poser(49152) },
	} {
		t.Run(name, func(t *testing.T) {
			e := enforced(t)
			h := hosts(e.list)[4]
			before := e.smps["Get NodeInfo"]
			turnInto(e, &h, f())
			e.run(30 * time.Second)
			want := []string{fmt.Sprintf("%s/%d", h.peer, h.pnum)}
			if got := e.disabled(); !slices.Equal(got, want) {
				t.Errorf("off are %q, want %q; %q", got, want, e.problems())
			}
			if n := e.smps["Get NodeInfo"] - before; n > 60 {
				t.Errorf("%d Gets of NodeInfo", n)
			}
			if n := e.view.Fabric.NumNodes(); n > len(e.list.Nodes)+1 {
				t.Errorf("%d nodes", n)
			}
		})
	}
}

// TestBoundary: nothing is asked behind a port that is not to be looked behind, and a
// port that is to be off is switched off.
func TestBoundary(t *testing.T) {
	l := tree(t, 8, 8)
	hs := hosts(l)
	spec := law(t, l, func(r *topospec.Revision) {
		linkOf(r, hs[4].node.GUID).State = topospec.NoDiscover
		linkOf(r, hs[5].node.GUID).State = topospec.Disabled
	})
	e := newEnv(t, l, sim.Options{}, under(spec, topospec.Enforce), 1)
	way := ""
	e.logSend = func(r *sm.Request) {
		if r.MAD.Route().String() == way {
			t.Errorf("%v %v was sent beyond the boundary", r.MAD.Method(), r.MAD.Attr())
		}
	}
	e.start()
	e.mustSettle(time.Minute)
	if got := e.disabled(); !slices.Equal(got, []string{fmt.Sprintf("%s/%d", hs[5].peer, hs[5].pnum)}) {
		t.Errorf("off are %q", got)
	}
	f := e.view.Fabric
	if f.NodeByGUID(hs[4].node.GUID) >= 0 || f.NodeByGUID(hs[5].node.GUID) >= 0 {
		t.Error("a host behind a boundary is part of the fabric")
	}
	before := e.sets()
	e.start()
	e.mustSettle(time.Minute)
	if n := e.sets() - before; n != 0 {
		t.Errorf("%d Sets after a restart, want none", n)
	}
}

// TestRMACandidateIsHeld: a spare of the model under maintenance waits for a person,
// and a new revision lets it in.
func TestRMACandidateIsHeld(t *testing.T) {
	l := tree(t, 8, 8)
	h := hosts(l)[4]
	spare := topospec.Device{GUID: 0xcafe, Kind: topospec.KindHCA, Name: "spare", Model: "ConnectX-7", Ports: 1, Stock: topospec.Spare}
	e := newEnv(t, l, sim.Options{LoseSilently: true}, under(law(t, l, func(r *topospec.Revision) {
		r.Devices = append(r.Devices, spare)
		linkOf(r, h.node.GUID).State = topospec.Maintenance
	}), topospec.Enforce), 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	bounce(e, "h5", spare.GUID)
	e.run(10 * time.Second)
	if got := e.verdicts(); !slices.Equal(got, []string{fmt.Sprintf("%s/%d rma_candidate held", h.peer, h.pnum)}) {
		t.Errorf("verdicts %q, problems %q", got, e.problems())
	}
	if pi := e.fab.PortInfo("h5", 1); pi.PortState > ib.PortInit || len(e.disabled()) > 0 {
		t.Errorf("h5 is %v, off are %q", pi.PortState, e.disabled())
	}
	e.step(&sm.TopologySet{By: "ada", Mode: topospec.Enforce, Spec: law(t, l, func(r *topospec.Revision) {
		old := linkOf(r, h.node.GUID)
		if old.A.GUID == h.node.GUID {
			old.A.GUID = spare.GUID
		} else {
			old.B.GUID = spare.GUID
		}
		i := slices.IndexFunc(r.Devices, func(d topospec.Device) bool { return d.GUID == h.node.GUID })
		r.Devices[i].GUID = spare.GUID
		r.Devices[i].Name = "h5 anew"
	})})
	e.run(10 * time.Second)
	e.mustSettle(time.Minute)
	if pi := e.fab.PortInfo("h5", 1); pi.PortState != ib.PortActive || len(e.problems()) > 0 {
		t.Errorf("h5 is %v, problems %q", pi.PortState, e.problems())
	}
}

// TestFlipFlop: a host that shows the right GUID most of the time stays cut off (T22, T23).
func TestFlipFlop(t *testing.T) {
	l := tree(t, 8, 8)
	cfg := under(law(t, l), topospec.Enforce)
	cfg.AuditPeriod = time.Second
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	h := hosts(l)[4]
	ni := mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: 1, PartitionCap: 128}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 40 {
		for _, g := range []ib.GUID{0xbad, h.node.GUID} {
			ni.NodeGUID, ni.SystemImageGUID, ni.PortGUID = g, g, h.node.PortGUID(1)
			e.try(e.fab.Lie("h5", 1, ni))
			e.run(time.Duration(rng.Int64N(int64(time.Second))))
		}
	}
	if got := e.disabled(); !slices.Equal(got, []string{fmt.Sprintf("%s/%d", h.peer, h.pnum)}) {
		t.Errorf("off are %q; %q", got, e.verdicts())
	}
}
