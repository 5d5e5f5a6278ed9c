// Package dor is the routing engine for tori, meshes and hypercubes. It crosses one dimension after the other, in the order
// of the ports that lead there, and assigns routes to virtual lanes where rings would cause a credit loop.
//
// Dimension order comes from taking, of all shortest paths, the one that leaves each switch by the first port, the lowest
// if no order is given. So cables of one dimension and direction must be in ports of the same number everywhere. Where they
// are not, routes are still right, and more lanes may be needed. Trees are routed rightly too, but badly: all traffic uses
// the first spine.
//
// Package layered assigns the lanes: each pair of switches, both directions together, has one layer. Senders must use the
// service level that the tables have for a pair. A hostile host that uses other levels can break the proof: where hosts are
// hostile, use an engine that needs one lane.
package dor

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/layered"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct {
	// Lanes is how many virtual lanes the caller will program and assign to senders, as [route.Tables.SLtoVL] and
	// [route.Tables.SL] say; more than [route.MaxLayers] are not used. 0 is 1.
	Lanes int
	// Ports has, by node GUID of switches, ports in the order of the dimensions
	// that they lead along, where that is not the order of their numbers. Those
	// that it leaves out follow.
	Ports map[ib.GUID][]ib.PortNum
}

// Name returns "dor".
func (Engine) Name() string { return "dor" }

// Route returns tables with a shortest path from every switch to every LID of its island, and a layer for every pair of
// switches. Only LIDs that would leave by one of several cables to the same switch are spread. A route of prev stays while
// it is still such a path, a layer while it is free of cycles. Errors are those of [route.NewGraph], and that the lanes are
// too few.
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	t, err := nexthop.Route(e.Name(), f, prev, func(g *route.Graph) (func() nexthop.Rule, error) {
		order := e.order(g)
		return func() nexthop.Rule { return firstPort(g, order) }, nil
	})
	if err != nil {
		return nil, err
	}
	if err := layered.Deal(f, t, prev, e.Lanes); err != nil {
		return nil, fmt.Errorf("dimension order: %w", err)
	}
	return t, nil
}

// order returns the edges of each switch in the order of dimensions, at the switch's place in the graph.
func (e Engine) order(g *route.Graph) []int32 {
	order := make([]int32, len(g.To))
	for i := range order {
		order[i] = int32(i)
	}
	for s := range int32(len(g.IDs)) {
		listed := e.Ports[g.GUID(s)]
		place := func(edge int32) int {
			if i := slices.Index(listed, g.Port[edge]); i >= 0 {
				return i
			}
			return len(listed)
		}
		if len(listed) > 0 {
			slices.SortStableFunc(order[g.Row[s]:g.Row[s+1]], func(a, b int32) int { return cmp.Compare(place(a), place(b)) })
		}
	}
	return order
}

// firstPort allows the cables to the neighbour that the first port on a
// shortest path leads to.
func firstPort(g *route.Graph, order []int32) nexthop.Rule {
	hops := make([]int32, len(g.IDs))
	return func(dest int32, c *nexthop.Choices) {
		for i := range hops {
			hops[i] = -1
		}
		hops[dest] = 0
		c.Order = append(c.Order, dest)
		c.Row = append(c.Row, 0)
		for i := 0; i < len(c.Order); i++ {
			u := c.Order[i]
			for _, v := range g.To[g.Row[u]:g.Row[u+1]] {
				if hops[v] < 0 {
					hops[v] = hops[u] + 1
					c.Order = append(c.Order, v)
				}
			}
		}
		for _, s := range c.Order[1:] {
			next := int32(-1)
			for _, e := range order[g.Row[s]:g.Row[s+1]] {
				if to := g.To[e]; hops[to] == hops[s]-1 {
					next = to
					break
				}
			}
			for e := g.Row[s]; e < g.Row[s+1]; e++ {
				if g.To[e] == next {
					c.Edge = append(c.Edge, e)
				}
			}
			c.Row = append(c.Row, int32(len(c.Edge)))
		}
	}
}
