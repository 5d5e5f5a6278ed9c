package minhop

import (
	"fmt"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/routetest"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestWorstLink holds the balance on the fabrics that the project measures
// with. If all CAs send to all, a leaf of a fat tree with full bisection has as
// many links up as hosts, and each carries at least one host's share: a route
// to every host elsewhere.
func TestWorstLink(t *testing.T) {
	tests := []struct {
		name  string
		kit   *topotest.Kit
		worst int64
		hops  int
	}{
		{"one switch", topotest.Single(36, 36), 0, 0},
		{"two levels, 36 hosts", topotest.FatTree2(36, 36), 36 - 18, 2},
		{"two levels, 324 hosts", topotest.FatTree2(324, 36), 324 - 18, 2},
		{"two levels, 648 hosts", topotest.FatTree2(648, 36), 648 - 18, 2},
		{"three levels, 1944 hosts", topotest.FatTree3(1944, 36), 1944 - 18, 4},
		{"three levels, 432 hosts on 12 ports", topotest.FatTree3(432, 12), 432 - 6, 4},
		{"chain of 20", topotest.Chain(20, 1), 10 * 10, 19},
		{"host on two leaves", topotest.DualPort(), 2 * 2, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, r := routetest.Must(t, Engine{}, tt.kit.Fabric(), nil)
			if r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("worst link %d routes, longest route %d hops; want %d and %d", r.WorstLoad, r.MaxHops, tt.worst, tt.hops)
			}
		})
	}
}

// BenchmarkManyLIDs routes 42,948 LIDs: 10,368 hosts with four each.
func BenchmarkManyLIDs(b *testing.B) {
	k := topotest.FatTree3(10368, 36)
	for _, h := range k.Hosts {
		k.SetLMC(h, 1, 2)
	}
	for id := range topo.NodeID(k.NumNodes()) {
		n := k.Node(id)
		n.LinearFDBCap = uint16(ib.MaxUnicastLID) + 1
		k.SetNode(id, n)
	}
	f := k.Fabric()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Engine{}).Route(f, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	for _, hosts := range []int{1944, 10368} {
		f := topotest.FatTree3(hosts, 36).Fabric()
		tables, err := Engine{}.Route(f, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("fresh/hosts=%d", hosts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (Engine{}).Route(f, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("keep/hosts=%d", hosts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (Engine{}).Route(f, tables); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("check/hosts=%d", hosts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := route.Check(f, tables).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
