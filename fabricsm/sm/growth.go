package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Where inventory knows of no host, any device that reports itself as a switch is believed, so one host can show a fabric
// without end. It is bounded by size: a node counts one, and one more for each 16 ports.

// GrowthConfig bounds what may be found. Nodes beyond the bound are not looked at for a while (see HealthConfig.Recover).
// The link in front of them is held, as with NoDiscover, until the pause is over or an operator marks it healthy.
type GrowthConfig struct {
	// Ceiling is the size of the largest fabric there may be; default 81920,
	// which 49151 hosts on 64-port switches have.
	Ceiling int
	// Entry is the size of what may be found within Window behind one port that
	// is part of the fabric for long, if none of it was seen before; default
	// 16384. It is also the size of what is let go when the ceiling is reached.
	Entry int
	// Window is default 1 min.
	Window time.Duration
	// Cable is the size of what may hang on the rest by one cable alone, if none of it
	// was known when the core began; default 2048. See hanging.go.
	Cable int
	// Hops is how many hops from us a port may be behind which something is looked
	// for, 1 to mad.MaxHops; default mad.MaxHops.
	Hops int
}

func (g *GrowthConfig) withDefaults() {
	def(&g.Ceiling, 81920)
	def(&g.Entry, 16384)
	def(&g.Window, time.Minute)
	def(&g.Cable, 2048)
	def(&g.Hops, mad.MaxHops)
}

// growth checks the bounds.
func (k *configChecker) growth(g *GrowthConfig) {
	k.notNegative("growth ceiling", int64(g.Ceiling))
	k.notNegative("growth of an entry", int64(g.Entry))
	k.notNegative("growth window", int64(g.Window))
	k.notNegative("growth behind one cable", int64(g.Cable))
	if g.Hops < 0 || g.Hops > mad.MaxHops {
		k.wrong("growth: %d hops: want 1 to %d", g.Hops, mad.MaxHops)
	}
}

const (
	// youngFor is how many windows a node counts as new: nodes behind it count as found behind the older port that it was
	// found behind.
	youngFor = 60
	// maxHeld is how many links are held in one window. Then each link to a new
	// node waits by itself, so that discovery ends.
	maxHeld = 16
)

// growth is what was found lately.
type growth struct {
	size   int    // of all nodes there are
	window uint32 // since the start, from 1
	added  int    // size of new nodes found in it
	held   int    // links held in it
	// An entry is looked for when added or size reaches these, so that a search
	// is paid for by many nodes.
	nextAdded, nextSize int
	full                bool // nothing new is let in until the next window
}

func sizeOf(ports uint8) int { return 1 + int(ports)/16 }

// newWindow begins to count again from zero when it is time.
func (c *Core) newWindow() *growth {
	g := &c.growth
	if w := 1 + uint32(c.now.Sub(c.born)/c.cfg.Growth.Window); w != g.window {
		*g = growth{size: g.size, window: w, nextAdded: c.cfg.Growth.Entry, nextSize: c.cfg.Growth.Ceiling}
	}
	return g
}

// mayGrow reports whether the node which answers behind port p may become part of the fabric.
func (c *Core) mayGrow(p topo.PortID, ni *mad.NodeInfo) bool {
	g := c.newWindow()
	size := sizeOf(ni.NumPorts)
	if g.added+size > g.nextAdded && c.counts(ni) {
		c.holdGrown(c.grownMost(), g.added)
		g.nextAdded = g.added + c.cfg.Growth.Entry/4
	}
	if g.size+size > g.nextSize {
		c.holdGrown(c.widest(), g.size)
		g.full = g.full || g.size+size > c.cfg.Growth.Ceiling
	}
	return !g.full && c.nodes[c.ports[p].node].alive && !c.dark(p)
}

// turnAway looks later at a new node that there is no room for.
func (c *Core) turnAway(p topo.PortID) {
	pt := &c.ports[p]
	if !c.nodes[pt.node].alive || c.dark(p) {
		return
	}
	pt.told = true // it is asked as an audit would: nothing waits for it
	c.after(c.cfg.RetryMax, timerRetry, ref{clsProbe, int32(p)})
}

// counts reports whether a node counts as growth: this SM is master and never assigned it a LID.
func (c *Core) counts(ni *mad.NodeInfo) bool {
	_, known := c.lids.byGUID[ni.PortGUID]
	return !known && c.writing()
}

// grew counts a node that became part of the fabric.
func (c *Core) grew(id topo.NodeID, ni *mad.NodeInfo) {
	g := c.newWindow()
	size := sizeOf(ni.NumPorts)
	g.size += size
	if c.counts(ni) {
		g.added += size
		c.nodes[id].grown = g.window
	}
}

