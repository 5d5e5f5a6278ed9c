package torus_test

import (
	"fmt"
	"testing"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

var (
	ring3 = [3]bool{true, true, true}
	open3 = [3]bool{}
)

func mustRoute(t testing.TB, f *topo.Fabric, prev *route.Tables, e torus.Engine) (*route.Tables, route.Report) {
	t.Helper()
	tables, err := e.Route(f, prev)
	if err != nil {
		t.Fatal(err)
	}
	r := route.Check(f, tables)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return tables, r
}

// TestGolden holds lanes, balance and length of routes of whole tori, which are
// recognised by their cables alone.
func TestGolden(t *testing.T) {
	tests := []struct {
		radix [3]int
		wrap  [3]bool
		lanes int // that are enough
		worst int64
		hops  int
	}{
		{[3]int{1, 1, 1}, open3, 1, 0, 0},
		{[3]int{12, 1, 1}, ring3, 2, 76, 6},
		{[3]int{5, 5, 1}, ring3, 2, 60, 4},
		{[3]int{4, 4, 1}, ring3, 2, 48, 4},
		{[3]int{6, 4, 1}, ring3, 2, 80, 5},
		{[3]int{8, 8, 1}, ring3, 2, 288, 8},
		{[3]int{3, 3, 3}, ring3, 1, 36, 3},
		{[3]int{5, 4, 3}, ring3, 2, 180, 5},
		{[3]int{4, 4, 4}, ring3, 2, 192, 6},
		{[3]int{5, 4, 1}, open3, 1, 96, 7},
		{[3]int{3, 3, 4}, open3, 1, 144, 7},
		{[3]int{6, 3, 3}, [3]bool{true, false, true}, 2, 180, 6},
		{[3]int{2, 5, 1}, [3]bool{false, true, false}, 2, 24, 3},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.radix, tt.wrap), func(t *testing.T) {
			f := topotest.Grid(tt.radix, tt.wrap, 2).Fabric()
			if tt.lanes > 1 {
				if _, err := (torus.Engine{Lanes: tt.lanes - 1}).Route(f, nil); err == nil {
					t.Errorf("%d lanes are enough", tt.lanes-1)
				}
			}
			_, r := mustRoute(t, f, nil, torus.Engine{Lanes: tt.lanes})
			if r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("worst link %d routes, longest %d hops; want %d and %d", r.WorstLoad, r.MaxHops, tt.worst, tt.hops)
			}
			mustRoute(t, f, nil, torus.Engine{Lanes: 8})
		})
	}
}

// TestLosses: with any one switch, or any one link of each of some rings, gone,
// everything is reached on four lanes, and no service level changes.
func TestLosses(t *testing.T) {
	for _, radix := range [][3]int{{5, 4, 1}, {6, 6, 1}, {4, 4, 3}, {5, 3, 4}} {
		n := radix[0] * radix[1] * radix[2]
		k := topotest.Grid(radix, ring3, 1)
		whole, _ := mustRoute(t, k.Fabric(), nil, torus.Engine{Lanes: 4})
		for i := range n {
			t.Run(fmt.Sprint(radix, "switch ", i), func(t *testing.T) {
				k := topotest.Grid(radix, ring3, 1)
				k.Fabric()
				k.Remove(topo.NodeID(i))
				f := k.Freeze()
				after, _ := mustRoute(t, f, whole, torus.Engine{Lanes: 4})
				sameLevels(t, f, whole, after)
			})
			for dim := range 3 {
				if radix[dim] == 1 {
					continue
				}
				t.Run(fmt.Sprint(radix, "link ", i, dim), func(t *testing.T) {
					k := topotest.Grid(radix, ring3, 1)
					k.Fabric()
					k.Cut(topo.NodeID(i), 2*dim+1)
					k.Cut(topo.NodeID((i+n/2+1)%n), 2*((dim+1)%3)+1)
					f := k.Freeze()
					after, _ := mustRoute(t, f, whole, torus.Engine{Lanes: 4})
					sameLevels(t, f, whole, after)
				})
			}
		}
	}
}

// TestColdStart: a torus that lost a switch or links before this manager saw it
// is recognised too.
func TestColdStart(t *testing.T) {
	for _, radix := range [][3]int{{5, 4, 1}, {6, 6, 1}, {4, 4, 3}, {5, 3, 4}} {
		for i := range radix[0] * radix[1] * radix[2] {
			t.Run(fmt.Sprint(radix, "switch ", i), func(t *testing.T) {
				k := topotest.Grid(radix, ring3, 1)
				k.Fabric()
				k.Remove(topo.NodeID(i))
				mustRoute(t, k.Freeze(), nil, torus.Engine{Lanes: 4})
			})
			t.Run(fmt.Sprint(radix, "links of ", i), func(t *testing.T) {
				k := topotest.Grid(radix, ring3, 1)
				k.Cut(topo.NodeID(i), 1)
				k.Cut(topo.NodeID(i), 4)
				mustRoute(t, k.Fabric(), nil, torus.Engine{Lanes: 4})
			})
		}
	}
}

func sameLevels(t *testing.T, f *topo.Fabric, a, b *route.Tables) {
	t.Helper()
	for i, x := range f.Switches() {
		for _, y := range f.Switches()[:i] {
			if a.PairSL(x, y) != b.PairSL(x, y) {
				t.Fatalf("switches %v and %v: service level %d became %d", f.Node(x).GUID, f.Node(y).GUID, a.PairSL(x, y), b.PairSL(x, y))
			}
		}
	}
}
