// Package updn is the routing engine that never lets a packet go up after it
// went down, so that no credit loop can close on any fabric.
//
// Switches are put in an order, from a root downwards by distance. A link is
// up if it leads nearer to the front of the order. Every route is some links
// up and then some down; as the links used one after the other are ordered
// too, no circle of them can wait for itself. The price is that some routes
// are longer than need be, and that links near the root carry more.
//
// The root is a switch that has hosts, if any has, and that is least far from
// the farthest switch. On a fat tree with a leaf for a root every shortest
// path between leaves is allowed, so that nothing is lost there.
package updn

import (
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/spread"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct{}

// Name gives "updn".
func (Engine) Name() string { return "updn" }

// Route gives every switch the shortest route to every LID of its island that
// goes up and then down, spread over equally short ones. A route of prev stays
// while it is still one of them. Errors are those of [route.NewGraph].
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	return spread.Route(e.Name(), f, prev, upDown)
}

// field is what the rule works on.
type field struct {
	g     *route.Graph
	order []int32 // switches, roots first
	pos   []int32 // by switch: where it stands in order
	hops  []int32 // by switch: length of the route to the destination, -1
	down  []bool  // by switch: the route goes down only
}

func upDown(g *route.Graph) func() spread.Rule {
	n := len(g.IDs)
	order, pos := rank(g), make([]int32, n)
	for i, s := range order {
		pos[s] = int32(i)
	}
	return func() spread.Rule {
		f := &field{g: g, order: order, pos: pos, hops: make([]int32, n), down: make([]bool, n)}
		return f.choices
	}
}

// choices fills in the next hops towards a destination. A switch that can
// reach it going down only does so, also when a way up would be shorter: what
// comes to it from above must not go up again.
func (f *field) choices(dest int32, c *spread.Choices) {
	for s := range f.hops {
		f.hops[s], f.down[s] = -1, false
	}
	f.hops[dest], f.down[dest] = 0, true
	c.Order = append(c.Order, dest)
	f.descend(c)
	f.ascend(c)
	c.Row = append(c.Row, 0)
	for _, s := range c.Order[1:] {
		for e := f.g.Row[s]; e < f.g.Row[s+1]; e++ {
			to := f.g.To[e]
			up := f.pos[to] < f.pos[s]
			if up != f.down[s] && f.hops[to] == f.hops[s]-1 && (up || f.down[to]) {
				c.Edge = append(c.Edge, e)
			}
		}
		c.Row = append(c.Row, int32(len(c.Edge)))
	}
}

// descend finds all switches from which the destination lies below, nearest
// first.
func (f *field) descend(c *spread.Choices) {
	for i := 0; i < len(c.Order); i++ {
		u := c.Order[i]
		for _, v := range f.g.To[f.g.Row[u]:f.g.Row[u+1]] {
			if f.hops[v] < 0 && f.pos[v] < f.pos[u] {
				f.hops[v], f.down[v] = f.hops[u]+1, true
				c.Order = append(c.Order, v)
			}
		}
	}
}

// ascend adds the switches that must go up first. In the order from the root
// all switches above one are settled before it.
func (f *field) ascend(c *spread.Choices) {
	for _, s := range f.order {
		if f.hops[s] >= 0 {
			continue
		}
		for _, v := range f.g.To[f.g.Row[s]:f.g.Row[s+1]] {
			if f.pos[v] < f.pos[s] && f.hops[v] >= 0 && (f.hops[s] < 0 || f.hops[v]+1 < f.hops[s]) {
				f.hops[s] = f.hops[v] + 1
			}
		}
		if f.hops[s] >= 0 {
			c.Order = append(c.Order, s)
		}
	}
}
