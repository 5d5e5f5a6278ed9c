package nexthop

import "math"

// Looking for the cheapest link is what routing a large fabric spends its time
// with: every switch would read all its links for every LID. Mostly it need
// not. Switches of one class see the same neighbours, so the cheapest of those
// is found once for all of them. If its link carries no more than the least
// that any of the switch's links can carry, no other can be cheaper.

// positionBits hold a position among the links that leave one switch: ports
// are numbered up to 254.
const positionBits = 8

// best is the cheapest neighbour of a class, the first among equals.
type best struct {
	round    int // for which it was found
	position int32
	cost     int64
}

// floor is the least load of the links of a run. Loads only grow.
type floor struct {
	run
	load int32
}

// cheapest returns the next hop of the i-th switch whose route carries least, the lowest port among equals, and sets the
// switch's cost.
func (s *spreader) cheapest(i int) int32 {
	c := s.choices
	edges, sw := c.Edge[c.Row[i]:c.Row[i+1]], c.Order[i]
	if len(edges) == 1 {
		s.cost[sw] = s.cost[s.g.To[edges[0]]] + int64(s.load[edges[0]])
		return edges[0]
	}
	if c.class[i] == noClass {
		return s.cheapestOf(sw, edges)
	}
	return s.cheapestIn(c.class[i], sw, run{edges[0], int32(len(edges))})
}

// cheapestIn is cheapest for the run of a class.
func (s *spreader) cheapestIn(class, sw int32, r run) int32 {
	b, f := &s.bests[class], &s.floors[sw]
	if b.round != s.round {
		s.findBest(b, r)
	}
	if e := r.first + b.position; f.run == r && f.load == s.load[e] {
		s.cost[sw] = b.cost + int64(f.load)
		return e
	}
	return s.cheapestOfRun(sw, r)
}

// cheapestOf compares all edges.
func (s *spreader) cheapestOf(sw int32, edges []int32) int32 {
	least, cost, links, loads := int64(math.MaxInt64), s.cost, s.g.To, s.load
	for k, e := range edges {
		least = min(least, (cost[links[e]]+int64(loads[e]))<<positionBits|int64(k))
	}
	cost[sw] = least >> positionBits
	return edges[least&(1<<positionBits-1)]
}

// cheapestOfRun compares all edges of a run and finds its floor.
func (s *spreader) cheapestOfRun(sw int32, r run) int32 {
	least, lowest, cost := int64(math.MaxInt64), int32(math.MaxInt32), s.cost
	to, load := s.g.To[r.first:][:r.n], s.load[r.first:][:r.n]
	for k, next := range to {
		least = min(least, (cost[next]+int64(load[k]))<<positionBits|int64(k))
		lowest = min(lowest, load[k])
	}
	cost[sw] = least >> positionBits
	s.floors[sw] = floor{run: r, load: lowest}
	return r.first + int32(least&(1<<positionBits-1))
}

// findBest compares the neighbours of a run, which are those of its class.
func (s *spreader) findBest(b *best, r run) {
	least, cost := int64(math.MaxInt64), s.cost
	for k, next := range s.g.To[r.first:][:r.n] {
		least = min(least, cost[next]<<positionBits|int64(k))
	}
	*b = best{round: s.round, position: int32(least & (1<<positionBits - 1)), cost: least >> positionBits}
}
