package turnrule

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/route"
)

// Order returns all switches in an order in which each, except the roots, is linked to one before it: by distance from the
// nearest root, island by island. pick gets the switches of an island without any of the listed roots, and returns its
// root.
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

// Places returns the position of each switch in an order, by topo.NodeID, -1 for a node that is no switch. With the same
// places, a lost link changes only the choices of the link itself, see [nexthop.Plan].
func Places(g *route.Graph, order []int32) []int32 {
	places := make([]int32, len(g.Num))
	for id := range places {
		places[id] = -1
	}
	for i, s := range order {
		places[g.IDs[s]] = int32(i)
	}
	return places
}

// Kept returns the order of the last whole routing, or else that of prev, and its unchanged places, if the order is still
// valid. In a valid order every switch has a place and is linked to one before it, except the listed roots and one root of
// each island without any. The listed roots must be on top of their islands. Otherwise ok is false. So a lost link does not
// reverse other links.
func Kept(g *route.Graph, engine string, prev *route.Tables, listed []int32) (order, places []int32, ok bool) {
	notes := prev.Notes()
	if notes == nil || prev.Engine != engine {
		return nil, nil, false
	}
	for _, basis := range [][]int32{notes.First, notes.Basis} {
		if order, places = sorted(g, basis); order != nil && holds(g, order, listed) {
			return order, places, true
		}
	}
	return nil, nil, false
}

// sorted returns the order of switches by their places in a basis, nil if a switch has none.
func sorted(g *route.Graph, basis []int32) (order, places []int32) {
	places = Places(g, nil)
	order = make([]int32, len(g.IDs))
	for s, id := range g.IDs {
		if int(id) >= len(basis) || basis[id] < 0 {
			return nil, nil
		}
		order[s], places[id] = int32(s), basis[id]
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(places[g.IDs[a]], places[g.IDs[b]]) })
	return order, places
}

// holds reports whether an order is one that [Order] could have given.
func holds(g *route.Graph, order, listed []int32) bool {
	isRoot := make([]bool, len(order))
	for _, s := range listed {
		isRoot[s] = true
	}
	island, sizes := islandsOf(g)
	rooted := make([]bool, len(sizes)) // by island: it has a top
	lower := make([]bool, len(sizes))  // by island: some other was seen
	for _, s := range listed {
		rooted[island[s]] = true
	}
	seen := make([]bool, len(order))
	for _, s := range order {
		i, under := island[s], false
		for _, v := range g.To[g.Row[s]:g.Row[s+1]] {
			under = under || seen[v]
		}
		seen[s] = true
		switch {
		case isRoot[s]:
			if lower[i] {
				return false
			}
		case under:
			lower[i] = true
		case rooted[i]:
			return false
		default:
			rooted[i] = true
		}
	}
	return true
}
