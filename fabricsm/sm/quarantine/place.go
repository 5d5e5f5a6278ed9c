package quarantine

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/topo"
)

// SuspectPlace returns the place that answers for the behaviour of a node: a switch itself, or the switch port in front of a
// host. It returns zero if there is none.
func (k *Keeper) SuspectPlace(id topo.NodeID) ib.Place {
	if tn := k.topo.Node(id); tn.Type == ib.NodeSwitch {
		return ib.Place{Switch: tn.GUID}
	}
	return k.topo.PlaceOf(k.tree.Up(id))
}

// StrikeNode records that a node misbehaved.
func (k *Keeper) StrikeNode(id topo.NodeID, cond health.Condition) {
	if root, _ := k.fabric.Root(); id != root {
		k.health.Strike(k.SuspectPlace(id), k.topo.NodeGUID(id), cond)
	}
}

// StrikePort records that what is at a place misbehaved: that of a port. The GUID is that of the node, or 0.
func (k *Keeper) StrikePort(p topo.PortID, guid ib.GUID, cond health.Condition) {
	k.health.Strike(k.topo.PlaceOf(p), guid, cond)
}

// StrikeFlapping records that a link between two ports went down; the second may be None.
func (k *Keeper) StrikeFlapping(p, q topo.PortID) {
	at := k.nearer(p, q)
	if !k.topo.IsExternal(at) {
		return
	}
	var guid ib.GUID
	if far := k.topo.Peer(at); far != topo.None {
		guid = k.topo.NodeGUID(k.topo.Port(far).Node)
	}
	k.health.Strike(k.topo.PlaceOf(at), guid, health.Flapping)
}

// nearer returns the end of a link that is nearer to us. The device that misbehaves is behind it, and only this end can
// still be reached when it is closed.
func (k *Keeper) nearer(p, q topo.PortID) topo.PortID {
	switch {
	case q == topo.None || !k.topo.IsExternal(q):
		return p
	case !k.topo.IsExternal(p):
		return q
	}
	at, far := k.topo.Port(p).Node, k.topo.Port(q).Node
	a, b := k.tree.RouteTo(at).Len(), k.tree.RouteTo(far).Len()
	if b < a || a == b && k.topo.NodeGUID(far) < k.topo.NodeGUID(at) {
		return q
	}
	return p
}

// Mark takes the mark of an operator at a place. It reports whether something changed.
func (k *Keeper) Mark(at ib.Place, m health.Mark, reason string) bool {
	in := &health.Marking{Place: at, Mark: m, Reason: reason}
	if p := k.topo.SwitchPortAt(at); p != topo.None && k.topo.Peer(p) != topo.None {
		in.GUID = k.topo.NodeGUID(k.topo.Port(k.topo.Peer(p)).Node)
	}
	return k.health.Mark(in)
}
