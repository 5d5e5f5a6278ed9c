package dfsssp

import (
	"math"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
)

const (
	// rounds is how often weights are computed again from the load that they lead to.
	rounds = 6
	// loadShift puts the load of a link above the noise that distinguishes equally loaded links, so that no two paths have
	// the same weight.
	loadShift = 24
	noiseMask = 1<<loadShift - 1
)

// weights hold the cost of a link, the same in both directions. So the lightest of the shortest paths from one switch to
// another is the reverse of the one back. Pairs then need few lanes.
type weights struct {
	g     *route.Graph
	noise []int64 // by edge
	of    []int64 // by edge
}

// balance finds weights under which the links are evenly loaded.
func balance(g *route.Graph, _ *route.Tables) func() nexthop.Rule {
	w := &weights{g: g, noise: make([]int64, len(g.To)), of: make([]int64, len(g.To))}
	for s := range int32(len(g.IDs)) {
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			a, b := uint64(min(s, g.To[e])), uint64(max(s, g.To[e]))
			w.noise[e] = int64(mix(a<<32|b)) & noiseMask
		}
	}
	copy(w.of, w.noise)
	best, least := w.of, int64(math.MaxInt64)
	mean := make([]int64, len(g.To))
	for range rounds {
		load, worst := w.load()
		if worst < least {
			best, least = w.of, worst
		}
		w.of = make([]int64, len(g.To))
		for e, n := range load {
			mean[e] = (mean[e] + n + 1) / 2
			w.of[e] = mean[e]<<loadShift + w.noise[e]
		}
	}
	w.of = best
	return w.rule
}

// mix spreads the bits of a number (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// load returns how many routes from CA port to CA port each pair of neighbours would carry, and the most that one direction
// of a cable carries. The pair's number is for both directions together, and cables to the same neighbour share it.
func (w *weights) load() (load []int64, worst int64) {
	oneWay := w.oneWay()
	load = make([]int64, len(oneWay))
	for s := range int32(len(w.g.IDs)) {
		for e := w.g.Row[s]; e < w.g.Row[s+1]; e++ {
			worst = max(worst, oneWay[e])
			load[e] = oneWay[e] + oneWay[w.g.Reverse(s, e)]
		}
	}
	return load, worst
}

// oneWay counts the routes from CA port to CA port, by edge.
func (w *weights) oneWay() []int64 {
	g := w.g
	load, flow := make([]int64, len(g.To)), make([]int64, len(g.IDs))
	rule, c := w.rule(), &nexthop.Choices{}
	for dest := range int32(len(g.IDs)) {
		if g.Hosts[dest] == 0 {
			continue
		}
		c.Reset()
		rule(dest, c)
		copy(flow, g.Hosts)
		for i := len(c.Order) - 1; i > 0; i-- {
			edges := c.Edge[c.Row[i]:c.Row[i+1]]
			s := c.Order[i]
			flow[g.To[edges[0]]] += flow[s]
			for _, e := range edges {
				load[e] += flow[s] * g.Hosts[dest] / int64(len(edges))
			}
		}
	}
	return load
}

// rule is for one core. It allows the cables to the next switch on the lightest of the shortest
// paths.
func (w *weights) rule() nexthop.Rule {
	g := w.g
	hops, cost := make([]int32, len(g.IDs)), make([]int64, len(g.IDs))
	return func(dest int32, c *nexthop.Choices) {
		for i := range hops {
			hops[i] = -1
		}
		hops[dest], cost[dest] = 0, 0
		c.Order = append(c.Order, dest)
		c.Row = append(c.Row, 0)
		for i := 0; i < len(c.Order); i++ {
			u := c.Order[i]
			if i > 0 {
				w.choose(u, hops, cost, c)
			}
			for _, v := range g.To[g.Row[u]:g.Row[u+1]] {
				if hops[v] < 0 {
					hops[v] = hops[u] + 1
					c.Order = append(c.Order, v)
				}
			}
		}
	}
}

// choose finds the lightest way on from a switch; nearer ones are settled.
func (w *weights) choose(s int32, hops []int32, cost []int64, c *nexthop.Choices) {
	g := w.g
	next, least := int32(-1), int64(math.MaxInt64)
	for e := g.Row[s]; e < g.Row[s+1]; e++ {
		if to := g.To[e]; hops[to] == hops[s]-1 && hops[to] >= 0 && cost[to]+w.of[e] < least {
			next, least = to, cost[to]+w.of[e]
		}
	}
	cost[s] = least
	for e := g.Row[s]; e < g.Row[s+1]; e++ {
		if g.To[e] == next {
			c.Edge = append(c.Edge, e)
		}
	}
	c.Row = append(c.Row, int32(len(c.Edge)))
}
