package torus

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// none is the value for a position without a switch.
const none = int32(-1)

// coord is where a switch is, along x, y and z.
type coord [3]int

func (c coord) String() string { return fmt.Sprintf("(%d,%d,%d)", c[0], c[1], c[2]) }

// shape is the size of a torus, and which dimensions are rings.
type shape struct {
	radix [3]int
	wrap  [3]bool
}

func (s *shape) size() int { return s.radix[0] * s.radix[1] * s.radix[2] }

func (s *shape) index(c coord) int { return c[0] + s.radix[0]*(c[1]+s.radix[1]*c[2]) }

// step returns the position next to one in a direction (+x, -x, +y, ...), false at the end of a row.
func (s *shape) step(c coord, dir int) (coord, bool) {
	dim, n := dir/2, s.radix[dir/2]
	c[dim] += 1 - 2*(dir%2)
	if c[dim] >= 0 && c[dim] < n {
		return c, true
	}
	c[dim] = (c[dim] + n) % n
	return c, s.wrap[dim]
}

// placement is which switch is where.
type placement struct {
	shape
	g      *route.Graph
	near   [][]int32 // by switch: its neighbours, once each, by number
	at     []int32   // by position: switch, or nobody
	where  []coord   // by switch, if it is placed
	placed []bool    // by switch
	left   int       // switches that are not placed
}

func newPlacement(g *route.Graph, near [][]int32, s shape) *placement {
	n := len(g.IDs)
	p := &placement{shape: s, g: g, near: near, at: make([]int32, s.size()), where: make([]coord, n), placed: make([]bool, n), left: n}
	for i := range p.at {
		p.at[i] = none
	}
	return p
}

// neighbours returns for each switch those it is cabled to.
func neighbours(g *route.Graph) [][]int32 {
	near := make([][]int32, len(g.IDs))
	for s := range near {
		near[s] = slices.Clone(g.To[g.Row[s]:g.Row[s+1]])
		slices.Sort(near[s])
		near[s] = slices.Compact(near[s])
	}
	return near
}

func (p *placement) put(s int32, c coord) {
	p.at[p.index(c)], p.where[s], p.placed[s] = s, c, true
	p.left--
}

// seat puts a switch at a free position and reports whether both were free.
func (p *placement) seat(s int32, c coord) bool {
	if p.placed[s] || p.at[p.index(c)] != none {
		return false
	}
	p.put(s, c)
	return true
}

// solve places switches that follow from placed ones, until there are no more.
func (p *placement) solve() {
	for before := -1; before != p.left && p.left > 0; {
		before = p.left
		for i := range p.at {
			c := p.position(i)
			if p.at[i] == none {
				p.fill(c)
			} else {
				p.extend(p.at[i], c)
			}
		}
	}
}

func (p *placement) position(i int) coord {
	return coord{i % p.radix[0], i / p.radix[0] % p.radix[1], i / (p.radix[0] * p.radix[1])}
}

// fill places the one switch that is cabled to placed neighbours of a position
// along two dimensions: the fourth corner of a face.
func (p *placement) fill(c coord) {
	found := none
	for dir := range 6 {
		next, ok := p.step(c, dir)
		if !ok || p.at[p.index(next)] == none {
			continue
		}
		for _, s := range p.near[p.at[p.index(next)]] {
			if p.placed[s] || s == found || !p.cornerOf(s, c, dir) {
				continue
			}
			if found != none {
				return
			}
			found = s
		}
	}
	if found != none {
		p.put(found, c)
	}
}

// cornerOf reports whether a switch is cabled to a placed neighbour of a
// position along another dimension than a direction's.
func (p *placement) cornerOf(s int32, c coord, dir int) bool {
	for other := range 6 {
		if other/2 == dir/2 {
			continue
		}
		if next, ok := p.step(c, other); ok {
			if v := p.at[p.index(next)]; v != none && has(p.near[s], v) {
				return true
			}
		}
	}
	return false
}

