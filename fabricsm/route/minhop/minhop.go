// Package minhop is the routing engine that takes shortest paths.
//
// On a fat tree, whole or damaged, every route goes up and then down if that is as short for all switches with CAs as any
// other way. Such routes cannot cause a credit loop, so a lost cable or spine does not need another engine. Only switches
// without CAs, which send only management packets, may then have longer routes than needed.
//
// On rings, tori and other graphs with cycles shortest paths can cause a credit loop: the checker then rejects the tables,
// and an engine that restricts turns is needed.
package minhop

import (
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/route/turnrule"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct {
	Share nexthop.Share
	// Weights are what ports of switches count for when ways are compared; all
	// others count 1. With any, the tables are judged like those of any shortest
	// paths, but what changed is routed like all is.
	Weights []Weight
}

// Name returns "minhop".
func (Engine) Name() string { return "minhop" }

// OneLane says that routes never need several lanes; see [route.OneLane].
func (Engine) OneLane() {}

// Route returns tables with a shortest path from every switch with CAs to every LID of its island, spread over equally
// short ones. Other switches get one where packets need not turn. A route of prev stays while it is still among the
// choices. Errors are those of [route.NewGraph].
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	return e.route(f, prev, false)
}

// Again computes routes in which all packets that must turn on a fat tree turn at one leaf, after a lost cable may have
// made it two. It examines all routes of prev again.
func (e Engine) Again(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	return e.route(f, prev, true)
}

func (e Engine) route(f *topo.Fabric, prev *route.Tables, again bool) (*route.Tables, error) {
	return nexthop.RouteLocal(e.Name(), f, prev, func(g *route.Graph) (nexthop.Plan, error) {
		if len(e.Weights) > 0 {
			costs := e.costs(f, g)
			return nexthop.Plan{Share: e.Share, NewRule: func() nexthop.Rule { return cheapest(g, costs) }}, nil
		}
		tree, ok := turnrule.NewTree(g)
		if !ok {
			return nexthop.Plan{Basis: []int32{}, Share: e.Share, NewRule: func() nexthop.Rule { return shortest(g) }}, nil
		}
		if again || prev != nil && turnrule.TurnedOnce(prev) {
			tree.TurnOnce()
		}
		return nexthop.Plan{
			Basis: tree.Basis(), All: again, Ways: tree.Ways(), Share: e.Share,
			NewRule: func() nexthop.Rule { return tree.Rule(shortest(g)) },
		}, nil
	})
}

// shortest allows the links that lead one hop nearer.
func shortest(g *route.Graph) nexthop.Rule {
	hops := make([]int32, len(g.IDs))
	return func(dest int32, c *nexthop.Choices) {
		c.Order = append(c.Order, dest)
		breadthFirst(g, hops, c)
		c.Row = append(c.Row, 0)
		for _, s := range c.Order[1:] {
			nearer := hops[s] - 1
			for e := g.Row[s]; e < g.Row[s+1]; e++ {
				if hops[g.To[e]] == nearer {
					c.Edge = append(c.Edge, e)
				}
			}
			c.Row = append(c.Row, int32(len(c.Edge)))
		}
	}
}

// breadthFirst extends the order from its first switch to all that it is
// connected with, nearest first, and sets their hops.
func breadthFirst(g *route.Graph, hops []int32, c *nexthop.Choices) {
	for i := range hops {
		hops[i] = -1
	}
	hops[c.Order[0]] = 0
	for i := 0; i < len(c.Order) && len(c.Order) < len(hops); i++ {
		u := c.Order[i]
		for _, v := range g.To[g.Row[u]:g.Row[u+1]] {
			if hops[v] < 0 {
				hops[v] = hops[u] + 1
				c.Order = append(c.Order, v)
			}
		}
	}
}
