package updn

import (
	"cmp"
	"math"
	"slices"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/turnrule"
)

// rank returns the switches in an order in which each, except the roots, is linked to one before it. An island without a
// listed root gets one.
func rank(g *route.Graph, listed []int32) []int32 {
	return turnrule.Order(g, listed, func(island []int32) int32 { return pick(g, island) })
}

// byID puts the switches of an order that are equally far from the roots into
// the order of their numbers.
func (e Engine) byID(g *route.Graph, listed, order []int32) []int32 {
	if len(e.IDs) == 0 {
		return order
	}
	far := make([]int, len(order)) // by switch: links from the roots, plus one
	for _, s := range listed {
		far[s] = 1
	}
	for _, s := range order {
		if far[s] > 0 {
			continue
		}
		for _, v := range g.To[g.Row[s]:g.Row[s+1]] {
			if far[v] > 0 && (far[s] == 0 || far[v] < far[s]) {
				far[s] = far[v]
			}
		}
		far[s]++
	}
	id := func(s int32) int {
		if n, ok := e.IDs[g.GUID(s)]; ok {
			return n
		}
		return math.MaxInt
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(far[a], far[b]), cmp.Compare(id(a), id(b)))
	})
	return order
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
		nearestFirst := turnrule.Walk(g, []int32{s}, scratch[:0], hops)
		far := int(hops[nearestFirst[len(nearestFirst)-1]])
		better := hosts && !bestHosts || far < bestFar || far == bestFar && s < best
		if best < 0 || better {
			best, bestFar, bestHosts = s, far, hosts
		}
	}
	return best
}
