package nexthop

import (
	"math"

	"portcullis/fabricsm/route"
)

// trails are the links that the LIDs of one port have used so far. The further LIDs of a port exist to reach it another
// way.
type trails struct {
	used  [][4]uint64 // by switch: positions among its edges
	twins bool        // some switch has several cables to another
}

func newTrails(g *route.Graph) trails {
	t := trails{used: make([][4]uint64, len(g.IDs))}
	seen := make([]int32, len(g.IDs))
	for s := range int32(len(g.IDs)) {
		for _, to := range g.To[g.Row[s]:g.Row[s+1]] {
			t.twins = t.twins || seen[to] == s+1
			seen[to] = s + 1
		}
	}
	return t
}

// apart returns the next hop of the i-th switch for a LID. It is the edge that was found, unless another LID of the same
// port goes that way already and some choice leads to a switch that no such LID uses. This holds only where packets start:
// ways that separate there and meet again are still two.
func (s *spreader) apart(i int, t route.Target, e int32) int32 {
	c := s.choices
	sw, edges := c.Order[i], c.Edge[c.Row[i]:c.Row[i+1]]
	if len(edges) == 1 {
		return e
	}
	used, first := &s.trails.used[sw], s.g.Row[sw]
	if t.Path == 0 {
		*used = [4]uint64{}
	}
	if has(used, e-first) {
		best, least := int32(-1), int64(math.MaxInt64)
		for _, other := range edges {
			if cost := s.cost[s.g.To[other]] + int64(s.load[other]); !has(used, other-first) && cost < least {
				best, least = other, cost
			}
		}
		if best >= 0 {
			e, s.cost[sw] = best, least
		} else {
			*used = [4]uint64{} // all were used: another round
		}
	}
	if !s.trails.twins {
		add(used, e-first)
		return e
	}
	for _, other := range edges {
		if s.g.To[other] == s.g.To[e] {
			add(used, other-first)
		}
	}
	return e
}

func has(set *[4]uint64, i int32) bool { return set[i>>6]&(1<<(i&63)) != 0 }

func add(set *[4]uint64, i int32) { set[i>>6] |= 1 << (i & 63) }
