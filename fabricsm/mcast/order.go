package mcast

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
)

// maxRoots is how many switches of an island are tried as its only root.
const maxRoots = 16

// maxWithin bounds the memory of a Ground, in words of [within]: an order with
// many roots that is deep as well is passed over.
const maxWithin = 8 << 20

// number puts switches into an order.
func (b *groundBuilder) number(order []int32) {
	for i, s := range order {
		b.pos[s] = int32(i)
	}
}

// levels orders switches by how far they are from hosts, the farthest first.
func (b *groundBuilder) levels(island []int32) []int32 {
	var leaves []int32
	for _, s := range island {
		if b.g.Hosts[s] > 0 {
			leaves = append(leaves, s)
		}
	}
	if len(leaves) == 0 {
		leaves = island[:1]
	}
	slices.Sort(leaves)
	height := make([]int32, len(b.pos))
	seen := make([]bool, len(b.pos))
	order := b.walk(leaves, seen)
	for _, s := range order {
		height[s] = -1
	}
	for _, s := range leaves {
		height[s] = 0
	}
	for _, s := range order {
		for _, v := range b.g.To[b.g.Row[s]:b.g.Row[s+1]] {
			if height[v] < 0 {
				height[v] = height[s] + 1
			}
		}
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Or(cmp.Compare(height[y], height[x]), cmp.Compare(x, y)) })
	return order
}

// roots returns switches that may be the only root of an island: those that are least far from the farthest switch. In a
// large island it examines a sample.
func (b *groundBuilder) roots(island []int32) []int32 {
	sorted := slices.Sorted(slices.Values(island))
	step := 1 + len(sorted)/(4*maxRoots)
	type candidate struct{ s, far int32 }
	var all []candidate
	for i := 0; i < len(sorted); i += step {
		all = append(all, candidate{sorted[i], b.far(sorted[i])})
	}
	slices.SortStableFunc(all, func(x, y candidate) int { return cmp.Compare(x.far, y.far) })
	var roots []int32
	for _, c := range all[:min(maxRoots, len(all))] {
		roots = append(roots, c.s)
	}
	return roots
}

// far returns the distance from a switch to the farthest one.
func (b *groundBuilder) far(s int32) int32 {
	hops := make([]int32, len(b.pos))
	order := b.walk([]int32{s}, make([]bool, len(b.pos)))
	seen := make([]bool, len(b.pos))
	seen[s] = true
	for _, u := range order {
		for _, v := range b.g.To[b.g.Row[u]:b.g.Row[u+1]] {
			if !seen[v] {
				seen[v], hops[v] = true, hops[u]+1
			}
		}
	}
	return hops[order[len(order)-1]]
}

func (b *groundBuilder) leads(e int32) bool { return b.pos[b.g.To[e]] < b.pos[b.source[e]] }

// right reports whether the unicast routes of an island and all trees that may grow in the order close no cycle. That is so
// if no route goes up after it went down. Then each link up can be numbered by how near to the front of the order it leads,
// and after them each link down by how far, and both routes and trees use links by rising numbers only. If some routes do,
// as around a broken cable, all turns of routes and of trees are checked together.
func (b *groundBuilder) right(island []int32) bool {
	return b.waits == nil || !b.turnsUp(island) || drains(b.g, b.edges(island), func(e int32, visit func(int32)) {
		b.waits.Each(e, visit)
		up, to := b.leads(e), b.g.To[e]
		for next := b.g.Row[to]; next < b.g.Row[to+1]; next++ {
			if b.g.To[next] != b.source[e] && (up || !b.leads(next)) {
				visit(next)
			}
		}
	})
}

// turnsUp reports whether some unicast route goes up after it went down.
func (b *groundBuilder) turnsUp(island []int32) (turns bool) {
	for _, e := range b.edges(island) {
		if b.leads(e) {
			continue
		}
		if b.waits.Each(e, func(next int32) { turns = turns || b.leads(next) }); turns {
			return true
		}
	}
	return false
}

// usable reports whether trees may use a link up.
func (b *groundBuilder) usable(e int32) bool {
	return b.leads(e) && b.able[b.g.To[e]] && b.able[b.source[e]]
}

func (b *groundBuilder) isTop(s int32) bool {
	for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
		if b.usable(e) {
			return false
		}
	}
	return true
}

func (b *groundBuilder) topsOf(island []int32) (n int) {
	for _, s := range island {
		if b.isTop(s) {
			n++
		}
	}
	return n
}

// shallow reports whether a ground of the order does not take too much memory.
func (b *groundBuilder) shallow(island []int32) bool {
	depth := make([]int32, len(b.pos))
	deepest := int32(0)
	for _, s := range b.inOrder(island) {
		for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
			if b.usable(e) {
				depth[s] = max(depth[s], depth[b.g.To[e]]+1)
			}
		}
		deepest = max(deepest, depth[s])
	}
	return (b.topsOf(island)+63)/64*int(deepest+2)*len(b.pos) <= maxWithin
}

func (b *groundBuilder) inOrder(island []int32) []int32 {
	order := slices.Clone(island)
	slices.SortFunc(order, func(x, y int32) int { return cmp.Compare(b.pos[x], b.pos[y]) })
	return order
}

// weigh returns the weight of a choice for a multicast LID. Among equals the heaviest is chosen (rendezvous hashing).
func weigh(mlid ib.LID, what uint64) uint64 {
	x := what ^ uint64(mlid)*0x9E3779B97F4A7C15
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}
