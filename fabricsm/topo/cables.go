package topo

import "portcullis/fabricsm/ib"

// NodeGUID returns the GUID of a node.
func (b *Builder) NodeGUID(id NodeID) ib.GUID { return b.node(id).GUID }

// GUIDOf returns the GUID of an end port, 0 before it was read.
func (b *Builder) GUIDOf(id PortID) ib.GUID { return b.port(id).GUID }

// FirstPort returns port 0 of a node, or where that would be.
func (b *Builder) FirstPort(id NodeID) PortID { return b.node(id).FirstPort }

// NodeOf returns the node of a port.
func (b *Builder) NodeOf(id PortID) NodeID { return b.port(id).Node }

// NumOf returns the number of a port on its node.
func (b *Builder) NumOf(id PortID) ib.PortNum { return b.port(id).Num }

// IsSwitch reports whether a node is a switch, and not a removed one.
func (b *Builder) IsSwitch(id NodeID) bool { return b.node(id).Type == ib.NodeSwitch }

// Peer returns the other end of the cable of a port, None without one.
func (b *Builder) Peer(id PortID) PortID { return b.port(id).Peer }

// IsExternal reports whether a port is one of a switch, and not its port 0.
func (b *Builder) IsExternal(id PortID) bool {
	p := b.port(id)
	return p.Num != 0 && b.node(p.Node).Type == ib.NodeSwitch
}

// ExternalNum returns the number of an external port of a switch, and 0 for another port.
func (b *Builder) ExternalNum(id PortID) ib.PortNum {
	if b.IsExternal(id) {
		return b.port(id).Num
	}
	return 0
}

// IsEndPort reports whether a port is that of a CA or router, or port 0 of a switch. Other than in a [Fabric], a removed
// node counts as a CA.
func (b *Builder) IsEndPort(id PortID) bool {
	p := b.port(id)
	return (p.Num == 0) == (b.node(p.Node).Type == ib.NodeSwitch)
}

// PlaceOf returns the place of an end port, or of an external port itself. It is zero for None, and without a switch port
// at the other end of the cable.
func (b *Builder) PlaceOf(id PortID) ib.Place {
	if id == None {
		return ib.Place{}
	}
	if !b.IsExternal(id) {
		if id = b.Peer(id); id == None || !b.IsExternal(id) {
			return ib.Place{}
		}
	}
	return b.LinkEnd(id)
}

// LinkEnd names a port by its node and number, whatever kind of node that is.
func (b *Builder) LinkEnd(id PortID) ib.Place {
	p := b.port(id)
	return ib.Place{Switch: b.node(p.Node).GUID, Port: p.Num}
}

// SwitchPortAt returns the external port that a place names, None if there is none.
func (b *Builder) SwitchPortAt(at ib.Place) PortID {
	id := b.NodeByGUID(at.Switch)
	if id == None || at.Port == 0 || b.node(id).Type != ib.NodeSwitch {
		return None
	}
	return b.PortOf(id, at.Port)
}

// EntryPort returns the end port that answers for a port: itself, or port 0 of its switch.
func (b *Builder) EntryPort(id PortID) PortID {
	if b.IsEndPort(id) {
		return id
	}
	return b.node(b.port(id).Node).FirstPort
}

// Attachment returns where packets for an end port go: port 0 of a switch itself, or else the other end of the cable.
func (b *Builder) Attachment(id PortID) PortID {
	if b.port(id).Num == 0 {
		return id
	}
	return b.Peer(id)
}

// EachExternal calls f with the external ports of a switch, and not at all for another node.
func (b *Builder) EachExternal(id NodeID, f func(PortID)) {
	n := *b.node(id)
	if n.Type != ib.NodeSwitch {
		return
	}
	for i := 1; i <= int(n.NumPorts); i++ {
		f(n.FirstPort + PortID(i))
	}
}

// EachEndPort calls f with every end port of a node.
func (b *Builder) EachEndPort(id NodeID, f func(PortID)) {
	n := *b.node(id)
	for i := range int(n.NumPorts) + 1 {
		if p := n.FirstPort + PortID(i); b.IsEndPort(p) {
			f(p)
		}
	}
}

// EachCable calls f with the ports of a node that have a cable, and their far ends.
func (b *Builder) EachCable(id NodeID, f func(own, far PortID)) {
	n := *b.node(id)
	for i := 1; i <= int(n.NumPorts); i++ {
		own := n.FirstPort + PortID(i)
		if far := b.Peer(own); far != None {
			f(own, far)
		}
	}
}

// FirstPeer returns the far end of the first cable of a node, None without one.
func (b *Builder) FirstPeer(id NodeID) PortID {
	n := b.node(id)
	for i := 1; i <= int(n.NumPorts); i++ {
		if p := b.Peer(n.FirstPort + PortID(i)); p != None {
			return p
		}
	}
	return None
}

// HasOtherCable reports whether a node has a cable at another port than one.
func (b *Builder) HasOtherCable(id NodeID, but PortID) bool {
	n := b.node(id)
	for i := 1; i <= int(n.NumPorts); i++ {
		if p := n.FirstPort + PortID(i); p != but && b.Peer(p) != None {
			return true
		}
	}
	return false
}
