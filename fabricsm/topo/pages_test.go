package topo

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

// manyHosts returns a fabric over several pages: GUIDs are assigned at random.
func manyHosts(n int, rnd *rand.Rand) *Builder {
	b := &Builder{}
	sw := b.AddNode(Node{GUID: 1, Type: ib.NodeSwitch, NumPorts: 254})
	setGUID(b, b.PortOf(sw, 0), 1)
	for i := range n {
		guid := ib.GUID(rnd.Uint64()>>8 + 2)
		id := b.AddNode(Node{GUID: guid, Type: ib.NodeCA, NumPorts: 1})
		setGUID(b, b.PortOf(id, 1), guid+1)
		if i < 254 {
			b.Connect(b.PortOf(sw, ib.PortNum(i+1)), b.PortOf(id, 1))
		}
	}
	return b
}

// copied is all that a snapshot shows.
type copied struct {
	Nodes    []Node
	Ports    []Port
	ByGUID   []NodeID
	Switches []NodeID
	EndPorts []PortID
}

func copyOf(f *Fabric) (c copied) {
	for _, n := range f.Nodes() {
		c.Nodes = append(c.Nodes, *n)
	}
	for _, p := range f.Ports() {
		c.Ports = append(c.Ports, *p)
	}
	c.ByGUID, c.Switches, c.EndPorts = f.ByGUID(), slices.Clone(f.Switches()), f.EndPorts()
	return c
}

// TestSnapshotsShareWhatStays changes a fabric of several pages at random: every
// snapshot stays as it was, and is in order.
func TestSnapshotsShareWhatStays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	b := manyHosts(1500, rnd)
	type kept struct {
		f    *Fabric
		then copied
	}
	var snapshots []kept
	for round := range 24 {
		for range []int{1, 3, 40, 400}[round%4] {
			id := NodeID(1 + rnd.IntN(b.NumNodes()-1))
			switch n := b.Node(id); {
			case n.Type == 0 && rnd.IntN(2) == 0:
				b.Forget(id)
			case n.Type == 0 && n.GUID != 0:
				b.AddNode(Node{GUID: n.GUID, Type: ib.NodeCA, NumPorts: 1})
				setGUID(b, n.FirstPort+1, n.GUID+1)
			case n.Type == 0:
				guid := ib.GUID(rnd.Uint64()>>8 + 2)
				back := b.AddNode(Node{GUID: guid, Type: ib.NodeCA, NumPorts: 1})
				setGUID(b, b.PortOf(back, 1), guid+1)
			case rnd.IntN(3) == 0:
				setGUID(b, b.PortOf(id, 1), ib.GUID(rnd.Uint64()>>8))
			default:
				b.RemoveNode(id)
			}
		}
		f := b.Freeze()
		checkOrder(t, f)
		for _, id := range f.ByGUID() {
			if got := f.NodeByGUID(f.Node(id).GUID); got != id {
				t.Fatalf("round %d: node %d is found as %d by its GUID", round, id, got)
			}
		}
		snapshots = append(snapshots, kept{f, copyOf(f)})
	}
	for i, s := range snapshots {
		if d := cmp.Diff(copyOf(s.f), s.then); d != "" {
			t.Fatalf("snapshot %d changed afterwards (-now +then):\n%s", i, d)
		}
	}
}

// TestManyPortsOneGUID: ports that claim one GUID are found all, over pages.
func TestManyPortsOneGUID(t *testing.T) {
	b := manyHosts(700, rand.New(rand.NewPCG(1, 2)))
	b.Freeze()
	var want []PortID
	for i := range 600 {
		p := b.PortOf(NodeID(1+i), 1)
		setGUID(b, p, 0x1234)
		want = append(want, p)
		if i%7 == 0 {
			b.Freeze()
		}
	}
	f := b.Freeze()
	if d := cmp.Diff(f.PortsByGUID(0x1234), want); d != "" {
		t.Errorf("PortsByGUID (-got +want):\n%s", d)
	}
	checkOrder(t, f)
}

// TestFreezeCostsWhatChanged: a host that leaves and comes back costs about the
// same in a large fabric and in a small one.
func TestFreezeCostsWhatChanged(t *testing.T) {
	cost := func(hosts int) float64 {
		b := manyHosts(hosts, rand.New(rand.NewPCG(1, 3)))
		b.Freeze()
		id := NodeID(hosts / 2)
		n := b.Node(id)
		var before, after runtime.MemStats
		const turns = 50
		runtime.ReadMemStats(&before)
		for range turns {
			b.RemoveNode(id)
			b.Freeze()
			b.AddNode(n)
			setGUID(b, n.FirstPort+1, n.GUID+1)
			b.Freeze()
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / turns
	}
	small, large := cost(2_000), cost(10_000)
	t.Logf("%.0f bytes among 2,000 hosts, %.0f among 10,000", small, large)
	if large > 1.5*small {
		t.Errorf("%.0f bytes in a fabric of 2,000 hosts, %.0f in one of 10,000", small, large)
	}
}