// shrank counts a node that goes.
func (c *Core) shrank(id topo.NodeID) { c.growth.size -= sizeOf(c.topo.Node(id).NumPorts) }

// young reports whether a node was found lately and not before.
func (c *Core) young(id topo.NodeID) bool {
	at := c.nodes[id].grown
	return at != 0 && at+youngFor > c.growth.window
}

// grownMost returns the port behind which most was found in this window, among the ports of the fabric as it was before. It
// returns None if nowhere is too much.
func (c *Core) grownMost() topo.PortID {
	sums := c.subtrees(func(id topo.NodeID) bool { return c.nodes[id].grown == c.growth.window })
	best, most := topo.PortID(topo.None), c.cfg.Growth.Entry-1
	for id, sum := range sums.size {
		if sum <= most || !c.young(topo.NodeID(id)) {
			continue
		}
		if up := c.nodes[id].up; c.holdable(up) && !c.young(c.ports[up].node) {
			best, most = up, sum
		}
	}
	return best
}

// widest returns the port behind which there is too much for no good reason. It is the last port, on the way to where most
// is, that has as much behind it as one entry may have. Nearer to us there may be honest nodes behind the same port.
func (c *Core) widest() topo.PortID {
	if c.root == topo.None {
		return topo.None
	}
	sums := c.subtrees(func(topo.NodeID) bool { return true })
	best := topo.PortID(topo.None)
	for id := sums.heaviest[c.root]; id != topo.None && sums.size[id] >= c.cfg.Growth.Entry; id = sums.heaviest[id] {
		up := c.nodes[id].up
		if c.vouched(up) {
			return topo.None // it is meant to be that much
		}
		if c.holdable(up) {
			best = up
		}
	}
	return best
}

// vouched reports whether an operator marked a port healthy.
func (c *Core) vouched(p topo.PortID) bool {
	r := c.health.at[c.placeOf(p)]
	return r != nil && r.mark == MarkHealthy
}

// holdable reports whether a port can be held: it is not on our own way into the fabric, and no operator marked it healthy.
func (c *Core) holdable(p topo.PortID) bool {
	if p == topo.None || !c.external(p) || c.protected(p) {
		return false
	}
	r := c.health.of(c.placeOf(p))
	return r != nil && r.mark != MarkHealthy
}

// subtreeSums is what there is behind each node, itself included, as directed routes
// lead.
type subtreeSums struct {
	size     []int         // by topo.NodeID
	heaviest []topo.NodeID // next node on the way to most
}

// subtrees sums the nodes that count. It looks at all nodes: its callers see to it
// that this is rare.
func (c *Core) subtrees(counts func(topo.NodeID) bool) subtreeSums {
	s := subtreeSums{size: make([]int, len(c.nodes)), heaviest: make([]topo.NodeID, len(c.nodes))}
	var byDepth [mad.MaxHops + 1][]topo.NodeID
	for i := range c.nodes {
		id := topo.NodeID(i)
		s.heaviest[i] = topo.None
		if !c.nodes[i].alive {
			continue
		}
		depth := c.routeTo(id).Len()
		byDepth[depth] = append(byDepth[depth], id)
		if counts(id) {
			s.size[i] = sizeOf(c.topo.Node(id).NumPorts)
		}
	}
	for depth := mad.MaxHops; depth > 0; depth-- {
		for _, id := range byDepth[depth] {
			up := c.ports[c.nodes[id].up].node
			s.size[up] += s.size[id]
			if h := s.heaviest[up]; h == topo.None || s.size[id] > s.size[h] {
				s.heaviest[up] = id
			}
		}
	}
	return s
}

// holdGrown holds the port behind which too much was found. count is what made
// that known.
func (c *Core) holdGrown(p topo.PortID, count int) {
	g := &c.growth
	if p == topo.None {
		return
	}
	if g.held++; g.held > maxHeld {
		g.full = true
		return
	}
	c.holdBack(p, count)
}

// holdBack holds a port. count is how much was found.
func (c *Core) holdBack(p topo.PortID, count int) {
	pl := c.placeOf(p)
	r := c.health.of(pl)
	if far := c.peer(p); far != topo.None {
		r.guid = c.nodeGUID(c.ports[far].node)
	}
	c.fallIll(pl, r, &Unhealthy{
		Place: pl, GUID: r.guid, Condition: Overgrown, Count: count, Window: c.cfg.Growth.Window, Action: NoDiscover,
	})
}

// illness names the problem that a condition is.
func illness(cond Condition, pl ib.Place) problemKey {
	if cond == Overgrown {
		return problemKey{kind: tooMany, place: pl}
	}
	return problemKey{kind: unhealthy, place: pl}
}
