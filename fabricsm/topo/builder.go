package topo

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// Builder is the mutable side of a fabric. It belongs to one goroutine. The zero Builder is an empty fabric. Ids that it
// did not return are bugs of the caller and panic.
type Builder struct {
	nodes OwnPages[Node]
	ports OwnPages[Port]

	byGUID    map[ib.GUID]NodeID // first of a chain, tombstones included
	nextTwin  []NodeID           // by node: the next with the same GUID, None at the end
	forgotten map[uint8][]NodeID // slots that may be given to another node, by NumPorts

	nodesMoved []NodeID // added, removed or renamed since the last snapshot
	portsMoved []PortID // the same for end ports
	last       *Fabric
}

// AddNode adds a node and returns its id. GUID, Type and NumPorts must be set, FirstPort is ignored, the ports start
// without cable and without PortInfo. A removed node of the same GUID and size gets its old id back. A GUID that another
// live node claims is accepted: look first with NodeByGUID.
func (b *Builder) AddNode(n Node) NodeID {
	id := b.slotFor(n)
	n.FirstPort = b.node(id).FirstPort
	*b.nodes.write(int32(id)) = n
	b.link(id)
	b.resetPorts(id)
	b.nodesMoved = append(b.nodesMoved, id)
	return id
}

// slotFor finds the tombstone that an equal node left, else a forgotten slot
// of the same size, else a new slot.
func (b *Builder) slotFor(n Node) NodeID {
	for id := b.firstTwin(n.GUID); id != None; id = b.nextTwin[id] {
		if old := b.node(id); old.Type == 0 && old.NumPorts == n.NumPorts {
			b.unlink(id)
			return id
		}
	}
	if free := b.forgotten[n.NumPorts]; len(free) > 0 {
		id := free[len(free)-1]
		b.forgotten[n.NumPorts] = free[:len(free)-1]
		return id
	}
	id := NodeID(b.nodes.n)
	b.nodes.grow(1)
	b.nodes.write(int32(id)).FirstPort = PortID(b.ports.n)
	b.nextTwin = append(b.nextTwin, None)
	b.ports.grow(int(n.NumPorts) + 1)
	return id
}

func (b *Builder) resetPorts(id NodeID) {
	n := b.node(id)
	for i := 0; i <= int(n.NumPorts); i++ {
		p := n.FirstPort + PortID(i)
		*b.ports.write(int32(p)) = Port{Node: id, Num: ib.PortNum(i), Peer: None}
		if isEndNum(n.Type, ib.PortNum(i)) {
			b.portsMoved = append(b.portsMoved, p)
		}
	}
}

// RemoveNode takes a node and its cables away. Its id stays reserved for it:
// Type is 0, GUID and ports' numbers remain readable. Removing a tombstone
// does nothing.
func (b *Builder) RemoveNode(id NodeID) {
	if b.node(id).Type == 0 {
		return
	}
	n := b.nodes.write(int32(id))
	for i := 0; i <= int(n.NumPorts); i++ {
		b.Disconnect(n.FirstPort + PortID(i))
	}
	b.resetPorts(id)
	n.Type = 0
	b.nodesMoved = append(b.nodesMoved, id)
}

// Forget frees the slot of a removed node for any node of the same size, so that devices which change their GUID cannot
// grow the fabric without end. The caller must have dropped all data that it kept under the id. Forget ignores a live node.
func (b *Builder) Forget(id NodeID) {
	n := *b.node(id)
	if n.Type != 0 || n.GUID == 0 {
		return
	}
	b.unlink(id)
	*b.nodes.write(int32(id)) = Node{NumPorts: n.NumPorts, FirstPort: n.FirstPort}
	if b.forgotten == nil {
		b.forgotten = make(map[uint8][]NodeID)
	}
	b.forgotten[n.NumPorts] = append(b.forgotten[n.NumPorts], id)
}

// Node returns a copy of a node.
func (b *Builder) Node(id NodeID) Node { return *b.node(id) }

// node returns a node for reading.
func (b *Builder) node(id NodeID) *Node { return b.nodes.at(int32(id)) }

