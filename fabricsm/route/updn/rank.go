package updn

import (
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/updown"
)

// rank gives the switches in an order in which each, but for the roots, is
// linked to one before it. An island without a listed root gets one.
func rank(g *route.Graph, listed []int32) []int32 {
	return updown.Order(g, listed, func(island []int32) int32 { return pick(g, island) })
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
		nearestFirst := updown.Walk(g, []int32{s}, scratch[:0], hops)
		far := int(hops[nearestFirst[len(nearestFirst)-1]])
		better := hosts && !bestHosts || far < bestFar || far == bestFar && s < best
		if best < 0 || better {
			best, bestFar, bestHosts = s, far, hosts
		}
	}
	return best
}
