package identity

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// MaxKeys bounds a P_Key table: the largest devices have 256, a liar says 65535.
const MaxKeys = 1024

// KeyCap returns the size of P_Key tables that NodeInfo shows, within bounds.
func KeyCap(ni *mad.NodeInfo) uint16 { return min(max(1, ni.PartitionCap), MaxKeys) }

// IsOther reports whether NodeInfo contradicts that of the known node with the same GUID.
func (c *Contests) IsOther(id topo.NodeID, ni *mad.NodeInfo) bool {
	tn, q := c.topo.Node(id), c.topo.PortOf(id, ni.LocalPortNum)
	return tn.Type != ni.NodeType || tn.NumPorts != ni.NumPorts || q == topo.None || c.isOtherPort(&tn, q, ni) ||
		tn.Type != ib.NodeSwitch && c.topo.Peer(q) == topo.None && c.topo.HasOtherCable(id, q) && tn.PartitionCap != KeyCap(ni)
}

// isOtherPort reports whether NodeInfo contradicts the port GUID that is known.
func (c *Contests) isOtherPort(tn *topo.Node, q topo.PortID, ni *mad.NodeInfo) bool {
	if tn.Type == ib.NodeSwitch {
		return c.topo.GUIDOf(tn.FirstPort) != ni.PortGUID
	}
	if g := c.topo.GUIDOf(q); g != 0 {
		return g != ni.PortGUID
	}
	_, taken := c.fabric.PortByGUID(ni.PortGUID)
	return taken
}

// MakeRoom closes other places at which the GUIDs of a node are shown that answers behind port p, if they belong to it.
func (c *Contests) MakeRoom(p topo.PortID, ni *mad.NodeInfo) {
	c.evict(ni.PortGUID, p)
	c.unname(ni)
	c.evictHosts(ni, p)
}

// evict closes the place at which a port GUID is seen, when it answers now at the place a grant names for it. Which of them
// came first does not matter then.
func (c *Contests) evict(guid ib.GUID, p topo.PortID) {
	twin, ok := c.fabric.PortByGUID(guid)
	if !ok || !c.topo.IsExternal(p) || !c.fabric.IsEntitled(guid, c.topo.PlaceOf(p)) {
		return
	}
	if at := c.topo.Peer(twin); at != topo.None && at != p && c.topo.IsExternal(at) && !c.fabric.IsEntitled(guid, c.topo.PlaceOf(at)) {
		c.Duplicate(guid, c.topo.PlaceOf(p), at)
	}
}

// unname removes the GUID from a port of an adapter that no longer has a cable, when a port of another node answers under
// that GUID. A port does not own a GUID because it has shown it.
func (c *Contests) unname(ni *mad.NodeInfo) {
	q, ok := c.fabric.PortByGUID(ni.PortGUID)
	if !ok || c.isCabled(q) {
		return
	}
	if tp := c.topo.Port(q); c.topo.NodeGUID(tp.Node) != ni.NodeGUID || tp.Num != ni.LocalPortNum {
		c.actions.Unname(q, ni.PortGUID)
	}
}

// isCabled reports whether an end port is linked to another port, or need not be.
func (c *Contests) isCabled(q topo.PortID) bool {
	return q == c.fabric.Own() || c.topo.Port(q).Num == 0 || c.topo.Peer(q) != topo.None
}

// evictHosts closes the places for hosts at which the GUIDs of a switch are shown
// that answers now where no host belongs: else a host that was asked first, after
// a restart or while the switch was away, would keep it out of the fabric.
func (c *Contests) evictHosts(ni *mad.NodeInfo, p topo.PortID) {
	if ni.NodeType != ib.NodeSwitch || !c.topo.IsExternal(p) || c.fabric.IsForHost(c.topo.PlaceOf(p)) {
		return
	}
	nodes := [2]topo.NodeID{c.topo.NodeByGUID(ni.NodeGUID), topo.None}
	if q, ok := c.fabric.PortByGUID(ni.PortGUID); ok && !c.fabric.IsEntitled(ni.PortGUID, c.topo.PlaceOf(q)) {
		nodes[1] = c.topo.Port(q).Node
	}
	for _, id := range nodes {
		if id == topo.None || id == c.fabric.Root() || c.topo.Node(id).Type == ib.NodeSwitch {
			continue
		}
		tn := c.topo.Node(id)
		for i := 1; i <= int(tn.NumPorts); i++ {
			at := c.topo.Peer(tn.FirstPort + topo.PortID(i))
			if at != topo.None && at != p && c.topo.IsExternal(at) && c.fabric.IsForHost(c.topo.PlaceOf(at)) {
				c.Duplicate(ni.NodeGUID, c.topo.PlaceOf(p), at)
			}
		}
	}
}

// Rename assigns another node GUID to a host that a grant names at its place, when a different node has the one that it
// shows. No authority vouches for node GUIDs, and a host that shows the GUID of another host must not keep that host out of
// the fabric. The name stays until the link goes, so that others cannot change it to and fro.
func (c *Contests) Rename(p topo.PortID, ni *mad.NodeInfo) {
	if ni.NodeType == ib.NodeSwitch || !c.topo.IsExternal(p) || !c.fabric.IsEntitled(ni.PortGUID, c.topo.PlaceOf(p)) {
		return
	}
	if q := c.topo.Peer(p); q != topo.None && c.topo.GUIDOf(q) == ni.PortGUID {
		tp := c.topo.Port(q)
		tn := c.topo.Node(tp.Node)
		if given := (tn.GUID^ni.PortGUID)&localGUID != 0; given && tn.Type == ni.NodeType && tn.NumPorts == ni.NumPorts && tp.Num == ni.LocalPortNum {
			ni.NodeGUID = tn.GUID
			return
		}
	}
	id := c.topo.NodeByGUID(ni.NodeGUID)
	if id == topo.None || !c.IsOther(id, ni) {
		return
	}
	name := ni.PortGUID ^ localGUID
	for c.topo.NodeByGUID(name) != topo.None || !name.Valid() {
		name++
	}
	ni.NodeGUID = name
}

// localGUID is the bit of an EUI-64 that marks it as locally administered: no vendor assigns such a GUID.
const localGUID ib.GUID = 2 << 56
