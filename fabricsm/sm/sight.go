package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// A port that is not seen is not gone. Its LIDs stay its own (lidSpace), and a Subnet Manager that sees no node but
// its own, although it has given LIDs to others, does not report the fabric as settled.

// lidRest is how long the LIDs of an end port stay its own after it was seen last, although no other LID is left.
const lidRest = 24 * time.Hour

// alone reports whether no node but our own is in sight although other end ports have LIDs.
func (c *Core) alone() bool {
	if c.root == topo.None {
		return false
	}
	root := c.topo.Node(c.root)
	for i := range int(root.NumPorts) + 1 {
		if c.topo.Peer(root.FirstPort+topo.PortID(i)) != topo.None {
			return false
		}
	}
	others := len(c.lids.byGUID)
	if c.lids.byGUID[c.cfg.PortGUID] != 0 {
		others--
	}
	return others > 0
}

// keepsLID reports whether the LIDs of an end port are its own whatever else is needed: it is seen, was seen within
// lidRest, or has a membership. Before the first intent every end port may have one.
func (c *Core) keepsLID(g ib.GUID) bool {
	if _, here := c.byPort[g]; here || !c.members.ready || len(c.members.byGUID[g]) > 0 {
		return true
	}
	left, known := c.lids.away[g]
	return known && c.now.Sub(left) < lidRest
}

// outOfSight records that an end port is no longer seen.
func (c *Core) outOfSight(g ib.GUID) {
	if c.lids.byGUID[g] != 0 {
		c.lids.away[g] = c.now
	}
}

// assignLeft assigns LIDs to the end ports that got none because every LID was kept.
func (c *Core) assignLeft() {
	if !c.lids.short {
		return
	}
	c.lids.short = false
	for p := range c.ports {
		g := c.topo.GUIDOf(topo.PortID(p))
		if g != 0 && c.nodes[c.ports[p].node].alive && c.byPort[g] == topo.PortID(p) {
			c.settleLID(topo.PortID(p))
		}
	}
}
