package mcast

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

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

// walk returns some switches and all switches connected with them, nearest first.
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
