package route

import (
	"math/bits"

	"portcullis/fabricsm/ib"
)

// dependencies is the channel dependency graph of one virtual lane. A node is an edge of the switch graph (one direction of
// a link); only the edges of the switch it leads to may follow it, so one bit per port of that switch is enough.
type dependencies struct {
	g     *Graph
	first []int32 // by edge: its first word in bits
	bits  []uint64
}

func newDependencies(g *Graph) *dependencies {
	d := &dependencies{g: g, first: make([]int32, len(g.To)+1)}
	for e, to := range g.To {
		d.first[e+1] = d.first[e] + (g.Row[to+1]-g.Row[to]+63)/64
	}
	d.bits = make([]uint64, d.first[len(g.To)])
	return d
}

// empty returns a graph of the same edges without dependencies.
func (d *dependencies) empty() *dependencies {
	return &dependencies{g: d.g, first: d.first, bits: make([]uint64, len(d.bits))}
}

// follow returns the bits of the edges that follow an edge.
func (d *dependencies) follow(e int32) []uint64 { return d.bits[d.first[e]:d.first[e+1]] }

// set records that some route uses edge next right after edge e.
func (d *dependencies) set(e, next int32) {
	i := next - d.g.Row[d.g.To[e]]
	d.bits[d.first[e]+i/64] |= 1 << (i % 64)
}

// has reports whether edge next is used right after edge e.
func (d *dependencies) has(e, next int32) bool {
	i := next - d.g.Row[d.g.To[e]]
	return d.bits[d.first[e]+i/64]&(1<<(i%64)) != 0
}

// clear takes back what set recorded.
func (d *dependencies) clear(e, next int32) {
	i := next - d.g.Row[d.g.To[e]]
	d.bits[d.first[e]+i/64] &^= 1 << (i % 64)
}

func (d *dependencies) merge(o *dependencies) {
	for i, w := range o.bits {
		d.bits[i] |= w
	}
}

// each calls visit for every edge that follows e, in order.
func (d *dependencies) each(e int32, visit func(next int32)) {
	row := d.g.Row[d.g.To[e]]
	for i, w := range d.bits[d.first[e]:d.first[e+1]] {
		for ; w != 0; w &= w - 1 {
			visit(row + int32(i*64+bits.TrailingZeros64(w)))
		}
	}
}

// loop returns a cycle of dependencies, nil if there is none. Edges that no remaining edge waits for are removed until only
// cycles, and edges behind them, are left.
func (d *dependencies) loop(rows [][]ib.PortNum) []Channel {
	waiting := make([]int32, len(d.g.To))
	for e := range d.g.To {
		d.each(int32(e), func(next int32) { waiting[next]++ })
	}
	var free []int32
	for e, n := range waiting {
		if n == 0 {
			free = append(free, int32(e))
		}
	}
	left := len(waiting)
	for len(free) > 0 {
		e := free[len(free)-1]
		free = free[:len(free)-1]
		left--
		d.each(e, func(next int32) {
			if waiting[next]--; waiting[next] == 0 {
				free = append(free, next)
			}
		})
	}
	if left == 0 {
		return nil
	}
	return d.witness(d.onCircle(waiting), rows)
}

// onCircle finds an edge that lies on a cycle: every remaining edge is waited for by a remaining one, so walking backwards
// must return.
func (d *dependencies) onCircle(waiting []int32) int32 {
	before := make([]int32, len(waiting))
	start := int32(-1)
	for e := len(waiting) - 1; e >= 0; e-- {
		if waiting[e] == 0 {
			continue
		}
		start = int32(e)
		d.each(start, func(next int32) {
			if waiting[next] > 0 {
				before[next] = start
			}
		})
	}
	seen := make([]bool, len(waiting))
	for !seen[start] {
		seen[start] = true
		start = before[start]
	}
	return start
}

// witness returns a shortest cycle through an edge, with a LID for each step whose route causes it.
func (d *dependencies) witness(start int32, rows [][]ib.PortNum) []Channel {
	from := make([]int32, len(d.g.To))
	for i := range from {
		from[i] = -1
	}
	queue := []int32{start}
	for i := 0; i < len(queue) && from[start] < 0; i++ {
		d.each(queue[i], func(next int32) {
			if from[next] < 0 {
				from[next] = queue[i]
				queue = append(queue, next)
			}
		})
	}
	circle := []int32{start}
	for e := from[start]; e != start; e = from[e] {
		circle = append(circle, e)
	}
	// circle runs backwards from start: turn all but the first.
	channels := make([]Channel, len(circle))
	for i := range circle {
		e := circle[(len(circle)-i)%len(circle)]
		next := circle[(2*len(circle)-i-1)%len(circle)]
		channels[i] = d.g.channel(d.source(e), e)
		channels[i].LID = d.reason(e, next, rows)
	}
	return channels
}

// source returns the switch that an edge leaves.
func (d *dependencies) source(e int32) int32 {
	lo, hi := int32(0), int32(len(d.g.Row)-2)
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if d.g.Row[mid] <= e {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// reason finds the lowest LID that is routed over edge e and then next.
func (d *dependencies) reason(e, next int32, rows [][]ib.PortNum) ib.LID {
	a, b := rows[d.source(e)], rows[d.g.To[e]]
	for l := 1; l < len(a) && l < len(b); l++ {
		if a[l] == d.g.Port[e] && b[l] == d.g.Port[next] {
			return ib.LID(l)
		}
	}
	return 0
}
