package turnrule

import (
	"slices"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/nexthop"
)

// Tree is a fabric whose switches stand on levels: those that CAs are cabled to
// on the lowest, and each link leads from one level to the next. Fat trees are
// such, also when cables or spines are lost.
type Tree struct {
	g     *route.Graph
	level []int32 // by switch: links to the nearest switch with CAs
	order []int32 // switches, the highest level first, then by number

	links

	turns [2]way // where packets turn that no way up and then down leads on
	two   bool   // they are not the same
	once  bool   // all packets turn at one leaf, not the usual one
}

// way is the ways to a switch of every island.
type way struct {
	order []int32 // switches with a way, each after those it sends to
	end   []int32 // by switch: the end of the ways on its island, -1 without one
	row   []int32 // by switch, in pairs: its range of edge
	edge  []int32
}

// NewTree finds the levels, ok is false if a link joins two switches of one level.
// A switch whose CAs are all away still has them, as long as their LIDs are kept.
func NewTree(g *route.Graph) (t *Tree, ok bool) {
	n := len(g.IDs)
	t = &Tree{g: g, level: make([]int32, n)}
	for s := range t.level {
		t.level[s] = -1
	}
	queue := make([]int32, 0, n)
	for s := range int32(n) {
		if Leaf(g, s) {
			t.level[s] = 0
			queue = append(queue, s)
		}
	}
	queue = t.spread(queue)
	for s := range int32(n) {
		if t.level[s] < 0 { // an island without CAs
			t.level[s] = 0
			queue = t.spread(append(queue[:0], s))
		}
	}
	for s := range int32(n) {
		for _, to := range g.To[g.Row[s]:g.Row[s+1]] {
			if t.level[to] == t.level[s] {
				return nil, false
			}
		}
	}
	t.sortLinks()
	t.findTurns()
	return t, true
}

// Leaf reports whether a switch has CAs, or LIDs of CAs that are away.
func Leaf(g *route.Graph, s int32) bool {
	targets := g.Targets[s] // CAs first
	return g.Hosts[s] > 0 || len(targets) > 0 && targets[0].Out != 0
}

// elsewhere is added to levels where packets do not turn where they always do.
const elsewhere = 1 << 16

// Basis returns the input of the choices besides the links, see [nexthop.Plan]: the level of every switch.
func (t *Tree) Basis() []int32 {
	b := make([]int32, len(t.g.Num))
	for id, s := range t.g.Num {
		switch {
		case s < 0:
			b[id] = -1
		case t.once:
			b[id] = elsewhere + t.level[s]
		default:
			b[id] = t.level[s]
		}
	}
	return b
}

func (t *Tree) spread(queue []int32) []int32 {
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		for _, v := range t.g.To[t.g.Row[u]:t.g.Row[u+1]] {
			if t.level[v] < 0 {
				t.level[v] = t.level[u] + 1
				queue = append(queue, v)
			}
		}
	}
	return queue
}

func (t *Tree) sortLinks() {
	n, top := len(t.level), slices.Max(append([]int32{0}, t.level...))
	t.links = sortLinks(t.g, func(from, to int32) bool { return t.level[to] > t.level[from] })
	t.order = make([]int32, 0, n)
	for level := top; level >= 0; level-- {
		for s := range int32(n) {
			if t.level[s] == level {
				t.order = append(t.order, s)
			}
		}
	}
}

// maxTurns is how many leaves are tried for one that all have a way to.
const maxTurns = 64

