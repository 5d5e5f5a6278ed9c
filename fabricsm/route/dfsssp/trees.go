package dfsssp

import (
	"math"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
)

// trees are one way from each switch to each other switch, without a distinction between cables to the same neighbour. With
// fewer ways between two switches, fewer lanes are needed.
type trees struct {
	g    *route.Graph
	next [][]int32 // by destination, then switch: the neighbour, -1

	load  []int64 // by edge: CA ports times CA ports whose packets pass
	order []int32 // of the destination in hand: switches, nearest first
	hops  []int32 // by switch
	cost  []int64 // by switch: load of the way to the destination
	flow  []int64 // by switch: CA ports whose packets pass
}

// grow takes, for one destination after the other, the shortest way that
// carries least so far. Where prev (which may be nil) has a way that is still
// shortest, it stays.
func grow(g *route.Graph, prev *route.Tables) func() nexthop.Rule {
	n := len(g.IDs)
	t := &trees{
		g: g, next: make([][]int32, n), load: make([]int64, len(g.To)), order: make([]int32, 0, n),
		hops: make([]int32, n), cost: make([]int64, n), flow: make([]int64, n),
	}
	rows := make([][]ib.PortNum, n)
	for s, id := range g.IDs {
		rows[s] = prev.LFT(id)
	}
	for dest := range int32(n) {
		t.next[dest] = make([]int32, n)
		t.walk(dest)
		t.choose(dest, rows)
		t.carry(dest)
	}
	return t.rule
}

// walk finds the distance of every switch from a destination.
func (t *trees) walk(dest int32) {
	for s := range t.hops {
		t.hops[s] = -1
	}
	t.hops[dest] = 0
	t.order = append(t.order[:0], dest)
	for i := 0; i < len(t.order); i++ {
		u := t.order[i]
		for _, v := range t.g.To[t.g.Row[u]:t.g.Row[u+1]] {
			if t.hops[v] < 0 {
				t.hops[v] = t.hops[u] + 1
				t.order = append(t.order, v)
			}
		}
	}
}

// choose picks the next switch on the way to a destination for all others.
func (t *trees) choose(dest int32, rows [][]ib.PortNum) {
	next := t.next[dest]
	for s := range next {
		next[s] = -1
	}
	t.cost[dest] = 0
	for _, s := range t.order[1:] {
		best := int32(-1)
		if targets := t.g.Targets[dest]; len(targets) > 0 {
			best = t.kept(s, rows[s], targets[0].LID)
		}
		if best < 0 {
			best = t.lightest(s)
		}
		next[s], t.cost[s] = t.g.To[best], t.cost[t.g.To[best]]+t.load[best]
	}
}

// lightest returns the edge of the shortest way that carries least, the lowest port among equals.
func (t *trees) lightest(s int32) int32 {
	best, least := int32(-1), int64(math.MaxInt64)
	for e := t.g.Row[s]; e < t.g.Row[s+1]; e++ {
		if to := t.g.To[e]; t.hops[to] == t.hops[s]-1 && t.cost[to]+t.load[e] < least {
			best, least = e, t.cost[to]+t.load[e]
		}
	}
	return best
}

// kept returns the edge of an old entry if it is still on a shortest way.
func (t *trees) kept(s int32, row []ib.PortNum, lid ib.LID) int32 {
	if int(lid) >= len(row) {
		return -1
	}
	e := t.g.EdgeAt(s, row[lid])
	if e < 0 || t.hops[t.g.To[e]] != t.hops[s]-1 {
		return -1
	}
	return e
}

// carry makes the links of the ways to a destination heavier.
func (t *trees) carry(dest int32) {
	copy(t.flow, t.g.Hosts)
	next := t.next[dest]
	for i := len(t.order) - 1; i > 0; i-- {
		s := t.order[i]
		t.flow[next[s]] += t.flow[s]
		for e := t.g.Row[s]; e < t.g.Row[s+1]; e++ {
			if t.g.To[e] == next[s] {
				t.load[e] += t.flow[s] * t.g.Hosts[dest]
			}
		}
	}
}

// rule allows the cables to the next switch.
func (t *trees) rule() nexthop.Rule {
	w := &trees{g: t.g, hops: make([]int32, len(t.hops))}
	return func(dest int32, c *nexthop.Choices) {
		w.walk(dest)
		c.Order = append(c.Order, w.order...)
		c.Row = append(c.Row, 0)
		for _, s := range c.Order[1:] {
			for e := t.g.Row[s]; e < t.g.Row[s+1]; e++ {
				if t.g.To[e] == t.next[dest][s] {
					c.Edge = append(c.Edge, e)
				}
			}
			c.Row = append(c.Row, int32(len(c.Edge)))
		}
	}
}
