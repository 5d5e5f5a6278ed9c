package subtree

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

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

// newWindow begins to count again from zero when it is time.
func (t *Tracker) newWindow() *growth {
	g := &t.growth
	if w := 1 + uint32(t.fabric.Age()/t.limits.Window); w != g.window {
		*g = growth{size: g.size, window: w, nextAdded: t.limits.Entry, nextSize: t.limits.Ceiling}
	}
	return g
}

// MayGrow reports whether a node may become part of the fabric. It holds the port behind which too much was found.
func (t *Tracker) MayGrow(f *Found) bool {
	g := t.newWindow()
	if g.added+f.size() > g.nextAdded && f.New {
		t.holdGrown(t.findFastest(), g.added)
		g.nextAdded = g.added + t.limits.Entry/4
	}
	if g.size+f.size() > g.nextSize {
		t.holdGrown(t.deepestOversized(), g.size)
		g.full = g.full || g.size+f.size() > t.limits.Ceiling
	}
	return !g.full && t.isOpen(f.Port)
}

// isYoung reports whether a node was found lately and not before.
func (t *Tracker) isYoung(id topo.NodeID) bool {
	at := t.nodes[id].grown
	return at != 0 && at+youngFor > t.growth.window
}

// findFastest returns the port behind which most was found in this window, among the ports of the fabric as it was before.
// It returns None if nowhere is too much.
func (t *Tracker) findFastest() topo.PortID {
	sums := t.sumSubtrees(func(id topo.NodeID) bool { return t.nodes[id].grown == t.growth.window })
	best, most := topo.PortID(topo.None), t.limits.Entry-1
	for i, sum := range sums.size {
		id := topo.NodeID(i)
		if sum <= most || !t.isYoung(id) {
			continue
		}
		if up := t.fabric.Up(id); t.fabric.MayHold(up) && !t.isYoung(t.topo.Port(up).Node) {
			best, most = up, sum
		}
	}
	return best
}

// deepestOversized returns the port farthest from us, on the way to where most is, that has as much behind it as one entry
// may have. Nearer to us there may be honest nodes behind the same port. It returns None if an operator trusts a port on
// the way.
func (t *Tracker) deepestOversized() topo.PortID {
	root, _ := t.fabric.Root()
	if root == topo.None {
		return topo.None
	}
	sums := t.sumSubtrees(func(topo.NodeID) bool { return true })
	best := topo.PortID(topo.None)
	for id := sums.heaviest[root]; id != topo.None && sums.size[id] >= t.limits.Entry; id = sums.heaviest[id] {
		up := t.fabric.Up(id)
		if t.fabric.IsTrusted(up) {
			return topo.None // it is meant to be that much
		}
		if t.fabric.MayHold(up) {
			best = up
		}
	}
	return best
}

// sums is what there is behind each node, itself included, as directed routes
// lead.
type sums struct {
	size     []int         // by topo.NodeID
	heaviest []topo.NodeID // next node on the way to most
}

// sumSubtrees sums the nodes that count. It looks at all nodes: its callers see to it
// that this is rare.
func (t *Tracker) sumSubtrees(counts func(topo.NodeID) bool) sums {
	s := sums{size: make([]int, len(t.nodes)), heaviest: make([]topo.NodeID, len(t.nodes))}
	var byDepth [mad.MaxHops + 1][]topo.NodeID
	for i := range t.nodes {
		id := topo.NodeID(i)
		s.heaviest[i] = topo.None
		if !t.fabric.IsAlive(id) {
			continue
		}
		depth := t.fabric.Hops(id)
		byDepth[depth] = append(byDepth[depth], id)
		if counts(id) {
			s.size[i] = Size(t.topo.Node(id).NumPorts)
		}
	}
	for depth := mad.MaxHops; depth > 0; depth-- {
		for _, id := range byDepth[depth] {
			up := t.topo.Port(t.fabric.Up(id)).Node
			s.size[up] += s.size[id]
			if h := s.heaviest[up]; h == topo.None || s.size[id] > s.size[h] {
				s.heaviest[up] = id
			}
		}
	}
	return s
}

// holdGrown holds the port behind which too much was found. size is what made that known.
func (t *Tracker) holdGrown(p topo.PortID, size int) {
	g := &t.growth
	if p == topo.None {
		return
	}
	if g.held++; g.held > maxHeld {
		g.full = true
		return
	}
	t.fabric.Hold(p, size)
}
