package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// A fabric that one host makes up hangs on the real one by a cable, however many switches it shows and whatever names it
// assigns them; real parts of a fabric that are large hang on it by many. So the part that hangs by one cable is bounded
// apart from the whole (GrowthConfig.Cable), in discovery as well as later.
//
// Discovery goes level by level (readLevel). At the end of a level all cables between the switches found so far are known.
// Then the cables on which a part hangs alone are looked at. Within the next level the nodes found behind such a cable are
// counted. When they are too many, the rest is put off until the level ends: by then the part may have shown another way.

// cables is what is known of parts that hang by one cable.
type cables struct {
	parts    []part        // by node.part; the first stands for all that hangs by none
	frontier int           // ports of switches found since cables were looked at
	putOff   []topo.PortID // behind which too much is found, as far as is known
	deepAt   uint32        // window in which something lay too far away
	waits    []ref         // work on parts, while too many answers are late
}

// part is what hangs by one cable.
type part struct {
	port topo.PortID // nearer end of the cable
	size int         // of nodes that are not vouched for
}

// frontierShare is the share of GrowthConfig.Cable that so many new ports of switches
// must be for cables to be looked at, so that a look is paid for by what was found, and
// one more level cannot show much beyond the bound.
const frontierShare = 16

// mayHang reports whether a node which answers behind port p does not make the part that it hangs with too large. Otherwise
// it is asked again at the end of its level.
func (c *Core) mayHang(p topo.PortID, ni *mad.NodeInfo) bool {
	at := c.nodes[c.ports[p].node].part
	if at == 0 || c.cables.parts[at].size+sizeOf(ni.NumPorts) <= c.cfg.Growth.Cable || c.knownBefore(ni.PortGUID) {
		return true
	}
	c.cables.putOff = append(c.cables.putOff, p)
	return false
}

// knownBefore reports whether a port had a LID when this core began. A LID assigned since then does not vouch for a port:
// any port that answers gets one.
func (c *Core) knownBefore(guid ib.GUID) bool {
	l, ok := c.lids.byGUID[guid]
	return ok && !c.lids.isNew(l)
}

// hangs counts a new node, found behind port up, with the part that it hangs with.
func (c *Core) hangs(id topo.NodeID, ni *mad.NodeInfo, up topo.PortID) {
	n := &c.nodes[id]
	n.vouched = c.knownBefore(ni.PortGUID)
	if ni.NodeType == ib.NodeSwitch {
		c.cables.frontier += int(ni.NumPorts)
	}
	if up == topo.None {
		return
	}
	if n.part = c.nodes[c.ports[up].node].part; n.part != 0 && !n.vouched {
		c.cables.parts[n.part].size += sizeOf(ni.NumPorts)
	}
}

// fellOff takes a node out of its part.
func (c *Core) fellOff(id topo.NodeID) {
	if n := &c.nodes[id]; n.part != 0 && !n.vouched {
		c.cables.parts[n.part].size -= sizeOf(c.topo.Node(id).NumPorts)
	}
}

// waits reports whether work has to wait. It does if it is on a part that hangs by one cable, and as many answers are late
// as the window has requests. A host that answers late on purpose, ever at another node, must not use up what silent nodes
// leave to the others.
func (c *Core) waits(x ref, target topo.NodeID) bool {
	if c.wire.out-c.wire.fresh < c.cfg.Window {
		return false
	}
	if target == topo.None {
		if x.class != clsProbe {
			return false
		}
		target = c.ports[x.id].node
	}
	if n := &c.nodes[target]; n.part == 0 || n.vouched {
		return false
	}
	c.cables.waits = append(c.cables.waits, x)
	return true
}

// holdsUp reports whether a request is about such a part while more work on such parts waits. No other work waits for the
// answer.
func (c *Core) holdsUp(r *request) bool {
	id := r.node
	if id == topo.None && r.ref.class == clsProbe {
		id = c.ports[r.ref.id].node
	}
	return len(c.cables.waits) > 0 && id != topo.None && c.nodes[id].part != 0 && !c.nodes[id].vouched
}

