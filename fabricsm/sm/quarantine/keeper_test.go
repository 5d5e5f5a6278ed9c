package quarantine_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/quarantine"
	"portcullis/fabricsm/sm/tree"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is our own adapter on port 1 of a switch, whose port 2 leads to another switch, which has a host on port 2.
type fabric struct {
	topo   topo.Builder
	queue  work.Queue
	tree   *tree.Tree
	health *health.Records
	keeper quarantine.Keeper
	now    time.Time
	root   topo.NodeID
	near   topo.NodeID
	far    topo.NodeID
	host   topo.NodeID
	ports  map[topo.PortID]*quarantine.Port
	slow   bool // it is not known whether a port is off
	did    []string
	taken  []ib.PhysState
}

func newFabric() *fabric {
	f := &fabric{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ports: make(map[topo.PortID]*quarantine.Port)}
	f.root = f.topo.AddNode(topo.Node{GUID: 0x30, Type: ib.NodeCA, NumPorts: 1})
	f.near = f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	f.far = f.topo.AddNode(topo.Node{GUID: 0x11, Type: ib.NodeSwitch, NumPorts: 2})
	f.host = f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.tree = tree.New(f, &f.topo)
	f.tree.Extend(f.topo.NumNodes())
	f.topo.Connect(f.at(f.root, 1), f.at(f.near, 1))
	f.topo.Connect(f.at(f.near, 2), f.at(f.far, 1))
	f.topo.Connect(f.at(f.far, 2), f.at(f.host, 1))
	f.tree.Add(f.root, topo.None)
	f.tree.Add(f.near, f.at(f.root, 1))
	f.tree.Add(f.far, f.at(f.near, 2))
	f.tree.Add(f.host, f.at(f.far, 2))
	for p := range topo.PortID(f.topo.NumPorts()) {
		pi := &mad.PortInfo{PortState: ib.PortActive, PortPhysicalState: ib.PhysLinkUp}
		f.ports[p] = &quarantine.Port{Info: pi, State: new(quarantine.State), Set: new(portset.State), IsRead: true}
	}
	config, faults := &health.Config{}, fault.New()
	config.SetDefaults()
	f.health = health.New(f, config, &faults)
	f.keeper = quarantine.New(&quarantine.Parts{Fabric: f, Actions: f, Topo: &f.topo, Tree: f.tree, Queue: &f.queue, Health: f.health})
	return f
}

func (f *fabric) at(id topo.NodeID, num ib.PortNum) topo.PortID { return f.topo.PortOf(id, num) }
func (f *fabric) Root() (topo.NodeID, topo.PortID)              { return f.root, f.at(f.root, 1) }
func (f *fabric) IsAlive(topo.NodeID) bool                      { return true }
func (f *fabric) IsWriting() bool                               { return true }
func (f *fabric) MayBeOff(topo.PortID) bool                     { return f.slow }
func (f *fabric) Port(p topo.PortID) quarantine.Port            { return *f.ports[p] }
func (f *fabric) Rerouted(topo.NodeID, topo.PortID)             {}
func (f *fabric) Drop(topo.NodeID)                              {}
func (f *fabric) Unlink(topo.PortID)                            { f.did = append(f.did, "unlink") }
func (f *fabric) Abandon(topo.PortID)                           { f.did = append(f.did, "abandon") }
func (f *fabric) ProbeSoon(topo.PortID)                         { f.did = append(f.did, "probe") }
func (f *fabric) Pause(work.Ref)                                { f.did = append(f.did, "pause") }
func (f *fabric) Opened(topo.PortID)                            { f.did = append(f.did, "opened") }
func (f *fabric) TakeDown(_ topo.PortID, phys ib.PhysState)     { f.taken = append(f.taken, phys) }

func (f *fabric) Now() time.Time                     { return f.now }
func (f *fabric) IsProtected(at ib.Place) bool       { return f.keeper.IsUntouchable(at) }
func (f *fabric) Apply(at ib.Place, a health.Action) { f.keeper.Apply(at, a) }
func (f *fabric) Report(fault.Event)                 {}
func (f *fabric) Save(health.Saved)                  {}
func (f *fabric) TickLater(time.Duration)            {}

// done returns what was done since the last call.
func (f *fabric) done() []string {
	did := f.did
	f.did = nil
	return did
}

// TestMarkedPort checks that a port which an operator marks is closed and opened again, and that ours never is.
func TestMarkedPort(t *testing.T) {
	f := newFabric()
	p := f.at(f.far, 2)
	at := f.topo.PlaceOf(p)
	if !f.keeper.Mark(at, health.MarkUnhealthy, "burnt") || f.ports[p].State.Action() != health.Isolate || !f.ports[p].State.IsDark() {
		t.Fatalf("marked unhealthy: action %v", f.ports[p].State.Action())
	}
	if did := f.done(); !slices.Equal(did, []string{"unlink", "abandon"}) {
		t.Errorf("marked unhealthy: did %v", did)
	}
	if s := f.health.States(); len(s) != 1 || s[0].GUID != 0x20 {
		t.Errorf("states %+v: want one about the host", s)
	}
	if !f.keeper.Work(p) || !slices.Equal(f.taken, []ib.PhysState{ib.PhysNop}) {
		t.Errorf("an active link: took down %v", f.taken)
	}
	if !f.keeper.Mark(at, health.MarkNone, "") || f.ports[p].State.IsDark() || !slices.Equal(f.done(), []string{"probe"}) {
		t.Errorf("mark taken back: action %v", f.ports[p].State.Action())
	}
	if f.keeper.Work(p) {
		t.Error("an open port may not be written")
	}
	own := f.at(f.near, 1)
	f.keeper.Mark(f.topo.PlaceOf(own), health.MarkUnhealthy, "ours")
	if f.ports[own].State.IsDark() || len(f.done()) != 0 {
		t.Error("the port in front of us is closed")
	}
}

