// Package tree keeps the directed route by which each node of a fabric is asked. All routes together are a tree: a node is
// asked over a port of a node that is nearer to us.
//
// It has no clock and sends nothing.
package tree

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Fabric is what a Tree asks of the core, and where it reports nodes.
type Fabric interface {
	// Root returns the node that this subnet manager is attached to, and our port on it.
	Root() (topo.NodeID, topo.PortID)
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// Rerouted takes that a node is asked over another port from now on.
	Rerouted(id topo.NodeID, up topo.PortID)
	// Drop removes a node to which there is no route.
	Drop(topo.NodeID)
}

// node is what is kept of a node.
type node struct {
	up    topo.PortID // port of the node nearer to us by which it is asked, None for the root
	route mad.Route   // to it, valid in the epoch at
	at    uint32
}

// Tree is the routes to all nodes. Use New.
type Tree struct {
	fabric Fabric
	topo   *topo.Builder
	nodes  []node // by topo.NodeID
	epoch  uint32 // changes when a route to a node may have changed
}

// fewNodes is how many nodes there is room for at least.
const fewNodes = 128

// New returns the tree of an empty fabric.
func New(f Fabric, t *topo.Builder) *Tree {
	return &Tree{fabric: f, topo: t, nodes: make([]node, 0, fewNodes), epoch: 1}
}

// Extend makes room for nodes.
func (t *Tree) Extend(nodes int) { t.nodes = topo.ExtendNodes(t.nodes, nodes) }

// Add records the port over which a new node was found, None for the root.
func (t *Tree) Add(id topo.NodeID, up topo.PortID) { t.nodes[id] = node{up: up} }

// Remove forgets the route to a node.
func (t *Tree) Remove(id topo.NodeID) { t.nodes[id] = node{} }

// Up returns the port of the node nearer to us by which a node is asked, None for the root.
func (t *Tree) Up(id topo.NodeID) topo.PortID { return t.nodes[id].up }

// Changed records that routes may have changed.
func (t *Tree) Changed() { t.epoch++ }

// Probes reports whether the far end of a port is to be read.
func (t *Tree) Probes(p topo.PortID) bool {
	_, own := t.fabric.Root()
	return p == own || t.topo.IsExternal(p)
}

// RouteTo returns the directed route to a node. It is at most mad.MaxHops long: a device that is further away never becomes
// a node.
func (t *Tree) RouteTo(id topo.NodeID) *mad.Route {
	n := &t.nodes[id]
	if n.at == t.epoch && n.at != 0 {
		return &n.route
	}
	n.route = mad.Route{}
	if n.up != topo.None {
		up := t.topo.Port(n.up)
		n.route, _ = t.RouteTo(up.Node).Append(up.Num)
	}
	n.at = t.epoch
	return &n.route
}

// Hops returns the number of links over which a node is asked, or more than the maximum if it has no route.
func (t *Tree) Hops(id topo.NodeID) int {
	root, _ := t.fabric.Root()
	for hops := range mad.MaxHops + 1 {
		if id == root {
			return hops
		}
		up := t.nodes[id].up
		if up == topo.None {
			break
		}
		id = t.nodeOf(up)
	}
	return mad.MaxHops + 1
}

func (t *Tree) nodeOf(p topo.PortID) topo.NodeID { return t.topo.Port(p).Node }

// use has a node asked over a port.
func (t *Tree) use(id topo.NodeID, up topo.PortID) {
	t.nodes[id].up = up
	t.fabric.Rerouted(id, up)
}

// Linked takes a cable from port p to port q, whose node may have had no route.
func (t *Tree) Linked(p, q topo.PortID) {
	root, _ := t.fabric.Root()
	if id := t.nodeOf(q); t.nodes[id].up == topo.None && id != root {
		t.nodes[id].up = p
		t.epoch++
	}
}

// Unlinked takes that the cable between two ports is gone. It drops what could be reached over it alone.
func (t *Tree) Unlinked(p, q topo.PortID) {
	for _, e := range [2][2]topo.PortID{{p, q}, {q, p}} {
		if far := t.nodeOf(e[1]); t.fabric.IsAlive(far) && t.nodes[far].up == e[0] {
			t.orphan(far)
		}
	}
}

// orphan finds another route to a node whose route is gone, or drops the node.
func (t *Tree) orphan(id topo.NodeID) {
	tn := t.topo.Node(id)
	if tn.Type == ib.NodeSwitch {
		t.reattach(id)
		return
	}
	t.epoch++
	for i := 1; i <= int(tn.NumPorts); i++ {
		if p := t.topo.Peer(tn.FirstPort + topo.PortID(i)); p != topo.None && t.topo.IsExternal(p) {
			t.use(id, p)
			return
		}
	}
	if root, _ := t.fabric.Root(); id != root {
		t.fabric.Drop(id)
	}
}

// UseOther selects another route to a node, if there is one that does not lead through the node itself.
func (t *Tree) UseOther(id topo.NodeID) {
	n := &t.nodes[id]
	tn := t.topo.Node(id)
	current := 0
	if n.up != topo.None {
		if p := t.topo.Peer(n.up); p != topo.None {
			current = int(t.topo.Port(p).Num)
		}
	}
	for i := 1; i <= int(tn.NumPorts); i++ {
		q := tn.FirstPort + topo.PortID((current+i-1)%int(tn.NumPorts)+1)
		p := t.topo.Peer(q)
		if p == topo.None || p == n.up || !t.Probes(p) || t.leadsOver(t.nodeOf(p), id) {
			continue
		}
		n.up = p
		t.epoch++
		return
	}
}

// leadsOver reports whether the route to a leads over b, or is too long to be
// extended.
func (t *Tree) leadsOver(a, b topo.NodeID) bool {
	for range mad.MaxHops {
		if a == b {
			return true
		}
		if t.nodes[a].up == topo.None {
			return false
		}
		a = t.nodeOf(t.nodes[a].up)
	}
	return true
}
