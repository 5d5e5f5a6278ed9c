package updn

import (
	"testing"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo/topotest"
)

// TestGolden holds that up-down routing of regular fabrics is
// as short and as even as shortest paths, and what it costs elsewhere.
func TestGolden(t *testing.T) {
	tests := []struct {
		name  string
		kit   *topotest.Kit
		worst int64
		hops  int
	}{
		{"one switch", topotest.Single(4, 36), 0, 0},
		{"two levels, 324 hosts", topotest.FatTree2(324, 36), 324 - 18, 2},
		{"three levels, 1944 hosts", topotest.FatTree3(1944, 36), 1944 - 18, 4},
		{"chain of 20", topotest.Chain(20, 1), 10 * 10, 19},
		{"ring of 6", topotest.Torus(6, 1, 1), 7, 4},
		{"torus 4x4", topotest.Torus(4, 4, 1), 20, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.kit.Fabric()
			tables, err := Engine{}.Route(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := route.Check(f, tables)
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
			if r.WorstLoad != tt.worst || r.MaxHops != tt.hops {
				t.Errorf("worst link %d routes, longest route %d hops; want %d and %d", r.WorstLoad, r.MaxHops, tt.worst, tt.hops)
			}
		})
	}
}
