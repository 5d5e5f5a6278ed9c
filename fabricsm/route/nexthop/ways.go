package nexthop

import (
	"math/bits"

	"portcullis/fabricsm/route"
)

// Ways describes a rule by which routes go up and then down. With it, the choices of one switch follow from the number of
// links of the other switches' routes, without the choices of all others. A switch sends down towards a destination below
// it. Otherwise it sends up, where such a way leads on. The shortest of those ways are allowed.
type Ways struct {
	// Order has all switches, the top first: a link is up if it leads nearer to the
	// front. None joins switches in which the rule sees the same height.
	Order []int32
	// Turn is, by switch, one of its island. From where no way goes up and then down to
	// a destination packets are sent towards it, as long as that one has such a way.
	// nil: the rule says something else there.
	Turn []int32
	// Most is how many links ways from switches with CAs may have; towards
	// destinations to which one has a longer way, or none, the rule says something
	// else. 0: there is no such limit.
	Most int
}

// set is a set of switches for every switch, as bits.
type set struct {
	words int
	bits  []uint64
}

func newSet(n int) set { return set{(n + 63) / 64, make([]uint64, n*((n+63)/64))} }

func (t *set) of(s int32) []uint64 { return t.bits[int(s)*t.words : (int(s)+1)*t.words] }

func (t *set) has(s, d int32) bool { return t.of(s)[d>>6]>>(d&63)&1 != 0 }

func (t *set) add(s, d int32) { t.of(s)[d>>6] |= 1 << (d & 63) }

// join adds the members of one switch's set to another's.
func (t *set) join(to, from int32) {
	a, b := t.of(to), t.of(from)
	for i, w := range b {
		a[i] |= w
	}
}

// reach is the set of destinations that some links reach: by switch, the destinations below it, and those with a way up and
// then down.
type reach struct{ below, straight set }

func newReach(g *route.Graph, order, pos []int32, without []bool) *reach {
	n := len(g.IDs)
	r := &reach{below: newSet(n), straight: newSet(n)}
	for i := len(order) - 1; i >= 0; i-- {
		s := order[i]
		r.below.add(s, s)
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			if pos[g.To[e]] > pos[s] && (without == nil || !without[e]) {
				r.below.join(s, g.To[e])
			}
		}
	}
	copy(r.straight.bits, r.below.bits)
	for _, s := range order {
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			if pos[g.To[e]] < pos[s] && (without == nil || !without[e]) {
				r.straight.join(s, g.To[e])
			}
		}
	}
	return r
}

// nearby computes the choices of single switches.
type nearby struct {
	g     *route.Graph
	ways  *Ways
	pos   []int32 // by switch: its place in the order
	depth []uint8 // by switch, then destination: links of the routes of prev
	now   *reach
	was   *reach // without the links that have come back
	fits  []bool // by destination: the choices are as the ways say, and were
	edges []int32
}

// far is the depth without a way.
const far = 255

func newNearby(g *route.Graph, ways *Ways, depth []uint8, returned []bool) *nearby {
	b := &nearby{g: g, ways: ways, pos: make([]int32, len(g.IDs)), depth: depth}
	for i, s := range ways.Order {
		b.pos[s] = int32(i)
	}
	b.now = newReach(g, ways.Order, b.pos, nil)
	b.was = b.now
	if returned != nil {
		b.was = newReach(g, ways.Order, b.pos, returned)
	}
	return b
}

func (b *nearby) depthOf(s, d int32) uint8 { return b.depth[int(s)*len(b.g.IDs)+int(d)] }

// findFits finds the destinations that the ways are true for.
func (b *nearby) findFits() {
	n := len(b.g.IDs)
	b.fits = make([]bool, n)
	for d := range b.fits {
		b.fits[d] = true
	}
	for s := range int32(n) {
		if b.ways.Most == 0 || b.g.Hosts[s] == 0 {
			continue
		}
		for d, depth := range b.depth[int(s)*n : (int(s)+1)*n] {
			if int(depth) > b.ways.Most || !b.was.straight.has(s, int32(d)) {
				b.fits[d] = false
			}
		}
	}
}

