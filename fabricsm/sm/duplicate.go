package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// contest begins to find out which of two places is right: behind port newcomer a port answers that is known to be linked
// to port known. Either the cable was moved, or two nodes have one GUID. The known place is asked again.
func (c *Core) contest(known, newcomer topo.PortID) {
	pt := &c.ports[known]
	pt.challenger, pt.verify = newcomer, true
	c.q.MarkPort(work.Info, known)
	c.q.MarkPort(work.Probe, known)
}

// contradicted reports whether the port q, to which p is said to lead, does not agree, or was not asked yet. That is so for
// a port of a switch that reports that its link is down. It is also so for a further port of an adapter that inventory does
// not have there and that did not get its key there. Otherwise any host could show another's node GUID, join its node and
// fall silent in its name.
func (c *Core) contradicted(p, q topo.PortID, ni *mad.NodeInfo) bool {
	pt := &c.ports[q]
	if pt.known {
		return !linkUp(&pt.info)
	}
	return ni.NodeType != ib.NodeSwitch && !pt.mute && !c.members.IsEntitled(ni.PortGUID, c.topo.PlaceOf(p)) && !c.law.IsLawful(c.topo.PlaceOf(p)) && !c.mkeys.Places().IsKeyedHere(ni.PortGUID, c.topo.PlaceOf(p))
}

// maxDenied is how often a port may report that it has no link before the node that claims to be at its end is taken for
// another one. The link may have come up just now.
const maxDenied = 2

// deny looks at port q once more; it links with p when it agrees.
func (c *Core) deny(p, q topo.PortID, claim ib.GUID) {
	if c.ports[q].known {
		c.ports[p].denied++
	}
	if c.ports[p].denied > maxDenied {
		c.ports[p].denied = 0
		id := c.ports[q].node
		c.duplicate(c.topo.NodeGUID(id), c.topo.PlaceOf(c.topo.FirstPeer(id)), p)
		return
	}
	c.ports[q].challenger, c.ports[q].claim = p, claim
	c.q.MarkPort(work.Info, q)
}

// agreed links a further port of an adapter, which says through another one that
// it has a link, with the port behind which it was seen.
func (c *Core) agreed(q, claimant topo.PortID) bool {
	claim := c.ports[q].claim
	c.ports[q].claim = 0
	taken, ok := c.byPort[claim]
	if claim == 0 || c.topo.IsExternal(q) || !linkUp(&c.ports[claimant].info) || c.topo.Peer(claimant) != topo.None || ok && taken != q {
		return false
	}
	if g := c.topo.GUIDOf(q); g != 0 && g != claim {
		return false
	}
	c.newPeer(claimant)
	c.nameEnd(q, claim)
	c.link(claimant, q)
	return true
}

// vindicated ends a contest in favour of the place known first.
func (c *Core) vindicated(known topo.PortID) {
	challenger := c.ports[known].challenger
	if challenger == topo.None {
		return
	}
	c.ports[known].challenger = topo.None
	if !linkUp(&c.ports[challenger].info) {
		return
	}
	peer := c.topo.Peer(known)
	guid := c.topo.NodeGUID(c.ports[peer].node)
	c.duplicate(guid, c.topo.PlaceOf(known), challenger)
}

// duplicate closes port p, behind which a GUID answers that is elsewhere, and
// looks at it again later: the twin may have gone.
func (c *Core) duplicate(guid ib.GUID, first ib.Place, p topo.PortID) {
	if c.topo.Peer(p) != topo.None {
		c.unlink(p)
	}
	pt := &c.ports[p]
	if !c.nodes[pt.node].alive {
		return
	}
	c.shut(p)
	if !pt.fenced {
		pt.fenced = true
		c.problem(fault.Key{Kind: fault.DuplicateGUID, Place: c.topo.PlaceOf(p)}, &DuplicateGUID{GUID: guid, First: first, Second: c.topo.PlaceOf(p)})
	}
	pt.pause = c.longer(pt.pause)
	c.after(pt.pause, work.Retry, work.OnPort(work.Probe, p))
}

// shut takes the link of a switch port down that is in use and must not be: it
// comes back unconfigured.
func (c *Core) shut(p topo.PortID) {
	pt := &c.ports[p]
	if !c.writing() || !c.topo.IsExternal(p) || !pt.known || pt.info.PortState <= ib.PortInit || c.q.IsAsked(work.Set, p) || !c.nodes[pt.node].alive {
		return
	}
	c.takeDown(p, ib.PhysNop)
}