// extend places a neighbour of a placed switch that is the only one left, or
// that lies straight ahead.
func (p *placement) extend(s int32, c coord) {
	var open []int
	for dir := range 6 {
		if next, ok := p.step(c, dir); ok && p.at[p.index(next)] == none {
			open = append(open, dir)
		}
	}
	if len(open) == 0 {
		return
	}
	var loose []int32
	for _, v := range p.near[s] {
		if !p.placed[v] {
			loose = append(loose, v)
		}
	}
	if len(open) == 1 && len(loose) == 1 {
		next, _ := p.step(c, open[0])
		p.put(loose[0], next)
		return
	}
	for _, dir := range open {
		back, ok := p.step(c, dir^1)
		if p.wrap[dir/2] && p.radix[dir/2] == 4 || !ok || p.at[p.index(back)] == none {
			continue
		}
		if v := p.straight(p.at[p.index(back)], s, loose); v >= 0 {
			next, _ := p.step(c, dir)
			p.put(v, next)
			return
		}
	}
}

// straight returns the neighbour of a switch, from a list, that has no other neighbour in common with the switch before it.
// On a torus only the one straight on has none, unless the ring has four switches. It returns nobody if there is none, and
// ambiguous if there are several.
func (p *placement) straight(before, s int32, of []int32) int32 {
	return straight(p.near, before, s, of)
}

const ambiguous = int32(-2)

func straight(near [][]int32, before, s int32, of []int32) int32 {
	found := none
	for _, v := range of {
		if v == before || !onlyCommon(near[before], near[v], s) {
			continue
		}
		if found != none {
			return ambiguous
		}
		found = v
	}
	return found
}

// onlyCommon reports whether two sorted lists have nothing in common but one.
func onlyCommon(a, b []int32, but int32) bool {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i] < b[k]:
			i++
		case a[i] > b[k]:
			k++
		case a[i] != but:
			return false
		default:
			i++
			k++
		}
	}
	return true
}

func has(sorted []int32, s int32) bool {
	_, ok := slices.BinarySearch(sorted, s)
	return ok
}

// verify finds switches that are not placed and cables that do not lead from a
// position to the next.
func (p *placement) verify() error {
	for s, placed := range p.placed {
		if !placed {
			return fmt.Errorf("%d of %d switches have no place in %v, switch %v for one", p.left, len(p.placed), &p.shape, p.g.GUID(int32(s)))
		}
	}
	for s := range int32(len(p.placed)) {
		for e := p.g.Row[s]; e < p.g.Row[s+1]; e++ {
			if p.direction(s, p.g.To[e]) < 0 {
				return fmt.Errorf("switch %v at %v is cabled at port %d to switch %v at %v, which is not next to it in %v",
					p.g.GUID(s), p.where[s], p.g.Port[e], p.g.GUID(p.g.To[e]), p.where[p.g.To[e]], &p.shape)
			}
		}
	}
	return nil
}

func (s *shape) String() string {
	kind := func(dim int) string {
		if s.wrap[dim] {
			return "t"
		}
		return "m"
	}
	return fmt.Sprintf("a torus of %d%s %d%s %d%s", s.radix[0], kind(0), s.radix[1], kind(1), s.radix[2], kind(2))
}

// direction returns the direction from one placed switch to another next to it,
// -1 if it is not.
func (p *placement) direction(from, to int32) int {
	for dir := range 6 {
		if next, ok := p.step(p.where[from], dir); ok && p.at[p.index(next)] == to {
			return dir
		}
	}
	return -1
}

// memo is a placement by GUID, for the next time.
type memo struct {
	shape
	where map[ib.GUID]coord
}

func (p *placement) memo() *memo {
	m := &memo{shape: p.shape, where: make(map[ib.GUID]coord, len(p.placed))}
	for s, c := range p.where {
		m.where[p.g.GUID(int32(s))] = c
	}
	return m
}
