package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Treatment of a fabric that another SM ruled: all state that the other SM may have changed is read again, and its settings
// are kept as far as they are right.

// doubtAll has everything read again that another SM may have changed.
func (c *Core) doubtAll() {
	c.treeEpoch++
	for id := range c.nodes {
		if c.nodes[id].alive {
			c.nodes[id].lft.forget()
			c.refresh(topo.NodeID(id))
			if c.topo.Node(topo.NodeID(id)).Type == ib.NodeSwitch {
				c.rebooted(topo.NodeID(id))
				c.unsure(topo.NodeID(id), false) // nothing was written to it by us
				c.nodes[id].infoKnown = false
			}
		}
	}
	for p := range c.ports {
		pt := &c.ports[p]
		c.setKeys(topo.PortID(p), nil)
		pt.keysOK, pt.bitsProven, pt.lid, pt.fresh, pt.unread = false, false, 0, false, false
		c.lanes.DoubtForeign(topo.PortID(p))
	}
	c.wantRoutes()
}

// unprove forgets which memberships were reported to be in force. Another SM may have changed them, so they are reported
// again when they were read back again.
func (m *members) unprove() {
	for _, list := range m.byGUID {
		for _, ms := range list {
			ms.applied = false
		}
	}
}

// adoptLIDs takes the LIDs that ports have for theirs, where another SM ruled:
// its LIDs are in use. Where two ports show one LID, it stays with the one that
// was known to have it.
func (c *Core) adoptLIDs(ports []topo.PortID) {
	if !c.election.foreign {
		return
	}
	c.election.foreign = false
	shown := make(map[ib.LID]int)
	for _, p := range ports {
		if c.byPort[c.topo.GUIDOf(p)] == p && c.ports[p].known {
			shown[c.foundLID(p)]++
		}
	}
	for _, p := range ports {
		guid, l := c.topo.GUIDOf(p), c.foundLID(p)
		owner := c.lids.at(l)
		if c.byPort[guid] != p || !c.ports[p].known || !l.IsUnicast() || owner == guid || shown[l] > 1 {
			continue
		}
		if owner != 0 {
			c.save(Fact{Kind: FactLID, GUID: owner})
		}
		c.lids.load(guid, l)
		c.lids.setNew(l)
		c.save(Fact{Kind: FactLID, GUID: guid, LID: l})
	}
}

// adoptRoutes has the routes that were found kept as far as they are right, so
// that neither a takeover nor a restart moves traffic.
func (c *Core) adoptRoutes() {
	if !c.election.foreign && c.routing.tables != nil {
		return
	}
	found, some := make([][]ib.PortNum, len(c.nodes)), false
	for id := range c.nodes {
		found[id] = c.nodes[id].lft.all()
		some = some || found[id] != nil
	}
	if some { // to look for what can be kept in tables without an entry is a second routing
		c.routing.found = found
	}
}
