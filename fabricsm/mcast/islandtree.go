package mcast

import "portcullis/fabricsm/route"

// leadUp takes the order for an island.
func (b *groundBuilder) leadUp(island []int32) {
	for _, s := range island {
		for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
			b.up[e] = b.usable(e)
		}
	}
}

func (b *groundBuilder) leadNowhere(island []int32) {
	for _, s := range island {
		for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
			b.up[e] = false
		}
	}
}

// grow lets one spanning tree with a given root lead up, and nothing else.
func (b *groundBuilder) grow(island []int32, root int32) {
	b.leadNowhere(island)
	for _, s := range island {
		for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
			b.tree[e] = false
		}
	}
	seen := make([]bool, len(b.pos))
	seen[root] = true
	order := []int32{root}
	for i := 0; i < len(order); i++ {
		u := order[i]
		for e := b.g.Row[u]; e < b.g.Row[u+1]; e++ {
			v := b.g.To[e]
			if seen[v] || !b.able[u] || !b.able[v] {
				continue
			}
			seen[v] = true
			order = append(order, v)
			back := b.reverse(e)
			b.tree[e], b.tree[back], b.up[back] = true, true, true
		}
	}
}

// reverse returns the other direction of an edge.
func (b *groundBuilder) reverse(e int32) int32 {
	p := b.f.LinkUp(b.f.PortOf(b.g.IDs[b.source[e]], b.g.Port[e]))
	return b.g.EdgeAt(b.g.To[e], b.f.Port(p).Num)
}

// treeRight reports whether the unicast routes and the spanning tree close no cycle: all links can be removed one by one,
// each when no remaining link waits for it.
func (b *groundBuilder) treeRight(island []int32) bool {
	if b.waits == nil {
		return true
	}
	return drains(b.g, b.edges(island), func(e int32, visit func(int32)) {
		b.waits.Each(e, visit)
		if !b.tree[e] {
			return
		}
		back := b.reverse(e)
		for next := b.g.Row[b.g.To[e]]; next < b.g.Row[b.g.To[e]+1]; next++ {
			if b.tree[next] && next != back {
				visit(next)
			}
		}
	})
}

func (b *groundBuilder) edges(island []int32) (edges []int32) {
	for _, s := range island {
		for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
			edges = append(edges, e)
		}
	}
	return edges
}

// drains reports whether there is no cycle of edges that wait for each other.
func drains(g *route.Graph, edges []int32, each func(e int32, visit func(next int32))) bool {
	waiting := make([]int32, len(g.To))
	for _, e := range edges {
		each(e, func(next int32) { waiting[next]++ })
	}
	var free []int32
	for _, e := range edges {
		if waiting[e] == 0 {
			free = append(free, e)
		}
	}
	left := len(edges)
	for len(free) > 0 {
		e := free[len(free)-1]
		free = free[:len(free)-1]
		left--
		each(e, func(next int32) {
			if waiting[next]--; waiting[next] == 0 {
				free = append(free, next)
			}
		})
	}
	return left == 0
}