// waitNoMore puts as much of that work back as there is room for.
func (c *Core) waitNoMore() {
	s := &c.cables
	n := min(len(s.waits), c.cfg.Window-(c.wire.out-c.wire.fresh))
	if n <= 0 {
		return
	}
	for _, x := range s.waits[:n] {
		if c.marksOf(x).queued&(1<<x.class) != 0 {
			c.q.push(1+int(x.class), x)
		}
	}
	if s.waits = s.waits[n:]; len(s.waits) == 0 {
		s.waits = nil
	}
}

// lookAtCables holds the cables on which too much hangs, at the end of a level.
func (c *Core) lookAtCables() {
	s := &c.cables
	if len(s.putOff) == 0 && s.frontier < max(1, c.cfg.Growth.Cable/frontierShare) {
		return
	}
	for c.holdHanging() {
	}
	s.frontier = 0
	putOff := s.putOff
	s.putOff = nil
	for _, p := range putOff {
		if c.nodes[c.ports[p].node].alive && !c.dark(p) {
			c.markPort(clsProbe, p)
		}
	}
}

// holdHanging finds the parts, and holds the cable of the first that is too large. It
// reports whether there was one.
func (c *Core) holdHanging() bool {
	w := c.walkSwitches()
	c.divide(w)
	s := &c.cables
	for _, p := range s.putOff {
		if n := &c.nodes[c.ports[p].node]; n.alive && n.part != 0 && !c.dark(p) {
			s.parts[n.part].size++ // of which there is at least one more
		}
	}
	for i := 1; i < len(s.parts); i++ {
		if s.parts[i].size > c.cfg.Growth.Cable {
			p := c.hangsMost(w, s.parts[i].port)
			c.holdBack(p, s.parts[i].size)
			return c.dark(p)
		}
	}
	return false
}

// tooFar reports whether a port lies so far from us that no node behind it is looked at. A chain that hangs by one cable is
// held there.
func (c *Core) tooFar(p topo.PortID) bool {
	if c.routeTo(c.ports[p].node).Len() < c.cfg.Growth.Hops {
		return false
	}
	if w := c.newWindow().window; !c.ports[p].told && c.cables.deepAt != w {
		c.cables.deepAt = w
		walked := c.walkSwitches()
		c.divide(walked)
		if at := c.nodes[c.ports[p].node].part; at != 0 {
			c.holdBack(c.hangsMost(walked, c.cables.parts[at].port), c.cables.parts[at].size)
			return true
		}
	}
	c.tellUnreachable(p)
	return true
}

// walk is a search of the switches for cables that are the only way to what is behind
// them.
type walk struct {
	order  []topo.NodeID // switches, each after the one it was found from
	size   []int         // by topo.NodeID: of what is not vouched for there and behind
	hosts  []int         // by topo.NodeID: adapters and routers there and behind
	in     []topo.PortID // by topo.NodeID: port of another switch that it was found by
	bridge []bool        // by topo.NodeID: no other cable leads there
	stem   bool          // see findStem
}

// stemHosts is how many hosts a switch may have, ours included, that is there for
// managers alone.
const stemHosts = 4

// findStem reports whether our own switch is there for managers alone, and each of its cables to another switch is the only
// one there. Then one of them is the way to the fabric rather than to a part of it.
func (w *walk) findStem(parent func(topo.NodeID) topo.NodeID) bool {
	first := w.order[0]
	hosts := w.hosts[first]
	for _, id := range w.order[1:] {
		if parent(id) != first {
			continue
		}
		if !w.bridge[id] {
			return false
		}
		hosts -= w.hosts[id]
	}
	return hosts <= stemHosts
}

// step is a switch that the search stands at, and the next of its ports.
type step struct {
	id   topo.NodeID
	next int
}

