package updn

import (
	"slices"

	"portcullis/fabricsm/route"
)

// rank gives the switches in an order in which each, but for the roots, is
// linked to one before it: by distance from the nearest root, island by island.
// An island without a listed root gets one.
func rank(g *route.Graph, listed []int32) []int32 {
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
		island, _ = walk(g, []int32{s}, island[:0], make([]int32, n))
		start := len(order)
		order, _ = walk(g, roots(g, island, isRoot), order, make([]int32, n))
		for _, v := range order[start:] {
			ranked[v] = true
		}
	}
	return order
}

// roots gives the listed roots of an island by number, or one that is picked.
func roots(g *route.Graph, island []int32, listed []bool) []int32 {
	var found []int32
	for _, s := range island {
		if listed[s] {
			found = append(found, s)
		}
	}
	slices.Sort(found)
	if len(found) == 0 {
		found = append(found, pick(g, island))
	}
	return found
}

// pick picks the root of an island: a switch with hosts before one without,
// then the least far from the farthest switch, then the lowest GUID.
func pick(g *route.Graph, island []int32) int32 {
	best, bestFar, bestHosts := int32(-1), 0, false
	hops, scratch := make([]int32, len(g.IDs)), make([]int32, 0, len(island))
	for _, s := range island {
		hosts := g.Hosts[s] > 0
		if bestHosts && !hosts {
			continue
		}
		for _, v := range island {
			hops[v] = 0
		}
		_, far := walk(g, []int32{s}, scratch[:0], hops)
		better := hosts && !bestHosts || far < bestFar || far == bestFar && s < best
		if best < 0 || better {
			best, bestFar, bestHosts = s, far, hosts
		}
	}
	return best
}

// walk appends some switches and all that they are connected with to order,
// nearest first, and gives the distance of the farthest. hops must be 0 for all
// of them; it is left holding the distances plus one.
func walk(g *route.Graph, from, order, hops []int32) ([]int32, int) {
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
	return order, int(hops[order[len(order)-1]]) - 1
}
