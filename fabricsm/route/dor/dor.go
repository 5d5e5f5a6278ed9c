// Package dor is the routing engine for tori, meshes and hypercubes. It crosses
// one dimension after the other, in the order of the ports that lead there, and
// deals routes to virtual lanes where rings would let buffers wait for each
// other in a circle.
//
// Dimension order comes from taking, of all shortest paths, the one that leaves
// each switch by the lowest port; so cables of one dimension and direction must
// be in ports of the same number everywhere. Where they are not, routes are
// still right, and more lanes may be needed. Trees are routed rightly too, but
// badly: everything goes over the first spine.
//
// Lanes are dealt as in layered shortest path routing (LASH): each pair of
// switches, both directions together, goes to the first layer in which no
// circle closes. Senders must use the service level that the tables give for a
// pair. A host that is free to send what it likes can break the proof: where
// hosts are hostile, use an engine that needs one lane.
package dor

import (
	"fmt"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/spread"
	"portcullis/fabricsm/topo"
)

// Engine implements [route.Engine].
type Engine struct {
	// Lanes is how many virtual lanes the caller will program and give to
	// senders, as [route.Tables.SLtoVL] and [route.Tables.SL] say; more than
	// [route.MaxLayers] are not used. 0 is 1.
	Lanes int
}

// Name gives "dor".
func (Engine) Name() string { return "dor" }

// Route gives every switch a shortest path to every LID of its island, and
// every pair of switches a layer. Only LIDs that would leave by one of several
// cables to the same switch are spread. A route of prev stays while it is still
// such a path; its layer may change. Errors are those of [route.NewGraph], and
// that the lanes are too few.
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	var g *route.Graph
	t, err := spread.Route(e.Name(), f, prev, func(graph *route.Graph) (func() spread.Rule, error) {
		g = graph
		return func() spread.Rule { return lowestPort(g) }, nil
	})
	if err != nil {
		return nil, err
	}
	if route.Check(f, t).CreditLoop == nil {
		return t, nil
	}
	lanes, narrow := e.lanes(f, g)
	l := newLayering(g, t)
	count, ok := l.deal(lanes)
	switch {
	case ok:
		t.SetLayers(g, count, func(a, b int32) uint8 { return l.layer[l.pair(a, b)] })
		return t, nil
	case narrow != topo.None:
		return nil, fmt.Errorf("dimension order needs more virtual lanes than the %d that switch %v port %d carries", lanes, f.NodeOf(narrow).GUID, f.Port(narrow).Num)
	default:
		return nil, fmt.Errorf("dimension order needs more than %d virtual lanes here; allow more, or use updn", lanes)
	}
}

// lanes gives how many virtual lanes may be used, and the port with the fewest
// if that is what limits them. Ports that have not said how many they have do
// not count.
func (e Engine) lanes(f *topo.Fabric, g *route.Graph) (most int, narrow topo.PortID) {
	most, narrow = max(1, min(e.Lanes, route.MaxLayers)), topo.None
	for s, id := range g.IDs {
		for i := g.Row[s]; i < g.Row[s+1]; i++ {
			p := f.PortOf(id, g.Port[i])
			if c := f.Port(p).VLCap; c != 0 && c.Count() < most {
				most, narrow = max(1, c.Count()), p
			}
		}
	}
	return most, narrow
}

// lowestPort allows the cables to the neighbour that the lowest port on a
// shortest path leads to.
func lowestPort(g *route.Graph) spread.Rule {
	hops := make([]int32, len(g.IDs))
	return func(dest int32, c *spread.Choices) {
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
			for e := g.Row[s]; e < g.Row[s+1]; e++ {
				to := g.To[e]
				if next < 0 && hops[to] == hops[s]-1 {
					next = to
				}
				if to == next {
					c.Edge = append(c.Edge, e)
				}
			}
			c.Row = append(c.Row, int32(len(c.Edge)))
		}
	}
}
