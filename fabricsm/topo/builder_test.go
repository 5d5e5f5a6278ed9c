package topo

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
)

// twoHosts is a switch with two hosts on ports 1 and 2.
func twoHosts() (b *Builder, sw, h1, h2 NodeID) {
	b = &Builder{}
	sw = b.AddNode(Node{GUID: 0x20, Type: ib.NodeSwitch, NumPorts: 4})
	h1 = b.AddNode(Node{GUID: 0x30, Type: ib.NodeCA, NumPorts: 1})
	h2 = b.AddNode(Node{GUID: 0x10, Type: ib.NodeCA, NumPorts: 1})
	setGUID(b, b.PortOf(sw, 0), 0x20)
	setGUID(b, b.PortOf(h1, 1), 0x31)
	setGUID(b, b.PortOf(h2, 1), 0x11)
	b.Connect(b.PortOf(sw, 1), b.PortOf(h1, 1))
	b.Connect(b.PortOf(h2, 1), b.PortOf(sw, 2))
	return b, sw, h1, h2
}

func setGUID(b *Builder, p PortID, g ib.GUID) {
	v := b.Port(p)
	v.GUID = g
	b.SetPort(p, v)
}

func TestFreezeOrdersByGUID(t *testing.T) {
	b, sw, h1, h2 := twoHosts()
	f := b.Freeze()
	if d := cmp.Diff(f.ByGUID(), []NodeID{h2, sw, h1}); d != "" {
		t.Errorf("ByGUID (-got +want):\n%s", d)
	}
	if d := cmp.Diff(f.EndPorts(), []PortID{f.PortOf(h2, 1), f.PortOf(sw, 0), f.PortOf(h1, 1)}); d != "" {
		t.Errorf("EndPorts (-got +want):\n%s", d)
	}
	if got := f.NodeByGUID(0x30); got != h1 {
		t.Errorf("NodeByGUID: got %d, want %d", got, h1)
	}
	if got := f.NodeByGUID(0x40); got != None {
		t.Errorf("NodeByGUID of nobody: got %d", got)
	}
	want := ib.Place{Switch: 0x20, Port: 1}
	p := f.PortByGUID(0x31)
	if got := f.PlaceOf(p); got != want {
		t.Errorf("PlaceOf: got %v, want %v", got, want)
	}
	if got := f.PortAt(want); got != p {
		t.Errorf("PortAt: got %d, want %d", got, p)
	}
	if got := f.PlaceOf(f.PortOf(sw, 0)); !got.IsZero() {
		t.Errorf("PlaceOf switch port 0: got %v", got)
	}
}

func TestSnapshotsDoNotChange(t *testing.T) {
	b, _, h1, _ := twoHosts()
	before := b.Freeze()
	if again := b.Freeze(); again != before {
		t.Error("a second Freeze without a change made a new snapshot")
	}
	b.RemoveNode(h1)
	after := b.Freeze()
	if before.Node(h1).Type != ib.NodeCA || before.PortByGUID(0x31) == None {
		t.Error("removing a node changed an older snapshot")
	}
	if after.Node(h1).Type != 0 || after.PortByGUID(0x31) != None || after.NodeByGUID(0x30) != None {
		t.Error("the removed node is still seen")
	}
	if peer := after.Port(after.PortOf(after.NodeByGUID(0x20), 1)).Peer; peer != None {
		t.Errorf("the cable of a removed node is still there: peer %d", peer)
	}
}

func TestReturningNodeKeepsItsID(t *testing.T) {
	b, _, h1, _ := twoHosts()
	b.RemoveNode(h1)
	other := b.AddNode(Node{GUID: 0x99, Type: ib.NodeCA, NumPorts: 1})
	if other == h1 {
		t.Error("a tombstone was given to another node")
	}
	if got := b.AddNode(Node{GUID: 0x30, Type: ib.NodeCA, NumPorts: 1}); got != h1 {
		t.Errorf("returning node: got id %d, want %d", got, h1)
	}
	b.RemoveNode(h1)
	b.Forget(h1)
	if got := b.AddNode(Node{GUID: 0x98, Type: ib.NodeCA, NumPorts: 1}); got != h1 {
		t.Errorf("forgotten slot: got id %d, want %d", got, h1)
	}
	if got := b.NodeByGUID(0x30); got != None {
		t.Errorf("forgotten node is still found: %d", got)
	}
}

