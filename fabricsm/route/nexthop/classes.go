package nexthop

import (
	"slices"

	"portcullis/fabricsm/route"
)

// run is neighbouring edges of one switch, the next hops that it is allowed.
type run struct{ first, n int32 }

// classes finds switches that choose among the same neighbours in the same
// order, as all leaves of a pod do: the cheapest neighbour is then the same for
// all of them.
type classes struct {
	g    *route.Graph
	last []run   // by switch: the run it was last asked for
	of   []int32 // by switch: the class of that run
	reps []run   // by class: a run of it
	like map[[2]int32][]int32
}

func newClasses(g *route.Graph) *classes {
	n := len(g.IDs)
	return &classes{g: g, last: make([]run, n), of: make([]int32, n), like: make(map[[2]int32][]int32)}
}

// class numbers the choices of a switch, noClass if it has one choice only or edges that are no neighbours.
func (c *classes) class(sw int32, edges []int32) int32 {
	n := int32(len(edges))
	if n < 2 || edges[n-1]-edges[0] != n-1 {
		return noClass
	}
	r := run{edges[0], n}
	if c.last[sw] != r {
		c.last[sw], c.of[sw] = r, c.find(r)
	}
	return c.of[sw]
}

// find looks for the class of a run among those with the same first neighbour
// and number, and makes one if there is none.
func (c *classes) find(r run) int32 {
	key := [2]int32{c.g.To[r.first], r.n}
	for _, class := range c.like[key] {
		if slices.Equal(c.neighbours(c.reps[class]), c.neighbours(r)) {
			return class
		}
	}
	class := int32(len(c.reps))
	c.reps = append(c.reps, r)
	c.like[key] = append(c.like[key], class)
	return class
}

func (c *classes) neighbours(r run) []int32 { return c.g.To[r.first : r.first+r.n] }

// unclassed says that no switch shares its choices with another.
func (c *Choices) unclassed() {
	c.class, c.classes = c.class[:0], 0
	for range c.Order {
		c.class = append(c.class, noClass)
	}
}
