// Package subtree bounds how much of a fabric one port may show.
//
// Where inventory knows of no host, any device that reports itself as a switch is believed, so one host can show a fabric
// without end. It is bounded by size: a node counts one, and one more for each 16 ports. growth.go bounds what is found
// lately, and all of it.
//
// A fabric that one host makes up hangs on the real one by a cable, however many switches it shows and whatever names it
// assigns them; real parts of a fabric that are large hang on it by many. So the subtree that hangs by one cable is bounded
// apart from the whole (Limits.Cable), in discovery as well as later.
//
// Discovery goes level by level. At the end of a level all cables between the switches found so far are known. Then the
// cables on which a subtree hangs alone are looked at. Within the next level the nodes found behind such a cable are
// counted. When they are too many, the rest is put off until the level ends: by then the subtree may have shown another
// way.
package subtree

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Fabric is what a Tracker asks of the core, and where it has ports held.
type Fabric interface {
	// Age returns the time since the core began.
	Age() time.Duration
	// Root returns the node that this subnet manager is attached to, and our port on it.
	Root() (topo.NodeID, topo.PortID)
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// Up returns the port of the node nearer to us by which a node is asked.
	Up(topo.NodeID) topo.PortID
	// Hops returns the length of the directed route to a node.
	Hops(topo.NodeID) int
	// IsTrusted reports whether an operator marked a port healthy.
	IsTrusted(topo.PortID) bool
	// MayHold reports whether a port can be held: it is not on our own way into the fabric, and no operator marked it
	// healthy.
	MayHold(topo.PortID) bool
	// IsHeld reports whether no node behind a port is looked at.
	IsHeld(topo.PortID) bool
	// AnyHeld reports whether a switch of which a port is held for its size is one of those that match.
	AnyHeld(match func(topo.NodeID) bool) bool
	// Hold holds a port behind which nodes of some size were found.
	Hold(p topo.PortID, size int)
}

// Found is a node that answers behind a port.
type Found struct {
	Port   topo.PortID // None: it is the node that we are attached to
	Ports  uint8
	Switch bool
	// Known is set for a node that had a LID when the core began. A LID assigned since then does not vouch for a node: any
	// node that answers gets one.
	Known bool
	// New is set for a node that counts as growth: this subnet manager is master and never assigned it a LID.
	New bool
}

func (f *Found) size() int { return Size(f.Ports) }

// Size returns the size of a node with some number of ports.
func Size(ports uint8) int { return 1 + int(ports)/16 }

// node is the known state of a node.
type node struct {
	grown   uint32 // window in which it was found, 0 if it counts as no growth
	part    int32  // subtree that it belongs to, in Tracker.parts; 0: none
	vouched bool   // it was known before, or once belonged to none
}

// part is a subtree that hangs by one cable.
type part struct {
	port topo.PortID // nearer end of the cable
	size int         // of nodes that are not vouched for
}

// Tracker is what was found, by subtree and by time. Use New.
type Tracker struct {
	fabric Fabric
	topo   *topo.Builder
	limits Limits
	nodes  []node // by topo.NodeID
	growth growth

	parts    []part        // by node.part; the first stands for all that belongs to none
	frontier int           // ports of switches found since cables were looked at
	putOff   []topo.PortID // behind which too much is found, as far as is known
	deepAt   uint32        // window in which something lay too far away
}

// New returns a tracker of an empty fabric.
func New(f Fabric, t *topo.Builder, l Limits) *Tracker {
	return &Tracker{fabric: f, topo: t, limits: l}
}

// frontierShare is the share of Limits.Cable that so many new ports of switches must be for cables to be looked at, so that
// a look is paid for by what was found, and one more level cannot show much beyond the bound.
const frontierShare = 16

// MayHang reports whether a node does not make its subtree too large. Otherwise its port is among those that EndLevel
// returns, to be asked again.
func (t *Tracker) MayHang(f *Found) bool {
	at := t.nodeOf(f.Port).part
	if at == 0 || t.parts[at].size+f.size() <= t.limits.Cable || f.Known {
		return true
	}
	t.putOff = append(t.putOff, f.Port)
	return false
}

// Add records a node that became part of the fabric.
func (t *Tracker) Add(id topo.NodeID, f *Found) {
	t.nodes = topo.ExtendNodes(t.nodes, int(id)+1)
	n := &t.nodes[id]
	*n = node{vouched: f.Known}
	g := t.newWindow()
	g.size += f.size()
	if f.New {
		g.added += f.size()
		n.grown = g.window
	}
	if f.Switch {
		t.frontier += int(f.Ports)
	}
	if f.Port == topo.None {
		return
	}
	if n.part = t.nodeOf(f.Port).part; n.part != 0 && !n.vouched {
		t.parts[n.part].size += f.size()
	}
}

// Remove records that a node is no longer part of the fabric.
func (t *Tracker) Remove(id topo.NodeID) {
	size := Size(t.topo.Node(id).NumPorts)
	t.growth.size -= size
	if n := &t.nodes[id]; n.part != 0 && !n.vouched {
		t.parts[n.part].size -= size
	}
	t.nodes[id] = node{}
}

