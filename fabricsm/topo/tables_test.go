package topo_test

import (
	"testing"

	"portcullis/fabricsm/topo"
)

// TestExtend: elements stay, new ones are zero, a table never shrinks, and a large fabric does not grow step by step.
func TestExtend(t *testing.T) {
	s := topo.ExtendNodes([]int{5, 6}, 3)
	if len(s) != 3 || s[0] != 5 || s[1] != 6 || s[2] != 0 {
		t.Errorf("%v, want 5, 6, 0", s)
	}
	if s = topo.ExtendNodes(s, 1); len(s) != 3 {
		t.Errorf("%d elements after 1 was asked for, want 3", len(s))
	}
	for name, extend := range map[string]func([]int, int) []int{"nodes": topo.ExtendNodes[int], "ports": topo.ExtendPorts[int]} {
		var s []int
		allocations := 0
		for n := 1; n <= 10_000; n++ {
			before := cap(s)
			if s = extend(s, n); cap(s) != before {
				allocations++
			}
		}
		if len(s) != 10_000 || allocations > 25 {
			t.Errorf("%s: %d elements with %d allocations, want 10000 with 25 at most", name, len(s), allocations)
		}
	}
}