// unfence opens a port that was closed because of a duplicate.
func (c *Core) unfence(p topo.PortID) {
	if c.ports[p].fenced {
		c.ports[p].fenced = false
		c.faults.Clear(fault.Key{Kind: fault.DuplicateGUID, Place: c.topo.PlaceOf(p)})
	}
}

// evict closes the place at which a port GUID is seen, when it answers now at the place a grant names for it. Which of them
// came first does not matter then.
func (c *Core) evict(guid ib.GUID, p topo.PortID) {
	twin, ok := c.byPort[guid]
	if !ok || !c.topo.IsExternal(p) || !c.members.IsEntitled(guid, c.topo.PlaceOf(p)) {
		return
	}
	if at := c.topo.Peer(twin); at != topo.None && at != p && c.topo.IsExternal(at) && !c.members.IsEntitled(guid, c.topo.PlaceOf(at)) {
		c.duplicate(guid, c.topo.PlaceOf(p), at)
	}
}

// unname removes the GUID from a port of an adapter that no longer has a cable, when a port of another node answers under
// that GUID. A port does not own a GUID because it has shown it.
func (c *Core) unname(ni *mad.NodeInfo) {
	q, ok := c.byPort[ni.PortGUID]
	if !ok || c.isCabled(q) || c.topo.NodeGUID(c.ports[q].node) == ni.NodeGUID && c.ports[q].num == ni.LocalPortNum {
		return
	}
	c.ports[q].lid = 0
	tp := c.topo.Port(q)
	tp.GUID, tp.LID = 0, 0
	c.topo.SetPort(q, tp)
	delete(c.byPort, ni.PortGUID)
	c.lids.Gone(ni.PortGUID)
	c.groups.Reseat(ni.PortGUID)
	c.pkeys.Moved()
}

// isCabled reports whether an end port is linked to another port, or need not be.
func (c *Core) isCabled(q topo.PortID) bool {
	return q == c.own() || c.ports[q].num == 0 || c.topo.Peer(q) != topo.None
}

// evictHosts closes the places for hosts at which the GUIDs of a switch are shown
// that answers now where no host belongs: else a host that was asked first, after
// a restart or while the switch was away, would keep it out of the fabric.
func (c *Core) evictHosts(ni *mad.NodeInfo, p topo.PortID) {
	if ni.NodeType != ib.NodeSwitch || !c.topo.IsExternal(p) || c.members.IsForHost(c.topo.PlaceOf(p)) {
		return
	}
	nodes := []topo.NodeID{c.topo.NodeByGUID(ni.NodeGUID)}
	if q, ok := c.byPort[ni.PortGUID]; ok && !c.members.IsEntitled(ni.PortGUID, c.topo.PlaceOf(q)) {
		nodes = append(nodes, c.ports[q].node)
	}
	for _, id := range nodes {
		if id == topo.None || id == c.root || c.topo.Node(id).Type == ib.NodeSwitch {
			continue
		}
		tn := c.topo.Node(id)
		for i := 1; i <= int(tn.NumPorts); i++ {
			at := c.topo.Peer(tn.FirstPort + topo.PortID(i))
			if at != topo.None && at != p && c.topo.IsExternal(at) && c.members.IsForHost(c.topo.PlaceOf(at)) {
				c.duplicate(ni.NodeGUID, c.topo.PlaceOf(p), at)
			}
		}
	}
}

// giveName assigns another node GUID to a host that a grant names at its place, when a different node has the one that it
// shows. No authority vouches for node GUIDs, and a host that shows the GUID of another host must not keep that host out of
// the fabric. The name stays until the link goes, so that others cannot change it to and fro.
func (c *Core) giveName(p topo.PortID, ni *mad.NodeInfo) {
	if ni.NodeType == ib.NodeSwitch || !c.topo.IsExternal(p) || !c.members.IsEntitled(ni.PortGUID, c.topo.PlaceOf(p)) {
		return
	}
	if q := c.topo.Peer(p); q != topo.None && c.topo.GUIDOf(q) == ni.PortGUID {
		tn := c.topo.Node(c.ports[q].node)
		if given := (tn.GUID^ni.PortGUID)&localGUID != 0; given && tn.Type == ni.NodeType && tn.NumPorts == ni.NumPorts && c.ports[q].num == ni.LocalPortNum {
			ni.NodeGUID = tn.GUID
			return
		}
	}
	id := c.topo.NodeByGUID(ni.NodeGUID)
	if id == topo.None || !c.otherNode(id, ni) {
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
