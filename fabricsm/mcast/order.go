package mcast

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// maxRoots is how many switches of an island are tried as its only root.
const maxRoots = 16

// maxWithin bounds the memory of a Ground, in words of [within]: an order with
// many roots that is deep as well is passed over.
const maxWithin = 8 << 20

// groundBuilder tries orders of switches.
type groundBuilder struct {
	f      *topo.Fabric
	g      *route.Graph
	waits  *route.Waits // nil: no unicast route shares the lane
	source []int32      // by edge: the switch it leaves
	island [][]int32    // switches
	report []Island

	pos  []int32 // by switch: place in the order that is tried
	able []bool  // by switch: it forwards multicast at all
	up   []bool  // by edge: leads up, as chosen so far
	tree []bool  // by edge: belongs to the spanning tree that is tried
}

func newGroundBuilder(f *topo.Fabric, g *route.Graph, waits *route.Waits) *groundBuilder {
	n := len(g.IDs)
	b := &groundBuilder{
		f: f, g: g, waits: waits, source: make([]int32, len(g.To)), pos: make([]int32, n), able: make([]bool, n),
		up: make([]bool, len(g.To)), tree: make([]bool, len(g.To)),
	}
	seen := make([]bool, n)
	for s := range int32(n) {
		b.able[s] = f.Node(g.IDs[s]).MulticastFDBCap > 0
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			b.source[e] = s
		}
		if !seen[s] {
			b.island = append(b.island, b.walk([]int32{s}, seen))
		}
	}
	return b
}

// walk gives some switches and all that they are connected with, nearest first.
func (b *groundBuilder) walk(from []int32, seen []bool) []int32 {
	order := slices.Clone(from)
	for _, s := range from {
		seen[s] = true
	}
	for i := 0; i < len(order); i++ {
		for _, v := range b.g.To[b.g.Row[order[i]]:b.g.Row[order[i]+1]] {
			if !seen[v] {
				seen[v] = true
				order = append(order, v)
			}
		}
	}
	return order
}

// choose decides for every island what leads up.
func (b *groundBuilder) choose() error {
	var err error
	for _, island := range b.island {
		is := Island{Switches: len(island), Order: "none", Tops: len(island)}
		if len(island) > 1 && !b.chooseOne(island, &is) {
			err = fmt.Errorf("around switch %v: %w", b.g.GUID(island[0]), ErrNoSafeTree)
		}
		b.report = append(b.report, is)
	}
	return err
}

// chooseOne tries orders for an island until one is right and has a root above
// all switches with hosts, or else takes the first that is right.
func (b *groundBuilder) chooseOne(island []int32, is *Island) bool {
	var spare []int32 // the order of the first that is right and not whole
	roots := b.roots(island)
	levels := b.levels(island)
	if b.number(levels); b.right(island) && b.shallow(island) {
		is.Order, is.Tops, is.Whole = "levels", b.topsOf(island), b.whole(island)
		if is.Whole {
			b.leadUp(island)
			return true
		}
		spare = levels
	}
	for _, r := range roots {
		if b.number(b.walk([]int32{r}, make([]bool, len(b.pos)))); b.right(island) {
			is.Order, is.Tops, is.Whole = fmt.Sprintf("distance from %v", b.g.GUID(r)), b.topsOf(island), true
			b.leadUp(island)
			return true
		}
	}
	for _, r := range roots {
		if b.grow(island, r); b.treeRight(island) {
			is.Order, is.Tops, is.Whole = fmt.Sprintf("one tree from %v", b.g.GUID(r)), 1, true
			return true
		}
	}
	b.leadNowhere(island)
	if spare == nil {
		return false
	}
	b.number(spare)
	b.leadUp(island)
	return true
}

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

// roots gives switches that may be the only root of an island: those that are
// least far from the farthest switch. Of many switches a sample is looked at.
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

// far gives the distance of the switch that is farthest from one.
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

// right reports that the unicast routes of an island and all trees that may
// grow in the order close no circle. That is so if no route goes up after it
// went down: each link up can be numbered by how near to the front of the order
// it leads, and after them each link down by how far, and both routes and trees
// use links by rising numbers only. Where some do, as around a broken cable,
// all turns of routes and of trees are laid together and looked through.
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

// turnsUp reports that some unicast route goes up after it went down.
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

// usable reports that trees may use a link up.
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

// shallow reports that a ground of the order does not take too much memory.
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

// whole reports that one top is above all switches with hosts.
func (b *groundBuilder) whole(island []int32) bool {
	words := (b.topsOf(island) + 63) / 64
	above := make([]uint64, len(b.pos)*words)
	row := func(s int32) []uint64 { return above[int(s)*words : (int(s)+1)*words] }
	all := make([]uint64, words)
	for i := range all {
		all[i] = ^uint64(0)
	}
	tops := 0
	for _, s := range b.inOrder(island) {
		if b.isTop(s) {
			row(s)[tops/64] |= 1 << (tops % 64)
			tops++
		}
		for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
			if b.usable(e) {
				unite(row(s), row(b.g.To[e]))
			}
		}
		if b.g.Hosts[s] > 0 {
			intersect(all, row(s))
		}
	}
	return !isZero(all)
}

func unite(a, b []uint64) {
	for i, w := range b {
		a[i] |= w
	}
}

func intersect(a, b []uint64) {
	for i, w := range b {
		a[i] &= w
	}
}

func isZero(a []uint64) bool {
	for _, w := range a {
		if w != 0 {
			return false
		}
	}
	return true
}

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

// reverse gives the other direction of an edge.
func (b *groundBuilder) reverse(e int32) int32 {
	p := b.f.LinkUp(b.f.PortOf(b.g.IDs[b.source[e]], b.g.Port[e]))
	return b.g.EdgeAt(b.g.To[e], b.f.Port(p).Num)
}

// treeRight reports that the unicast routes and the spanning tree close no
// circle: all links can be taken away one by one, each when none that is left
// waits for it.
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

// drains reports that edges wait for each other in no circle.
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

// weigh gives the weight of a choice for a multicast LID: among equals the
// heaviest is chosen (rendezvous hashing).
func weigh(mlid ib.LID, what uint64) uint64 {
	x := what ^ uint64(mlid)*0x9E3779B97F4A7C15
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}
