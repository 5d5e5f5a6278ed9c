package sim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
)

func state(f *sim.Fabric, node string, num ib.PortNum) ib.PortState {
	return f.PortInfo(node, num).PortState
}

func cableEnds(t testing.TB, f *sim.Fabric, node string, num ib.PortNum, want string) {
	t.Helper()
	far, ok := f.Cable(node, num)
	if got := far.Node; got != want || ok != (want != "") {
		t.Errorf("the cable of %s port %d ends at %q, want %q", node, num, got, want)
	}
}

func TestRecable(t *testing.T) {
	f := tree(t, sim.Options{})
	if err := f.Recable(sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "leaf2", Port: 1}); err != nil {
		t.Fatal(err)
	}
	cableEnds(t, f, "h1", 1, "leaf2")
	cableEnds(t, f, "h2", 1, "")
	cableEnds(t, f, "leaf1", 2, "")
	if state(f, "h1", 1) != ib.PortInit || state(f, "h2", 1) != ib.PortDown || state(f, "leaf1", 2) != ib.PortDown {
		t.Errorf("states: h1 %v, h2 %v, leaf1 %v", state(f, "h1", 1), state(f, "h2", 1), state(f, "leaf1", 2))
	}
}

func TestSwap(t *testing.T) {
	f := tree(t, sim.Options{})
	one, two := sim.Endpoint{Node: "leaf1", Port: 2}, sim.Endpoint{Node: "leaf2", Port: 1}
	if err := f.Swap(one, two); err != nil {
		t.Fatal(err)
	}
	cableEnds(t, f, "leaf1", 2, "h2")
	cableEnds(t, f, "leaf2", 1, "h1")
	if state(f, "h1", 1) != ib.PortInit || state(f, "h2", 1) != ib.PortInit {
		t.Error("the swapped links are not up")
	}
	for name, ends := range map[string][2]sim.Endpoint{
		"the same port":     {one, one},
		"ends of one cable": {one, {Node: "h2", Port: 1}},
		"port 0":            {one, {Node: "leaf2"}},
		"no such node":      {one, {Node: "h9", Port: 1}},
	} {
		if err := f.Swap(ends[0], ends[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBounce(t *testing.T) {
	f, _ := running(t)
	if err := f.Bounce("h1", 1); err != nil {
		t.Fatal(err)
	}
	if state(f, "h1", 1) != ib.PortInit || state(f, "leaf1", 2) != ib.PortInit {
		t.Errorf("after a bounce h1 is %v, its switch port %v; want both Init", state(f, "h1", 1), state(f, "leaf1", 2))
	}
	if f.PortInfo("h1", 1).LID != 2 || !f.SwitchInfo("leaf1").PortStateChange {
		t.Error("a bounce took the LID, or the switch did not notice")
	}
	if err := f.Unplug("h1"); err != nil {
		t.Fatal(err)
	}
	cableEnds(t, f, "leaf1", 2, "")
	if err := f.Bounce("h1", 1); err == nil {
		t.Error("a port without a link bounced")
	}
}

func TestInsert(t *testing.T) {
	f := tree(t, sim.Options{})
	if err := f.Unplug("h1"); err != nil {
		t.Fatal(err)
	}
	rt := netlist.NewNode(ib.NodeRouter, "rt1", 0x0040000000000000, 2)
	rt.Ports[1].Peer, rt.Ports[1].PeerPort = "leaf1", 2
	if err := f.Insert(rt); err != nil {
		t.Fatal(err)
	}
	ni := get[mad.NodeInfo](t, station(t, f, "sm", false), mad.AttrNodeInfo, 0, 1, 2)
	if ni.NodeType != ib.NodeRouter || ni.PortGUID != 0x0040000000000001 || ni.NumPorts != 2 {
		t.Errorf("behind leaf1 port 2 is %+v", ni)
	}
	pi := f.PortInfo("rt1", 1)
	if pi.PortState != ib.PortInit || !pi.CapabilityMask.Has(mad.IsTrapSupported) {
		t.Errorf("the router's port is %v with %v", pi.PortState, pi.CapabilityMask)
	}
	taken, noName, farther := rt, rt, rt
	noName.Name = ""
	farther.Name = "rt2"
	for name, n := range map[string]netlist.Node{"name taken": taken, "no name": noName, "port taken": farther} {
		if err := f.Insert(n); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got := f.Nodes(); got[len(got)-1] != "rt1" {
		t.Errorf("the last node is %q, want the inserted one alone", got[len(got)-1])
	}
}

func TestForgedMADs(t *testing.T) {
	f, s := running(t)
	sm := station(t, f, "h1", true)
	trap := sim.Forged{SLID: 9, DLID: 2, MAD: toLID(2, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice}).MAD}
	if err := f.InjectMAD(atSM, trap); err != nil {
		t.Fatal(err)
	}
	if got := sm.Take(nil); len(got) != 1 || got[0].LID != 9 {
		t.Fatalf("the SM got %d packets", len(got))
	}
	fl, err := f.Flood(atSM, trap, 5)
	if err != nil {
		t.Fatal(err)
	}
	f.Advance(1)
	f.Advance(1)
	fl.Stop()
	f.Advance(1)
	got := sm.Take(nil)
	if len(got) != 10 || got[0].MAD.TID() == got[1].MAD.TID() {
		t.Errorf("the SM got %d packets of a flood, want 10 with TIDs of their own", len(got))
	}
	if left := s.Take(nil); len(left) != 0 {
		t.Errorf("a forged packet came back to an honest station: %d", len(left))
	}
}

func TestRogueSM(t *testing.T) {
	f, s := running(t)
	claim := mad.SMInfo{GUID: 0x66, Priority: 15, SMState: ib.SMMaster}
	if err := f.RogueSM("h1", &claim); err != nil {
		t.Fatal(err)
	}
	if got := get[mad.SMInfo](t, s, mad.AttrSMInfo, 0, 1, 2); got != claim {
		t.Errorf("SMInfo %+v, want %+v", got, claim)
	}
	if !f.PortInfo("h1", 1).CapabilityMask.Has(mad.IsSM) {
		t.Error("the IsSM bit is not set")
	}
	if err := f.RogueSM("h1", nil); err != nil {
		t.Fatal(err)
	}
	if got := only(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo}, 1, 2)); !got.Undelivered {
		t.Error("it answers still")
	}
}

func TestLie(t *testing.T) {
	f, s := running(t)
	ni := get[mad.NodeInfo](t, s, mad.AttrNodeInfo, 0, 1, 2)
	lie := ni
	lie.NodeType, lie.NumPorts, lie.NodeGUID, lie.LocalPortNum = ib.NodeSwitch, 36, 0x66, 9
	if err := f.Lie("h1", 1, lie); err != nil {
		t.Fatal(err)
	}
	lie.LocalPortNum = 1
	if got := get[mad.NodeInfo](t, s, mad.AttrNodeInfo, 0, 1, 2); got != lie {
		t.Errorf("NodeInfo %+v, want %+v", got, lie)
	}
	if err := f.Reboot("h1"); err != nil {
		t.Fatal(err)
	}
	if got := get[mad.NodeInfo](t, s, mad.AttrNodeInfo, 0, 1, 2); got != ni {
		t.Errorf("NodeInfo after a reboot %+v, want %+v", got, ni)
	}
}

func TestRestore(t *testing.T) {
	f := tree(t, sim.Options{})
	if err := f.Unplug("h1"); err != nil {
		t.Fatal(err)
	}
	// Meanwhile another cable takes the port; Restore pulls it out.
	if err := f.Recable(sim.Endpoint{Node: "h2", Port: 1}, sim.Endpoint{Node: "leaf1", Port: 2}); err != nil {
		t.Fatal(err)
	}
	if err := f.Restore("h1", ib.NoPort); err != nil {
		t.Fatal(err)
	}
	cableEnds(t, f, "h1", 1, "leaf1")
	cableEnds(t, f, "h2", 1, "")
	if err := f.Restore("h1", 1); err == nil {
		t.Error("a cable that is in was restored")
	}
}

func TestRoute(t *testing.T) {
	f, s := running(t)
	way, err := f.Route(1, 2)
	want := []sim.Endpoint{{Node: "sm", Port: 1}, {Node: "leaf1", Port: 2}, {Node: "h1", Port: 1}}
	if diff := cmp.Diff(want, way); diff != "" || err != nil {
		t.Errorf("%v, want-, got+\n%s", err, diff)
	}
	lft(t, s, 2, 1, 1)
	for name, lids := range map[string][2]ib.LID{"to another": {1, 2}, "no route": {1, 9}, "from nowhere": {9, 1}} {
		if way, err := f.Route(lids[0], lids[1]); err == nil {
			t.Errorf("%s: %v, want an error", name, way)
		}
	}
}
