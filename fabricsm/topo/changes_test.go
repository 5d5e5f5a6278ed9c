package topo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
)

// TestChangedPorts: every port that differs, or whose node does, is visited, and a
// small change visits few.
func TestChangedPorts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var b Builder
	for i := range 400 {
		b.AddNode(Node{GUID: ib.GUID(i + 1), Type: ib.NodeSwitch, NumPorts: 8})
	}
	if n := len(slices.Collect(b.Freeze().ChangedPorts(nil))); n < b.NumPorts() {
		t.Errorf("%d of %d ports visited against nothing", n, b.NumPorts())
	}
	for round := range 200 {
		old := b.Freeze()
		for range rng.IntN(4) {
			changeOne(&b, rng, round)
		}
		now := b.Freeze()
		seen := make(map[PortID]bool)
		for p := range now.ChangedPorts(old) {
			seen[p] = true
		}
		for p := range now.NumPorts() {
			id := PortID(p)
			same := p < old.NumPorts() && *now.Port(id) == *old.Port(id) && *now.NodeOf(id) == *old.NodeOf(id)
			if !same && !seen[id] {
				t.Fatalf("round %d: port %d differs and is not visited", round, p)
			}
		}
		if len(seen) > 8*pageSize {
			t.Errorf("round %d: %d ports visited of %d", round, len(seen), now.NumPorts())
		}
	}
}

func changeOne(b *Builder, rng *rand.Rand, round int) {
	id := NodeID(rng.IntN(b.NumNodes()))
	p := b.Node(id).FirstPort + PortID(1+rng.IntN(8))
	switch rng.IntN(4) {
	case 0:
		b.RemoveNode(id)
	case 1:
		b.AddNode(Node{GUID: ib.GUID(1000 + round), Type: ib.NodeSwitch, NumPorts: 8})
	case 2:
		if b.Node(id).Type != 0 {
			n := b.Node(id)
			n.Description += "x"
			b.SetNode(id, n)
		}
	default:
		if b.Node(id).Type != 0 {
			port := b.Port(p)
			port.State = ib.PortState(rng.IntN(5))
			b.SetPort(p, port)
		}
	}
}

// TestPagesChanged: every value that differs is visited, and a small change visits
// one page.
func TestPagesChanged(t *testing.T) {
	var own OwnPages[int]
	own.Grow(1000)
	before := own.Snapshot()
	own.Set(300, 1)
	own.Grow(1001)
	now := own.Snapshot()
	got := slices.Collect(now.Changed(&before))
	if !slices.Contains(got, 300) || !slices.Contains(got, 1000) || len(got) > 2*pageSize {
		t.Errorf("visited %v", got)
	}
	if n := len(slices.Collect(now.Changed(&now))); n != 0 {
		t.Errorf("%d visited although nothing changed", n)
	}
}