// findTurns picks, for each island, the leaf with the lowest number, and the first that every switch has a way up and then
// down to. Packets that must come down and go up again all do so at the first. Only where a lost cable blocks the way
// there, they go to the second. While all turn at one leaf no cycle closes: packets that leave it again do not come back.
// With two leaves a cycle rarely closes, see [Tree.TurnOnce].
func (t *Tree) findTurns() {
	n := len(t.level)
	for i := range t.turns {
		t.turns[i].row, t.turns[i].end = make([]int32, 2*n), make([]int32, n)
		for s := range t.turns[i].end {
			t.turns[i].end[s] = -1
		}
	}
	r := t.rule()
	island, sizes := islandsOf(t.g)
	var c nexthop.Choices
	tried, found := make([]int, n), make([]bool, n)
	for s := range int32(n) {
		i := island[s]
		if t.level[s] != 0 || found[i] || tried[i] > maxTurns {
			continue
		}
		c.Reset()
		r.straight(s, &c)
		if tried[i] == 0 {
			t.turns[0].add(&c)
			t.turns[0].end[i] = s
		}
		if len(c.Order) == sizes[i] {
			found[i] = true
			t.turns[1].add(&c)
			t.turns[1].end[i] = s
			t.two = t.two || tried[i] > 0
		}
		tried[i]++
	}
	for i := range t.turns {
		t.turns[i].spreadEnd(island)
	}
}

// spreadEnd copies the end of the first switch of an island to all its switches.
func (w *way) spreadEnd(island []int32) {
	for s, i := range island {
		w.end[s] = w.end[i]
	}
}

// Ways says what [Tree.Rule] with shortest paths does, for single switches.
func (t *Tree) Ways() *nexthop.Ways {
	return &nexthop.Ways{Order: t.order, Turn: t.turns[0].end, Most: shortUp}
}

// TurnOnce makes all packets turn at the second leaf, where there is one. The
// price is that they do not turn where they used to.
func (t *Tree) TurnOnce() {
	if t.two {
		t.turns[0], t.turns[1], t.two, t.once = t.turns[1], t.turns[0], false, true
	}
}

// TurnedOnce reports whether that was so when tables were made.
func TurnedOnce(t *route.Tables) bool {
	n := t.Notes()
	return n != nil && slices.ContainsFunc(n.Basis, func(level int32) bool { return level >= elsewhere })
}

func (w *way) add(c *nexthop.Choices) {
	for i, s := range c.Order {
		w.order = append(w.order, s)
		w.row[2*s] = int32(len(w.edge))
		w.edge = append(w.edge, c.Edge[c.Row[i]:c.Row[i+1]]...)
		w.row[2*s+1] = int32(len(w.edge))
	}
}

func (w *way) of(s int32) []int32 { return w.edge[w.row[2*s]:w.row[2*s+1]] }

// islandsOf numbers the island of each switch by its first switch, and returns their sizes by that number.
func islandsOf(g *route.Graph) (island []int32, sizes []int) {
	n := len(g.IDs)
	island, sizes = make([]int32, n), make([]int, n)
	hops := make([]int32, n)
	var queue []int32
	for s := range int32(n) {
		if hops[s] != 0 {
			continue
		}
		queue = Walk(g, []int32{s}, queue[:0], hops)
		for _, v := range queue {
			island[v] = s
		}
		sizes[s] = len(queue)
	}
	return island, sizes
}

// Rule returns a rule: the shortest of the ways that go up and then down. A switch without one, as a spine has none to
// another spine, sends towards the leaf where packets turn, until one of the switches on that way has one. If shortest is
// set, and some switch with CAs would need more links to the CAs of another switch than its shortest way has, shortest sets
// the choices towards that destination.
func (t *Tree) Rule(shortest nexthop.Rule) nexthop.Rule {
	r := t.rule()
	return func(dest int32, c *nexthop.Choices) {
		long := r.straight(dest, c)
		if len(c.Order) < len(t.order) {
			r.turnAt(&t.turns[0], c)
			r.turnAt(&t.turns[1], c)
			r.rescue(c)
		}
		if long && shortest != nil && t.level[dest] == 0 && r.detours(dest) {
			c.Reset()
			shortest(dest, c)
		}
	}
}

// treeRule is the scratch memory of a rule.
type treeRule struct {
	*Tree
	hops []int32 // by switch: links to the destination, -1 without a way
	dist []int32 // by switch, the same with no regard to turns
	todo []int32
}

func (t *Tree) rule() *treeRule { return &treeRule{Tree: t, hops: make([]int32, len(t.level))} }

// shortUp is how many links up and down from a leaf are never more than on the
// shortest way: two leaves with a common neighbour have it above them.
const shortUp = 4

