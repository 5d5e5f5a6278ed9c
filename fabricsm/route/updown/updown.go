// Package updown gives the routes that go some links up and then some down, in
// an order of switches that an engine decides. Links used one after the other
// are ordered too, so no circle of them can wait for itself.
package updown

import (
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/spread"
)

// Rules gives rules for an order of all switches, the top first. A link is up
// if it leads nearer to the front of the order. Of several ways up and then
// down the shortest are allowed, but a switch that reaches the destination
// going down only does so, also when a way up would be shorter: what comes to
// it from above must not go up again.
//
// Switches from which no such way leads, as from one root to another, go to
// the nearest switch that has one. If such a switch has CAs, the routes need
// not be free of credit loops; the checker tells.
func Rules(g *route.Graph, order []int32) func() spread.Rule {
	n := len(g.IDs)
	pos := make([]int32, n)
	for i, s := range order {
		pos[s] = int32(i)
	}
	return func() spread.Rule {
		f := &field{g: g, order: order, pos: pos, hops: make([]int32, n), kind: make([]kind, n), seq: make([]int32, n)}
		return f.choices
	}
}

// kind is how the route of a switch to the destination begins.
type kind uint8

const (
	none kind = iota // there is no route yet
	down             // it goes down only
	up               // it goes up first
	lost             // neither leads there
)

// field is what the rule works on.
type field struct {
	g     *route.Graph
	order []int32 // switches, the top first
	pos   []int32 // by switch: where it stands in order
	hops  []int32 // by switch: length of the route to the destination
	kind  []kind  // by switch
	seq   []int32 // by switch: where it stands in the order of the choices
}

// choices fills in the next hops towards a destination.
func (f *field) choices(dest int32, c *spread.Choices) {
	clear(f.kind)
	f.kind[dest], f.hops[dest] = down, 0
	c.Order = append(c.Order, dest)
	f.descend(c)
	f.ascend(c)
	for i, s := range c.Order {
		f.seq[s] = int32(i)
	}
	f.rescue(c)
	c.Row = append(c.Row, 0)
	for _, s := range c.Order[1:] {
		for e := f.g.Row[s]; e < f.g.Row[s+1]; e++ {
			if to := f.g.To[e]; f.kind[to] != none && f.hops[to] == f.hops[s]-1 && f.allowed(s, to) {
				c.Edge = append(c.Edge, e)
			}
		}
		c.Row = append(c.Row, int32(len(c.Edge)))
	}
}

// allowed reports whether a switch may send to a neighbour that is nearer.
func (f *field) allowed(s, to int32) bool {
	switch f.kind[s] {
	case down:
		return f.pos[to] > f.pos[s] && f.kind[to] == down
	case up:
		return f.pos[to] < f.pos[s] && f.kind[to] != lost
	case lost:
		return f.seq[to] < f.seq[s]
	case none:
	}
	return false
}

// descend finds all switches from which the destination lies below, nearest
// first.
func (f *field) descend(c *spread.Choices) {
	for i := 0; i < len(c.Order); i++ {
		u := c.Order[i]
		for _, v := range f.g.To[f.g.Row[u]:f.g.Row[u+1]] {
			if f.kind[v] == none && f.pos[v] < f.pos[u] {
				f.kind[v], f.hops[v] = down, f.hops[u]+1
				c.Order = append(c.Order, v)
			}
		}
	}
}

// ascend adds the switches that must go up first. In the order from the top
// all switches above one are settled before it.
func (f *field) ascend(c *spread.Choices) {
	for _, s := range f.order {
		if f.kind[s] != none {
			continue
		}
		for _, v := range f.g.To[f.g.Row[s]:f.g.Row[s+1]] {
			if f.pos[v] < f.pos[s] && f.kind[v] != none && (f.kind[s] == none || f.hops[v]+1 < f.hops[s]) {
				f.kind[s], f.hops[s] = up, f.hops[v]+1
			}
		}
		if f.kind[s] != none {
			c.Order = append(c.Order, s)
		}
	}
}

// rescue adds the switches from which neither leads there, by turns: in one
// turn all that are next to a switch that has a route already.
func (f *field) rescue(c *spread.Choices) {
	for known := -1; known < len(c.Order) && len(c.Order) < len(f.order); {
		known = len(c.Order)
		for _, s := range f.order {
			if f.kind[s] == none && f.rescueOne(s, int32(known)) {
				f.seq[s] = int32(len(c.Order))
				c.Order = append(c.Order, s)
			}
		}
	}
}

// rescueOne looks for the neighbour with the shortest route among those that
// had one before this turn.
func (f *field) rescueOne(s, known int32) bool {
	for _, v := range f.g.To[f.g.Row[s]:f.g.Row[s+1]] {
		if f.kind[v] != none && f.seq[v] < known && (f.kind[s] == none || f.hops[v]+1 < f.hops[s]) {
			f.kind[s], f.hops[s] = lost, f.hops[v]+1
		}
	}
	return f.kind[s] != none
}