// walkSwitches walks over all cables between switches, from ours on. Adapters forward
// nothing, so each counts with the switch that it is asked over.
func (c *Core) walkSwitches() *walk {
	n := len(c.nodes)
	w := &walk{size: make([]int, n), hosts: make([]int, n), in: make([]topo.PortID, n), bridge: make([]bool, n)}
	seen, low := make([]int32, n), make([]int32, n)
	for i := range c.nodes {
		id := topo.NodeID(i)
		if !c.nodes[i].alive {
			continue
		}
		at := id
		if up := c.nodes[i].up; c.topo.Node(id).Type != ib.NodeSwitch && up != topo.None {
			at = c.ports[up].node
			w.hosts[at]++
		}
		if !c.nodes[i].vouched {
			w.size[at] += sizeOf(c.topo.Node(id).NumPorts)
		}
	}
	first := c.firstSwitch()
	if first == topo.None {
		return w
	}
	clock := int32(1)
	seen[first], low[first], w.in[first] = clock, clock, topo.None
	w.order = append(w.order, first)
	way := []step{{id: first, next: 1}}
	for len(way) > 0 {
		at := &way[len(way)-1]
		tn := c.topo.Node(at.id)
		if at.next > int(tn.NumPorts) {
			v := at.id
			way = way[:len(way)-1]
			if len(way) > 0 {
				u := way[len(way)-1].id
				low[u] = min(low[u], low[v])
				w.bridge[v] = low[v] > seen[u]
				w.size[u] += w.size[v]
				w.hosts[u] += w.hosts[v]
			}
			continue
		}
		p := tn.FirstPort + topo.PortID(at.next)
		at.next++
		q := c.peer(p)
		if q == topo.None || !c.external(q) || q == w.in[at.id] {
			continue
		}
		v := c.ports[q].node
		if seen[v] != 0 {
			low[at.id] = min(low[at.id], seen[v])
			continue
		}
		clock++
		seen[v], low[v], w.in[v] = clock, clock, p
		w.order = append(w.order, v)
		way = append(way, step{id: v, next: 1})
	}
	w.stem = w.findStem(func(id topo.NodeID) topo.NodeID { return c.ports[w.in[id]].node })
	return w
}

// firstSwitch returns the switch next to us.
func (c *Core) firstSwitch() topo.NodeID {
	if c.root == topo.None || c.topo.Node(c.root).Type == ib.NodeSwitch {
		return c.root
	}
	if p := c.peer(c.rootPort); p != topo.None && c.external(p) {
		return c.ports[p].node
	}
	return topo.None
}

// holdsAlone reports whether a part begins on a switch: one cable leads to it, which may be held.
func (c *Core) holdsAlone(w *walk, id topo.NodeID) bool {
	return w.bridge[id] && !c.nodes[id].vouched && c.holdable(w.in[id]) && !(w.stem && c.ports[w.in[id]].node == w.order[0])
}

// divide records for each node the part it hangs with: that of the cable nearest to us. A node that hangs with none has
// shown that it is no part of one, once and for all.
func (c *Core) divide(w *walk) {
	s := &c.cables
	s.parts = append(s.parts[:0], part{port: topo.None})
	for _, id := range w.order {
		n := &c.nodes[id]
		n.part = 0
		if in := w.in[id]; in != topo.None {
			n.part = c.nodes[c.ports[in].node].part
		}
		if n.part == 0 && c.holdsAlone(w, id) {
			n.part = int32(len(s.parts))
			s.parts = append(s.parts, part{port: w.in[id], size: w.size[id]})
		}
		n.vouched = n.vouched || n.part == 0 && !w.stem
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		if !n.alive || c.topo.Node(topo.NodeID(i)).Type == ib.NodeSwitch {
			continue
		}
		if n.part = 0; n.up != topo.None {
			n.part = c.nodes[c.ports[n.up].node].part
		}
		n.vouched = n.vouched || n.part == 0 && !w.stem
	}
}

// hangsMost returns the cable to hold for a part that is too large. By default it is the part's own cable, where all of it
// begins. But honest hosts may hang with it; then it is a cable further in, by which nearly all of the part hangs but those
// hosts do not. Where something is held in the part already, it is the part's own cable again. Otherwise a device that
// makes up the part, hosts included, would be met again at each of its switches.
func (c *Core) hangsMost(w *walk, outer topo.PortID) topo.PortID {
	top := c.ports[c.peer(outer)].node
	for _, pl := range c.health.sick {
		if id := c.topo.NodeByGUID(pl.Switch); id != topo.None && c.health.at[pl].worst == Overgrown && c.nodes[id].part == c.nodes[top].part {
			return outer
		}
	}
	best := top
	for _, id := range w.order { // one that is as large as another lies before or behind it
		if c.nodes[id].part == c.nodes[top].part && 4*w.size[id] >= 3*w.size[top] && w.hosts[id] < w.hosts[best] && c.holdsAlone(w, id) {
			best = id
		}
	}
	return w.in[best]
}