// nodeOf returns the state of the node that has a port.
func (t *Tracker) nodeOf(p topo.PortID) *node { return &t.nodes[t.topo.Port(p).Node] }

// IsSuspect reports whether a node belongs to a subtree that hangs by one cable, and nothing vouches for it.
func (t *Tracker) IsSuspect(id topo.NodeID) bool {
	return t.nodes[id].part != 0 && !t.nodes[id].vouched
}

// IsPending reports whether ports wait for the end of the level.
func (t *Tracker) IsPending() bool { return len(t.putOff) > 0 }

// EndLevel holds the cables on which too much hangs, at the end of a level. It returns the ports to be asked again.
func (t *Tracker) EndLevel() []topo.PortID {
	if len(t.putOff) == 0 && t.frontier < max(1, t.limits.Cable/frontierShare) {
		return nil
	}
	for t.holdOversized() {
	}
	t.frontier = 0
	putOff := t.putOff
	t.putOff = nil
	return slices.DeleteFunc(putOff, func(p topo.PortID) bool { return !t.isOpen(p) })
}

// isOpen reports whether what is behind a port is looked at.
func (t *Tracker) isOpen(p topo.PortID) bool {
	return t.fabric.IsAlive(t.topo.Port(p).Node) && !t.fabric.IsHeld(p)
}

// holdOversized finds the subtrees, and holds the cable of the first that is too large. It reports whether there was one.
func (t *Tracker) holdOversized() bool {
	w := t.walkSwitches()
	t.divide(w)
	for _, p := range t.putOff {
		if n := t.nodeOf(p); n.part != 0 && t.isOpen(p) {
			t.parts[n.part].size++ // of which there is at least one more
		}
	}
	for i := 1; i < len(t.parts); i++ {
		if t.parts[i].size > t.limits.Cable {
			p := t.cableToHold(w, t.parts[i].port)
			t.fabric.Hold(p, t.parts[i].size)
			return t.fabric.IsHeld(p)
		}
	}
	return false
}

// IsTooFar reports whether a port lies so far from us that no node behind it is looked at.
func (t *Tracker) IsTooFar(p topo.PortID) bool {
	return t.fabric.Hops(t.topo.Port(p).Node) >= t.limits.Hops
}

// HoldChain holds the subtree of a port that is too far, once in a window, and reports whether it did.
func (t *Tracker) HoldChain(p topo.PortID) bool {
	w := t.newWindow().window
	if t.deepAt == w {
		return false
	}
	t.deepAt = w
	walked := t.walkSwitches()
	t.divide(walked)
	at := t.nodeOf(p).part
	if at == 0 {
		return false
	}
	t.fabric.Hold(t.cableToHold(walked, t.parts[at].port), t.parts[at].size)
	return true
}

// divide records for each node the subtree that it belongs to: that of the cable nearest to us. A node that belongs to none
// is vouched for, and this is never withdrawn.
func (t *Tracker) divide(w *walk) {
	t.parts = append(t.parts[:0], part{port: topo.None})
	for _, id := range w.order {
		n := &t.nodes[id]
		n.part = 0
		if in := w.in[id]; in != topo.None {
			n.part = t.nodeOf(in).part
		}
		if n.part == 0 && t.holdsAlone(w, id) {
			n.part = int32(len(t.parts))
			t.parts = append(t.parts, part{port: w.in[id], size: w.size[id]})
		}
		n.vouched = n.vouched || n.part == 0 && !w.stem
	}
	for i := range t.nodes {
		id, n := topo.NodeID(i), &t.nodes[i]
		if !t.fabric.IsAlive(id) || t.topo.Node(id).Type == ib.NodeSwitch {
			continue
		}
		n.part = 0
		if up := t.fabric.Up(id); up != topo.None {
			n.part = t.nodeOf(up).part
		}
		n.vouched = n.vouched || n.part == 0 && !w.stem
	}
}

// holdsAlone reports whether a subtree begins on a switch: one cable leads to it, which may be held.
func (t *Tracker) holdsAlone(w *walk, id topo.NodeID) bool {
	return w.bridge[id] && !t.nodes[id].vouched && t.fabric.MayHold(w.in[id]) && !(w.stem && t.topo.Port(w.in[id]).Node == w.order[0])
}

// cableToHold returns the cable to hold for a subtree that is too large. By default it is the subtree's own cable, where
// all of it begins. But honest hosts may belong to it; then it is a cable further in, by which nearly all of the subtree
// hangs but those hosts do not. Where something is held in the subtree already, it is the subtree's own cable again.
// Otherwise a device that makes up the subtree, hosts included, would be met again at each of its switches.
func (t *Tracker) cableToHold(w *walk, outer topo.PortID) topo.PortID {
	top := t.topo.Port(t.topo.Port(outer).Peer).Node
	inside := func(id topo.NodeID) bool { return t.nodes[id].part == t.nodes[top].part }
	if t.fabric.AnyHeld(inside) {
		return outer
	}
	best := top
	for _, id := range w.order { // one that is as large as another lies before or behind it
		if inside(id) && 4*w.size[id] >= 3*w.size[top] && w.hosts[id] < w.hosts[best] && t.holdsAlone(w, id) {
			best = id
		}
	}
	return w.in[best]
}