// TestSickSwitch checks that the ports in front of a sick switch are closed, also when it is found later.
func TestSickSwitch(t *testing.T) {
	f := newFabric()
	f.keeper.Mark(ib.Place{Switch: 0x11}, health.MarkUnhealthy, "loops")
	p := f.at(f.near, 2)
	if f.ports[p].State.Action() != health.Isolate || f.ports[f.at(f.far, 2)].State.IsDark() {
		t.Error("the port in front of the switch is open, or its own ports are closed")
	}
	f.ports[p].State = new(quarantine.State)
	if f.keeper.Restore(f.near); !f.ports[p].State.IsDark() {
		t.Error("a switch that is found again has its port open")
	}
	if f.keeper.IsShunned(f.at(f.far, 2), 0x10) {
		t.Error("a port in front of a switch that is well is closed")
	}
	if f.keeper.Mark(ib.Place{Switch: 0x10}, health.MarkUnhealthy, "ours"); f.ports[f.at(f.near, 1)].State.IsDark() {
		t.Error("the way to us is closed")
	}
}

// TestIsShunned checks that a port behind which a sick switch is found is closed.
func TestIsShunned(t *testing.T) {
	f := newFabric()
	p := f.at(f.near, 2)
	f.topo.Disconnect(p)
	f.keeper.Mark(ib.Place{Switch: 0x11}, health.MarkUnhealthy, "loops")
	if f.ports[p].State.IsDark() {
		t.Fatal("a port behind which nothing is was closed")
	}
	if !f.keeper.IsShunned(p, 0x11) || !f.ports[p].State.IsDark() {
		t.Error("the port is open")
	}
}

// TestPutLaw checks that a port that the topology switched off is switched on again, and when.
func TestPutLaw(t *testing.T) {
	f := newFabric()
	p := f.at(f.far, 2)
	pt := f.ports[p]
	f.keeper.PutLaw(p, health.Disable)
	if !pt.State.IsOutlawed() || !slices.Equal(f.done(), []string{"unlink", "abandon"}) {
		t.Fatal("the port is open")
	}
	f.keeper.Work(p)
	pt.Info.PortPhysicalState, pt.Info.PortState = ib.PhysDisabled, ib.PortDown
	f.keeper.Work(p)
	f.keeper.PutLaw(p, health.Report)
	f.keeper.PutLaw(p, health.Report)
	if !f.keeper.Work(p) || !slices.Equal(f.taken, []ib.PhysState{ib.PhysDisabled, ib.PhysPolling}) || !slices.Equal(f.done(), []string{"probe"}) {
		t.Errorf("took down %v", f.taken)
	}
	pt.Info.PortPhysicalState, f.slow = ib.PhysPolling, true
	if !f.keeper.Work(p) || len(f.done()) != 0 {
		t.Error("the port is opened before it is known to be on")
	}
	if f.slow = false; f.keeper.Work(p) || !slices.Equal(f.done(), []string{"opened"}) {
		t.Error("the port is not opened")
	}
}

// TestForcePauses checks that a port which takes Sets and changes nothing is left alone for a while.
func TestForcePauses(t *testing.T) {
	f := newFabric()
	p := f.at(f.far, 2)
	f.keeper.PutLaw(p, health.Isolate)
	f.done()
	for !f.ports[p].Set.Count() {
	}
	if f.keeper.Work(p); len(f.taken) != 0 || !slices.Equal(f.done(), []string{"pause"}) || f.ports[p].Set.IsStuck() {
		t.Errorf("took down %v", f.taken)
	}
}

// TestShut checks that only a link that is in use is taken down.
func TestShut(t *testing.T) {
	f := newFabric()
	p := f.at(f.far, 2)
	if f.keeper.Shut(p); len(f.taken) != 1 {
		t.Error("an active link stays")
	}
	f.ports[p].Info.PortState = ib.PortInit
	if f.keeper.Shut(p); len(f.taken) != 1 {
		t.Error("a link in Init is taken down")
	}
}

// TestStrikes checks which place answers for a node, and for a link.
func TestStrikes(t *testing.T) {
	f := newFabric()
	if got := f.keeper.SuspectPlace(f.host); got != (ib.Place{Switch: 0x11, Port: 2}) {
		t.Errorf("a host is answered for by %v", got)
	}
	for range 5 {
		f.keeper.StrikeNode(f.root, health.Unresponsive)
		f.keeper.StrikeNode(f.far, health.Unresponsive)
	}
	if sick := f.health.Sick(); !slices.Equal(sick, []ib.Place{{Switch: 0x11}}) {
		t.Errorf("sick places %v", sick)
	}
	for range 12 {
		f.keeper.StrikeFlapping(f.at(f.far, 1), f.at(f.near, 2))
		f.keeper.StrikeFlapping(f.at(f.host, 1), topo.None)
	}
	if sick := f.health.Sick(); !slices.Equal(sick[1:], []ib.Place{{Switch: 0x10, Port: 2}}) {
		t.Errorf("sick places %v", sick)
	}
}
