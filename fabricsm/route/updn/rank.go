package updn

import "portcullis/fabricsm/route"

// rank gives the switches in an order in which each, but for one root in every
// island, is linked to one before it: by distance from the root.
func rank(g *route.Graph) []int32 {
	n := len(g.IDs)
	order, ranked := make([]int32, 0, n), make([]bool, n)
	island := make([]int32, 0, n)
	for s := range int32(n) {
		if ranked[s] {
			continue
		}
		island, _ = walk(g, s, island[:0], make([]int32, n))
		start := len(order)
		order, _ = walk(g, root(g, island), order, make([]int32, n))
		for _, v := range order[start:] {
			ranked[v] = true
		}
	}
	return order
}

// root picks the root of an island: a switch with hosts before one without,
// then the least far from the farthest switch, then the lowest GUID.
func root(g *route.Graph, island []int32) int32 {
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
		_, far := walk(g, s, scratch[:0], hops)
		better := hosts && !bestHosts || far < bestFar || far == bestFar && s < best
		if best < 0 || better {
			best, bestFar, bestHosts = s, far, hosts
		}
	}
	return best
}

// walk appends a switch and all that it is connected with to order, nearest
// first, and gives the distance of the farthest. hops must be 0 for all of
// them; it is left holding the distances plus one.
func walk(g *route.Graph, from int32, order, hops []int32) ([]int32, int) {
	hops[from] = 1
	order = append(order, from)
	for i := len(order) - 1; i < len(order); i++ {
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
