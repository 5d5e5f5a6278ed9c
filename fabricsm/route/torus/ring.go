package torus

// ways knows, for every position, which of its links are there, and which way
// round a ring leads where.
type ways struct {
	p *placement
	// reach is how many steps in a row are possible from a position in a
	// direction, by position and direction; on a whole ring it is its length.
	reach [][6]int
}

func newWays(p *placement) *ways {
	w := &ways{p: p, reach: make([][6]int, len(p.at))}
	for i, s := range p.at {
		if s == none {
			continue
		}
		for dir := range 6 {
			w.reach[i][dir] = w.walk(p.position(i), dir)
		}
	}
	return w
}

// walk counts the steps that are possible in a direction.
func (w *ways) walk(c coord, dir int) int {
	for n := range w.p.radix[dir/2] {
		next, ok := w.p.step(c, dir)
		if !ok || !w.linked(c, next) {
			return n
		}
		c = next
	}
	return w.p.radix[dir/2]
}

func (w *ways) linked(a, b coord) bool {
	s, t := w.p.at[w.p.index(a)], w.p.at[w.p.index(b)]
	return s != none && t != none && has(w.p.near[s], t)
}

// shorter returns the direction along a dimension in which it is less far from one coordinate to another. If both ways
// round a ring are equal, a pair takes the same in both directions. Every other pair takes the one without the dateline.
func (s *shape) shorter(dim, from, to int) (dir int) {
	n := s.radix[dim]
	ahead := to - from
	inside := ahead > 0 // the direction that does not pass the dateline
	if s.wrap[dim] && 2*abs(ahead) > n || s.wrap[dim] && 2*abs(ahead) == n && min(from, to)%2 == 1 {
		inside = !inside
	}
	if inside {
		return 2 * dim
	}
	return 2*dim + 1
}

// crosses reports whether the shorter way between two coordinates passes the
// dateline. It is the same both ways.
func (s *shape) crosses(dim, from, to int) bool {
	return from != to && (s.shorter(dim, from, to)%2 == 0) != (to > from)
}

// distance returns the steps from one coordinate to another in a direction, and a large number in a row that does not lead
// there.
func (s *shape) distance(dir, from, to int) int {
	n, d := s.radix[dir/2], to-from
	if dir%2 == 1 {
		d = -d
	}
	switch {
	case d >= 0:
		return d
	case s.wrap[dir/2]:
		return d + n
	default:
		return n
	}
}

// towards returns the direction along a dimension that leads from a position to a coordinate, or right before it where
// there is no switch at it; -1 if links are missing on both ways.
func (w *ways) towards(c coord, dim, to int) int {
	target := c
	target[dim] = to
	short := 0
	if w.p.at[w.p.index(target)] == none {
		short = 1
	}
	dir := w.p.shorter(dim, c[dim], to)
	for _, d := range []int{dir, dir ^ 1} {
		if need := w.p.distance(d, c[dim], to) - short; need >= 0 && w.reach[w.p.index(c)][d] >= need && need < w.p.radix[dim] {
			return d
		}
	}
	return -1
}

// next returns the direction in which a packet goes on from a switch to another,
// -1 if there is none.
func (w *ways) next(c, dest coord) int {
	for dim := range 3 {
		if c[dim] == dest[dim] {
			continue
		}
		corner := c
		corner[dim] = dest[dim]
		dir := w.towards(c, dim, dest[dim])
		if dir < 0 || w.p.at[w.p.index(corner)] != none {
			return dir
		}
		// There is no switch where it should turn. Right before that place it turns early, into the next dimension that it
		// has to go along.
		if w.p.distance(dir, c[dim], dest[dim]) > 1 {
			return dir
		}
		for other := dim + 1; other < 3; other++ {
			if c[other] != dest[other] {
				return w.towards(c, other, dest[other])
			}
		}
		return -1
	}
	return -1
}

func abs(n int) int { return max(n, -n) }
