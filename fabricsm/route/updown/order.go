package updown

import (
	"slices"

	"portcullis/fabricsm/route"
)

// Order gives all switches in an order in which each, but for the roots, is
// linked to one before it: by distance from the nearest root, island by island.
// pick gives the root of an island, whose switches it is told, without any of
// the listed ones.
func Order(g *route.Graph, listed []int32, pick func(island []int32) int32) []int32 {
	n := len(g.IDs)
	order, ranked := make([]int32, 0, n), make([]bool, n)
	isRoot := make([]bool, n)
	for _, r := range listed {
		isRoot[r] = true
	}
	island := make([]int32, 0, n)
	for s := range int32(n) {
		if ranked[s] {
			continue
		}
		island = Walk(g, []int32{s}, island[:0], make([]int32, n))
		var roots []int32
		for _, v := range island {
			ranked[v] = true
			if isRoot[v] {
				roots = append(roots, v)
			}
		}
		if len(roots) == 0 {
			roots = append(roots, pick(island))
		}
		slices.Sort(roots)
		order = Walk(g, roots, order, make([]int32, n))
	}
	return order
}

// Walk appends some switches and all that they are connected with to order,
// nearest first. hops must be 0 for all of them; it is left holding the
// distances plus one.
func Walk(g *route.Graph, from, order, hops []int32) []int32 {
	first := len(order)
	for _, s := range from {
		hops[s] = 1
	}
	order = append(order, from...)
	for i := first; i < len(order); i++ {
		u := order[i]
		for _, v := range g.To[g.Row[u]:g.Row[u+1]] {
			if hops[v] == 0 {
				hops[v] = hops[u] + 1
				order = append(order, v)
			}
		}
	}
	return order
}