// straight finds the switches with a way up and then down. long is true if for
// one with CAs another way could be shorter.
func (r *treeRule) straight(dest int32, c *nexthop.Choices) (long bool) {
	g, hops := r.g, r.hops
	for s := range hops {
		hops[s] = -1
	}
	hops[dest] = 0
	c.Order = append(c.Order, dest)
	c.Row = append(c.Row, int32(len(c.Edge)))
	// Down: all that have the destination below them.
	for i := 0; i < len(c.Order); i++ {
		u := c.Order[i]
		for _, e := range r.ups(u) {
			if v := g.To[e]; hops[v] < 0 {
				hops[v] = hops[u] + 1
				c.Order = append(c.Order, v)
			}
		}
	}
	for _, s := range c.Order[1:] {
		for _, e := range r.downs(s) {
			if hops[g.To[e]] >= 0 {
				c.Edge = append(c.Edge, e)
			}
		}
		c.Row = append(c.Row, int32(len(c.Edge)))
	}
	// Up: from the top, so that the switches above are known.
	for _, s := range r.order {
		if hops[s] >= 0 {
			continue
		}
		first, least := len(c.Edge), int32(-1)
		for _, e := range r.ups(s) {
			h := hops[g.To[e]]
			if h < 0 || least >= 0 && h > least {
				continue
			}
			if h < least || least < 0 {
				least, c.Edge = h, c.Edge[:first]
			}
			c.Edge = append(c.Edge, e)
		}
		if least < 0 {
			long = long || g.Hosts[s] > 0
			continue
		}
		hops[s] = least + 1
		long = long || least+1 > shortUp && g.Hosts[s] > 0
		c.Order = append(c.Order, s)
		c.Row = append(c.Row, int32(len(c.Edge)))
	}
	return long
}

// detours reports whether a switch with CAs has a longer way than need be.
func (r *treeRule) detours(dest int32) bool {
	if r.dist == nil {
		r.dist = make([]int32, len(r.hops))
	}
	clear(r.dist)
	r.todo = Walk(r.g, []int32{dest}, r.todo[:0], r.dist)
	for _, s := range r.todo {
		if r.g.Hosts[s] > 0 && r.hops[s] != r.dist[s]-1 {
			return true
		}
	}
	return false
}

// turnAt adds the switches without a way that have one to where packets turn.
func (r *treeRule) turnAt(w *way, c *nexthop.Choices) {
	for _, s := range w.order {
		if r.hops[s] < 0 {
			r.join(s, w.of(s), c)
		}
	}
}

// join adds a switch that some of its links, if any, lead on from.
func (r *treeRule) join(s int32, edges []int32, c *nexthop.Choices) {
	first, least := len(c.Edge), int32(-1)
	for _, e := range edges {
		h := r.hops[r.g.To[e]]
		if h < 0 || least >= 0 && h > least {
			continue
		}
		if h < least || least < 0 {
			least, c.Edge = h, c.Edge[:first]
		}
		c.Edge = append(c.Edge, e)
	}
	if least < 0 {
		return
	}
	r.hops[s] = least + 1
	c.Order = append(c.Order, s)
	c.Row = append(c.Row, int32(len(c.Edge)))
}

// rescue adds the remaining switches, by the nearest neighbour that has a way.
func (r *treeRule) rescue(c *nexthop.Choices) {
	for known := -1; known < len(c.Order) && len(c.Order) < len(r.order); {
		known = len(c.Order)
		r.todo = r.todo[:0]
		for _, s := range r.order {
			if r.hops[s] < 0 {
				r.todo = append(r.todo, s)
			}
		}
		for _, s := range r.todo {
			r.join(s, r.all(s), c)
		}
	}
}

// all returns the edges of a switch.
func (r *treeRule) all(s int32) []int32 {
	all := make([]int32, 0, r.g.Row[s+1]-r.g.Row[s])
	for e := r.g.Row[s]; e < r.g.Row[s+1]; e++ {
		all = append(all, e)
	}
	return all
}
