// Package turnrule computes the routes that go some links up and then some down, in an order of switches that an engine
// decides. Links used one after the other are ordered too, so no cycle of them can wait for itself.
package turnrule

import (
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
)

// Rules returns rules for an order of all switches, the top first. A link is up if it leads nearer to the front of the
// order. Of several ways up and then down the shortest are allowed. But a switch that reaches the destination by going down
// only does so, also when a way up would be shorter: packets that come from above must not go up again.
//
// Switches from which no such way leads, as from one root to another, send to the nearest switch that has one. If such a
// switch has CAs, the routes may have credit loops, which the checker reports.
func Rules(g *route.Graph, order []int32) func() nexthop.Rule {
	n := len(g.IDs)
	pos := make([]int32, n)
	for i, s := range order {
		pos[s] = int32(i)
	}
	l := sortLinks(g, func(from, to int32) bool { return pos[to] < pos[from] })
	return func() nexthop.Rule {
		f := &field{g: g, order: order, links: l, hops: make([]int32, n), seq: make([]int32, n)}
		return f.choices
	}
}

// links are the links up and down of each switch, as rows of edges in the order of
// ports.
type links struct {
	upRow, downRow []int32
	up, down       []int32
}

func sortLinks(g *route.Graph, isUp func(from, to int32) bool) links {
	n := len(g.IDs)
	l := links{
		upRow: append(make([]int32, 0, n+1), 0), downRow: append(make([]int32, 0, n+1), 0),
		up: make([]int32, 0, len(g.To)/2), down: make([]int32, 0, len(g.To)/2),
	}
	for s := range int32(n) {
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			if isUp(s, g.To[e]) {
				l.up = append(l.up, e)
			} else {
				l.down = append(l.down, e)
			}
		}
		l.upRow, l.downRow = append(l.upRow, int32(len(l.up))), append(l.downRow, int32(len(l.down)))
	}
	return l
}

func (l *links) ups(s int32) []int32 { return l.up[l.upRow[s]:l.upRow[s+1]] }

func (l *links) downs(s int32) []int32 { return l.down[l.downRow[s]:l.downRow[s+1]] }

// field is the working memory of the rule.
type field struct {
	g     *route.Graph
	order []int32 // switches, the top first
	links
	hops []int32 // by switch: length of the route to the destination, -1 without one
	seq  []int32 // by switch: where it stands in the order of the choices
}

// choices fills in the next hops towards a destination.
func (f *field) choices(dest int32, c *nexthop.Choices) {
	for s := range f.hops {
		f.hops[s] = -1
	}
	f.hops[dest] = 0
	c.Order = append(c.Order, dest)
	c.Row = append(c.Row, 0)
	f.descend(c)
	f.ascend(c)
	if len(c.Order) < len(f.order) {
		f.rescue(c)
	}
}

// descend finds all switches from which the destination lies below, nearest first. They
// send down.
func (f *field) descend(c *nexthop.Choices) {
	for i := 0; i < len(c.Order); i++ {
		u := c.Order[i]
		for _, e := range f.ups(u) {
			if v := f.g.To[e]; f.hops[v] < 0 {
				f.hops[v] = f.hops[u] + 1
				c.Order = append(c.Order, v)
			}
		}
	}
	for _, s := range c.Order[1:] {
		nearer := f.hops[s] - 1
		for _, e := range f.downs(s) {
			if f.hops[f.g.To[e]] == nearer {
				c.Edge = append(c.Edge, e)
			}
		}
		c.Row = append(c.Row, int32(len(c.Edge)))
	}
}

// ascend adds the switches that must go up first. In the order from the top
// all switches above one are settled before it.
func (f *field) ascend(c *nexthop.Choices) {
	for _, s := range f.order {
		if f.hops[s] >= 0 {
			continue
		}
		first, least := len(c.Edge), int32(-1)
		for _, e := range f.ups(s) {
			h := f.hops[f.g.To[e]]
			if h < 0 || least >= 0 && h > least {
				continue
			}
			if h != least {
				least, c.Edge = h, c.Edge[:first]
			}
			c.Edge = append(c.Edge, e)
		}
		if least >= 0 {
			f.hops[s] = least + 1
			c.Order = append(c.Order, s)
			c.Row = append(c.Row, int32(len(c.Edge)))
		}
	}
}

// rescue adds the switches from which neither leads there, by turns: in one
// turn all that are next to a switch that has a route already. They go to the ones
// before them that are nearest.
func (f *field) rescue(c *nexthop.Choices) {
	for i, s := range c.Order {
		f.seq[s] = int32(i)
	}
	first := len(c.Order)
	for known := -1; known < len(c.Order) && len(c.Order) < len(f.order); {
		known = len(c.Order)
		for _, s := range f.order {
			if f.hops[s] < 0 && f.rescueOne(s, int32(known)) {
				f.seq[s] = int32(len(c.Order))
				c.Order = append(c.Order, s)
			}
		}
	}
	for _, s := range c.Order[first:] {
		for e := f.g.Row[s]; e < f.g.Row[s+1]; e++ {
			if to := f.g.To[e]; f.hops[to] >= 0 && f.hops[to] == f.hops[s]-1 && f.seq[to] < f.seq[s] {
				c.Edge = append(c.Edge, e)
			}
		}
		c.Row = append(c.Row, int32(len(c.Edge)))
	}
}

// rescueOne looks for the neighbour with the shortest route among those that
// had one before this turn.
func (f *field) rescueOne(s, known int32) bool {
	least := int32(-1)
	for _, v := range f.g.To[f.g.Row[s]:f.g.Row[s+1]] {
		if h := f.hops[v]; h >= 0 && f.seq[v] < known && (least < 0 || h < least) {
			least = h
		}
	}
	if least >= 0 {
		f.hops[s] = least + 1
	}
	return least >= 0
}
