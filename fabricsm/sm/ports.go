package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// own returns our own end port, None before it is known.
func (c *Core) own() topo.PortID {
	if c.root == topo.None {
		return topo.None
	}
	if c.topo.IsSwitch(c.root) {
		return c.topo.FirstPort(c.root)
	}
	return c.rootPort
}

// smLID returns our own LID, 0 before it is assigned.
func (c *Core) smLID() ib.LID {
	if p := c.own(); p != topo.None {
		return c.ports[p].lid
	}
	return 0
}