// allowed returns the next hops of a switch towards a destination, if its way there must have as many links as before. It
// is empty if there is none, or if the choices are not known.
func (b *nearby) allowed(s, d int32) []int32 {
	b.edges = b.edges[:0]
	if s == d || b.depthOf(s, d) == far {
		return nil
	}
	turn := d
	if !b.now.straight.has(s, d) {
		if turn = b.turn(s, d); turn < 0 {
			return nil
		}
	}
	b.eachTowards(s, turn, func(e int32) {
		to := b.g.To[e]
		if b.depthOf(to, d) == b.depthOf(s, d)-1 && (turn == d || b.depthOf(to, turn) == b.depthOf(s, turn)-1) {
			b.edges = append(b.edges, e)
		}
	})
	return b.edges
}

// turn returns the switch where packets turn on their way to a destination, -1 if that is not known. It is not known for
// data to CAs that must turn.
func (b *nearby) turn(s, d int32) int32 {
	if b.ways.Turn == nil || len(b.g.Targets[d]) > 0 && b.g.Targets[d][0].Out != 0 {
		return -1
	}
	if t := b.ways.Turn[s]; t >= 0 && t != s && b.now.straight.has(t, d) && b.now.straight.has(s, t) {
		return t
	}
	return -1
}

// eachTowards visits the links that lead down to a destination, or else up to where a
// way leads on.
func (b *nearby) eachTowards(s, d int32, visit func(e int32)) {
	down := b.now.below.has(s, d)
	for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
		to := b.g.To[e]
		if down && b.pos[to] > b.pos[s] && b.now.below.has(to, d) || !down && b.pos[to] < b.pos[s] && b.now.straight.has(to, d) {
			visit(e)
		}
	}
}

// place finds the depths of a switch that is new, from those of its neighbours; as a
// destination it has none yet.
func (b *nearby) place(s int32) {
	n := len(b.g.IDs)
	for d := range n {
		b.depth[d*n+int(s)], b.depth[int(s)*n+d] = far, far
	}
	for d := range int32(n) {
		turn := d
		if s == d {
			continue
		}
		if !b.now.straight.has(s, d) {
			if turn = b.turn(s, d); turn < 0 {
				continue
			}
		}
		nearest, least := uint8(far), uint8(far)
		b.eachTowards(s, turn, func(e int32) { nearest = min(nearest, b.depthOf(b.g.To[e], turn)) })
		b.eachTowards(s, turn, func(e int32) {
			if to := b.g.To[e]; b.depthOf(to, turn) == nearest {
				least = min(least, b.depthOf(to, d))
			}
		})
		if least < far-1 {
			b.depth[int(s)*n+int(d)] = least + 1
		}
	}
}

// unsettle finds the destinations to which a way became another, or shorter, with the
// links that have come back. Those of new switches were none before.
func (b *nearby) unsettle(returned, fresh []bool) {
	n := len(b.g.IDs)
	for s := range int32(n) {
		for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
			if !returned[e] || fresh[s] {
				continue
			}
			to := b.g.To[e]
			for d := range int32(n) {
				if next := b.depthOf(to, d); next < far-1 && next+1 < b.depthOf(s, d) {
					b.fits[d] = false
				}
			}
		}
		if fresh[s] {
			continue
		}
		for _, sets := range [2][2]*set{{&b.now.below, &b.was.below}, {&b.now.straight, &b.was.straight}} {
			is, was := sets[0].of(s), sets[1].of(s)
			for i := range is {
				for w := is[i] ^ was[i]; w != 0; w &= w - 1 {
					b.fits[i*64+bits.TrailingZeros64(w)] = false
				}
			}
		}
	}
	for s, is := range fresh {
		if is {
			b.fits[s] = false
		}
	}
}
