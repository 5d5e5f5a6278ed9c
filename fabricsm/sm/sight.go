package sm

import (
	"portcullis/fabricsm/topo"
)

// A port that is not seen is not gone. Its LIDs stay its own (package lids), and a Subnet Manager that sees no node but
// its own, although it has given LIDs to others, does not report the fabric as settled.

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
	others := c.lids.Owners()
	if c.lids.Of(c.cfg.PortGUID) != 0 {
		others--
	}
	return others > 0
}

// assignLeft assigns LIDs to the end ports that got none because every LID was kept.
func (c *Core) assignLeft() {
	if !c.lids.TakeShort() {
		return
	}
	for p := range c.ports {
		g := c.topo.GUIDOf(topo.PortID(p))
		if g != 0 && c.nodes[c.ports[p].node].alive && c.byPort[g] == topo.PortID(p) {
			c.lids.Settle(topo.PortID(p))
		}
	}
}