func TestTwoNodesOneGUID(t *testing.T) {
	b, sw, h1, _ := twoHosts()
	twin := b.AddNode(Node{GUID: 0x30, Type: ib.NodeCA, NumPorts: 1})
	setGUID(b, b.PortOf(twin, 1), 0x31)
	b.Connect(b.PortOf(sw, 3), b.PortOf(twin, 1))
	f := b.Freeze()
	if d := cmp.Diff(f.PortsByGUID(0x31), []PortID{f.PortOf(h1, 1), f.PortOf(twin, 1)}); d != "" {
		t.Errorf("PortsByGUID (-got +want):\n%s", d)
	}
	b.RemoveNode(h1)
	if got := b.NodeByGUID(0x30); got != twin {
		t.Errorf("after the first left: got %d, want %d", got, twin)
	}
	place := ib.Place{Switch: 0x20, Port: 3}
	b.AddNode(Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 4})
	if got, want := b.Freeze().PortAt(place), b.PortOf(twin, 1); got != want {
		t.Errorf("a CA that claims the switch's GUID hides the place: got port %d, want %d", got, want)
	}
	b.AddNode(Node{GUID: 0x20, Type: ib.NodeSwitch, NumPorts: 4})
	if got := b.Freeze().PortAt(place); got != None {
		t.Errorf("a switch GUID claimed twice still names a place: port %d", got)
	}
}

func TestConnectReplacesCables(t *testing.T) {
	b, sw, h1, h2 := twoHosts()
	b.Connect(b.PortOf(sw, 2), b.PortOf(h1, 1))
	f := b.Freeze()
	if got := f.Port(f.PortOf(sw, 1)).Peer; got != None {
		t.Errorf("old cable of the host is still on switch port 1: %d", got)
	}
	if got := f.Port(f.PortOf(h2, 1)).Peer; got != None {
		t.Errorf("old cable of switch port 2 is still on the other host: %d", got)
	}
	down := b.Port(b.PortOf(h1, 1))
	down.State = ib.PortDown
	b.SetPort(b.PortOf(h1, 1), down)
	if got := b.Freeze().LinkUp(f.PortOf(sw, 2)); got != None {
		t.Errorf("LinkUp over a Down port: got %d", got)
	}
}

// TestBuilderAgainstFresh applies random changes with snapshots in between and
// compares the incremental order with a sort from nothing.
func TestBuilderAgainstFresh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &Builder{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			guid := ib.GUID(rapid.IntRange(1, 12).Draw(t, "guid"))
			id := b.NodeByGUID(guid)
			switch op := rapid.IntRange(0, 4).Draw(t, "op"); {
			case op == 0 && id != None:
				b.RemoveNode(id)
			case op == 1 && id != None:
				b.RemoveNode(id)
				b.Forget(id)
			case op == 2:
				b.Freeze()
			case op == 3 && b.NumPorts() > 1:
				last := b.NumPorts() - 1
				x, y := rapid.IntRange(0, last).Draw(t, "x"), rapid.IntRange(0, last).Draw(t, "y")
				if x != y && b.Node(b.Port(PortID(x)).Node).Type != 0 && b.Node(b.Port(PortID(y)).Node).Type != 0 {
					b.Connect(PortID(x), PortID(y))
				}
			default:
				n := b.AddNode(Node{GUID: guid, Type: ib.NodeType(rapid.IntRange(1, 2).Draw(t, "type")), NumPorts: uint8(rapid.IntRange(1, 3).Draw(t, "ports"))})
				setGUID(b, b.PortOf(n, ib.PortNum(rapid.IntRange(0, 1).Draw(t, "port"))), guid)
			}
		}
		checkOrder(t, b.Freeze())
	})
}

func checkOrder(t interface{ Fatalf(string, ...any) }, f *Fabric) {
	var nodes []NodeID
	for id, n := range f.Nodes() {
		if n.Type != 0 {
			nodes = append(nodes, id)
		}
	}
	slices.SortStableFunc(nodes, func(a, b NodeID) int { return int(f.Node(a).GUID) - int(f.Node(b).GUID) })
	if d := cmp.Diff(f.ByGUID(), nodes); len(nodes) > 0 && d != "" {
		t.Fatalf("ByGUID (-got +want):\n%s", d)
	}
	var ends []PortID
	for id, p := range f.Ports() {
		if p.GUID != 0 && f.IsEndPort(id) {
			ends = append(ends, id)
		}
		if p.Peer != None && f.Port(p.Peer).Peer != id {
			t.Fatalf("cable of port %d is not seen from the other end", id)
		}
		if f.Node(p.Node).Type == 0 && p.Peer != None {
			t.Fatalf("tombstone %d has a cable", p.Node)
		}
	}
	slices.SortStableFunc(ends, func(a, b PortID) int { return int(f.Port(a).GUID) - int(f.Port(b).GUID) })
	if d := cmp.Diff(f.EndPorts(), ends); len(ends) > 0 && d != "" {
		t.Fatalf("EndPorts (-got +want):\n%s", d)
	}
}