// SetNode replaces the data of a live node. GUID, Type, NumPorts and FirstPort keep their values: a device that changes one
// of them is another device.
func (b *Builder) SetNode(id NodeID, n Node) {
	old := *b.node(id)
	if old.Type == 0 {
		return
	}
	n.GUID, n.Type, n.NumPorts, n.FirstPort = old.GUID, old.Type, old.NumPorts, old.FirstPort
	if n == old {
		return
	}
	*b.nodes.write(int32(id)) = n
}

// Port returns a copy of a port.
func (b *Builder) Port(id PortID) Port { return *b.port(id) }

// port returns a port for reading.
func (b *Builder) port(id PortID) *Port { return b.ports.at(int32(id)) }

// SetPort replaces the data of a port of a live node. Node, Num and Peer keep their values.
func (b *Builder) SetPort(id PortID, p Port) {
	old := *b.port(id)
	if b.node(old.Node).Type == 0 {
		return
	}
	p.Node, p.Num, p.Peer = old.Node, old.Num, old.Peer
	if p == old {
		return
	}
	*b.ports.write(int32(id)) = p
	if p.GUID != old.GUID {
		b.portsMoved = append(b.portsMoved, id)
	}
}

// Connect records a cable between two ports and takes away the cables that
// either had before.
func (b *Builder) Connect(x, y PortID) {
	if b.port(x).Peer == y && x != y {
		return
	}
	b.Disconnect(x)
	b.Disconnect(y)
	b.ports.write(int32(x)).Peer, b.ports.write(int32(y)).Peer = y, x
}

// Disconnect takes away the cable of a port, if there is one.
func (b *Builder) Disconnect(id PortID) {
	peer := b.port(id).Peer
	if peer == None {
		return
	}
	b.ports.write(int32(id)).Peer, b.ports.write(int32(peer)).Peer = None, None
}

// NumNodes returns the number of node ids in use, tombstones included.
func (b *Builder) NumNodes() int { return b.nodes.n }

// NumPorts returns the number of port ids in use.
func (b *Builder) NumPorts() int { return b.ports.n }

// PortOf returns the id of a port by its number, None if the node has no such port or is gone.
func (b *Builder) PortOf(id NodeID, num ib.PortNum) PortID { return portOf(b.node(id), num) }

// NodeByGUID returns the live node with a GUID, None if there is none; of several, the one with the lowest id.
func (b *Builder) NodeByGUID(g ib.GUID) NodeID {
	found := NodeID(None)
	for id := b.firstTwin(g); id != None; id = b.nextTwin[id] {
		if b.node(id).Type != 0 && (found == None || id < found) {
			found = id
		}
	}
	return found
}

// Freeze publishes the present fabric as an immutable snapshot. It costs what
// changed since the last one, beside a copy of directories of pages: unchanged
// pages are shared with the last snapshot, and the next write to a shared page
// copies it. Without a change the last snapshot itself is given again.
func (b *Builder) Freeze() *Fabric {
	if b.last != nil && b.nodes.shared && b.ports.shared {
		return b.last
	}
	old := b.last
	if old == nil {
		old = &Fabric{}
	}
	f := &Fabric{nodes: b.nodes.Snapshot(), ports: b.ports.Snapshot(), byGUID: old.byGUID, switches: old.switches, endPorts: old.endPorts}
	if len(b.nodesMoved) > 0 {
		f.byGUID = old.byGUID.apply(&edit[NodeID]{was: old.nodeGUID, is: f.nodeGUID, wasLive: old.lives, isLive: f.lives, moved: b.nodesMoved})
		if slices.ContainsFunc(b.nodesMoved, func(id NodeID) bool { return old.isSwitch(id) || f.isSwitch(id) }) {
			f.switches = slices.DeleteFunc(f.byGUID.all(), func(id NodeID) bool { return !f.isSwitch(id) })
		}
	}
	if len(b.portsMoved) > 0 {
		f.endPorts = old.endPorts.apply(&edit[PortID]{was: old.portGUID, is: f.portGUID, wasLive: old.listed, isLive: f.listed, moved: b.portsMoved})
	}
	b.nodesMoved, b.portsMoved = nil, nil
	b.last = f
	return f
}
