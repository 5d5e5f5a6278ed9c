package torus

import (
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
	// Config defines the torus; nil: it is recognised by its cables.
	Config *Config
	// Lanes is how many virtual lanes the caller will program; 0 is 1. A mesh
	// needs one, a torus two, and one that has lost switches four.
	Lanes int
}

// Name returns "torus-2QoS".
func (Engine) Name() string { return "torus-2QoS" }

// Route returns tables that have, for every switch, the path to every LID along x, then y, then z, as near to that as lost
// switches and links allow. LIDs are spread over several cables between the same two switches. A route of prev stays while
// it is still such a path, and a switch keeps its place. Errors are those of [route.NewGraph], that the fabric is no such
// torus, that a ring is cut into parts, and that the lanes are too few.
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	var g *route.Graph
	var w *ways
	t, err := nexthop.Route(e.Name(), f, prev, func(graph *route.Graph) (func() nexthop.Rule, error) {
		before, _ := prev.Memo().(*memo)
		p, err := find(graph, e.Config, before)
		if err != nil {
			return nil, err
		}
		g, w = graph, newWays(p)
		if err := w.check(); err != nil {
			return nil, err
		}
		return func() nexthop.Rule { return w.rule(g) }, nil
	})
	if err != nil {
		return nil, err
	}
	t.SetMemo(w.p.memo())
	return t, e.setLanes(f, g, w, t)
}

// check finds switches that cannot reach another along the dimensions.
func (w *ways) check() error {
	n := len(w.p.placed)
	state := make([]int32, n) // by switch: the destination that it is known to reach, plus one
	for d := range int32(n) {
		state[d] = d + 1
		for s := range int32(n) {
			u := s
			for steps := 0; state[u] != d+1; steps++ {
				dir := w.next(w.p.where[u], w.p.where[d])
				if dir < 0 || steps > n {
					return fmt.Errorf("switch %v at %v cannot reach switch %v at %v along the dimensions: too much of the torus around them is missing",
						w.p.g.GUID(s), w.p.where[s], w.p.g.GUID(d), w.p.where[d])
				}
				u = w.go1(u, dir)
			}
			for u = s; state[u] != d+1; u = w.go1(u, w.next(w.p.where[u], w.p.where[d])) {
				state[u] = d + 1
			}
		}
	}
	return nil
}

// go1 returns the switch one step on.
func (w *ways) go1(s int32, dir int) int32 {
	c, _ := w.p.step(w.p.where[s], dir)
	return w.p.at[w.p.index(c)]
}

// rule allows the cables to the next switch.
func (w *ways) rule(g *route.Graph) nexthop.Rule {
	n := len(g.IDs)
	next, children := make([]int32, n), make([][]int32, n)
	return func(dest int32, c *nexthop.Choices) {
		for s := range children {
			children[s] = children[s][:0]
		}
		for s := range int32(n) {
			if next[s] = none; s != dest {
				next[s] = w.go1(s, w.next(w.p.where[s], w.p.where[dest]))
				children[next[s]] = append(children[next[s]], s)
			}
		}
		c.Order = append(c.Order, dest)
		c.Row = append(c.Row, 0)
		for i := 0; i < len(c.Order); i++ {
			s := c.Order[i]
			c.Order = append(c.Order, children[s]...)
			if i == 0 {
				continue
			}
			for e := g.Row[s]; e < g.Row[s+1]; e++ {
				if g.To[e] == next[s] {
					c.Edge = append(c.Edge, e)
				}
			}
			c.Row = append(c.Row, int32(len(c.Edge)))
		}
	}
}

// laneCount is how many lanes there are, with as many as there can be use for.
func (e Engine) laneCount(f *topo.Fabric, p *placement) (int, error) {
	need, why := 1, ""
	for dim := range 3 {
		if p.wrap[dim] && p.radix[dim] > 3 {
			need, why = 2, "a torus"
		}
	}
	if slices.Contains(p.at, none) {
		need, why = 4, "a torus without all its switches"
		if p.wrap == [3]bool{} {
			need = 3
		}
	}
	most, narrow := layered.Lanes(f, e.Lanes)
	switch {
	case most >= need:
		return min(most, 4), nil
	case narrow != topo.None:
		return 0, fmt.Errorf("%s needs %d virtual lanes, and switch %v port %d carries %d", why, need, f.NodeOf(narrow).GUID, f.Port(narrow).Num, most)
	default:
		return 0, fmt.Errorf("%s needs %d virtual lanes, %d are allowed", why, need, most)
	}
}

// setLanes sets service levels and lanes. Ports are of class 1 for x, 2 for y and 3 for z.
func (e Engine) setLanes(f *topo.Fabric, g *route.Graph, w *ways, t *route.Tables) error {
	p := w.p
	count, err := e.laneCount(f, p)
	if whole := !slices.Contains(p.at, none); err != nil || count == 1 || whole && p.wrap == [3]bool{} {
		return err
	}
	from := make([]int32, len(g.To))
	for s := range int32(len(g.IDs)) {
		for i := g.Row[s]; i < g.Row[s+1]; i++ {
			from[i] = s
		}
	}
	t.SetLanes(g, route.Lanes{
		Count: count, Levels: 8, Classes: 4,
		Class: func(edge int32) uint8 { return uint8(p.direction(from[edge], g.To[edge])/2) + 1 },
		VL: func(in, out uint8, sl ib.SL) ib.VL {
			vl := ib.VL(sl) >> (out - 1) & 1
			if in > out && count >= 3 {
				vl |= 2
			}
			return min(vl, ib.VL(count-1))
		},
		SL: func(a, b int32) (sl uint8) {
			for dim := range 3 {
				if p.crosses(dim, p.where[a][dim], p.where[b][dim]) {
					sl |= 1 << dim
				}
			}
			return sl
		},
	})
	return nil
}
