package torus_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/routetest"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

var (
	ring3 = [3]bool{true, true, true}
	open3 = [3]bool{}
)

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
			_, r := routetest.Must(t, torus.Engine{Lanes: tt.lanes}, f, nil)
			if r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("worst link %d routes, longest %d hops; want %d and %d", r.WorstLoad, r.MaxHops, tt.worst, tt.hops)
			}
			routetest.Must(t, torus.Engine{Lanes: 8}, f, nil)
		})
	}
}

// TestLosses: with any one switch, or any one link of each of some rings, gone,
// everything is reached on four lanes, and no service level changes.
func TestLosses(t *testing.T) {
	for _, radix := range [][3]int{{5, 4, 1}, {6, 6, 1}, {4, 4, 3}, {5, 3, 4}} {
		n := radix[0] * radix[1] * radix[2]
		k := topotest.Grid(radix, ring3, 1)
		whole, _ := routetest.Must(t, torus.Engine{Lanes: 4}, k.Fabric(), nil)
		for i := range n {
			t.Run(fmt.Sprint(radix, "switch ", i), func(t *testing.T) {
				k := topotest.Grid(radix, ring3, 1)
				k.Fabric()
				k.Remove(topo.NodeID(i))
				f := k.Freeze()
				after, _ := routetest.Must(t, torus.Engine{Lanes: 4}, f, whole)
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
					after, _ := routetest.Must(t, torus.Engine{Lanes: 4}, f, whole)
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
				routetest.Must(t, torus.Engine{Lanes: 4}, k.Freeze(), nil)
			})
			t.Run(fmt.Sprint(radix, "links of ", i), func(t *testing.T) {
				k := topotest.Grid(radix, ring3, 1)
				k.Cut(topo.NodeID(i), 1)
				k.Cut(topo.NodeID(i), 4)
				routetest.Must(t, torus.Engine{Lanes: 4}, k.Fabric(), nil)
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

// TestRandomChanges cuts cables, puts them back, and adds second ones next to others: the checker accepts the tables of the
// engine, and service levels stay while the torus is known.
func TestRandomChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
		radix := [3]int{3 + draw(3), 2 + draw(3), 1 + draw(2)}
		k := topotest.Grid(radix, [3]bool{draw(1) == 0, draw(1) == 0, true}, 2)
		n := radix[0] * radix[1] * radix[2]
		var prev *route.Tables
		cut := make(map[topo.PortID]topo.PortID)
		for range 6 {
			f := k.Fabric()
			tables, err := torus.Engine{Lanes: 4}.Route(f, prev)
			switch {
			case err == nil:
				if err := route.Check(f, tables).Err(); err != nil && !strings.Contains(err.Error(), "credit loop") {
					t.Fatal(err)
				} else if len(cut) < 2 && err != nil {
					t.Fatalf("with %d cables lost: %v", len(cut), err)
				}
				prev = tables
			case prev == nil && len(cut) == 0:
				t.Fatal(err)
			case len(cut) == 1 && prev != nil && radix[0]*radix[1]*radix[2] == n && strings.Contains(err.Error(), "no place"):
				t.Fatalf("one cable lost: %v", err)
			}
			sw := topo.NodeID(draw(n - 1))
			switch id := k.PortOf(sw, ib.PortNum(1+draw(5))); {
			case k.Port(id).Peer != topo.None && draw(2) > 0:
				cut[id] = k.Port(id).Peer
				k.Disconnect(id)
			case k.Port(id).Peer != topo.None: // a second cable, in place of two hosts
				other := k.Port(k.Port(id).Peer).Node
				for _, s := range []topo.NodeID{sw, other} {
					k.Cut(s, 7)
				}
				k.LinkPorts(sw, 7, other, 7)
			case cut[id] != 0 && k.Port(cut[id]).Peer == topo.None:
				k.Connect(id, cut[id])
				delete(cut, id)
			}
		}
	})
}

// BenchmarkRoute is a torus of 4,096 hosts, routed and judged.
func BenchmarkRoute(b *testing.B) {
	f := topotest.Grid([3]int{16, 8, 8}, ring3, 4).Fabric()
	e := torus.Engine{Lanes: 4}
	tables, err := e.Route(f, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("route", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.Route(f, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := route.Check(f, tables).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
