package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Treatment of a fabric that another SM ruled: all state that the other SM may have changed is read again, and its settings
// are kept as far as they are right.

// doubtAll has everything read again that another SM may have changed.
func (c *Core) doubtAll() {
	c.tree.Changed()
	for id := range c.nodes {
		if c.nodes[id].alive {
			c.lfts.Forget(topo.NodeID(id))
			c.refresh(topo.NodeID(id))
			if c.topo.Node(topo.NodeID(id)).Type == ib.NodeSwitch {
				c.rebooted(topo.NodeID(id))
				c.nodes[id].doubt.Doubt(false) // nothing was written to it by us
				c.nodes[id].sw.Forget()
			}
		}
	}
	for p := range c.ports {
		pt := &c.ports[p]
		c.pkeys.Forget(topo.PortID(p))
		c.pkeys.Undo(topo.PortID(p))
		pt.set.DoubtBits()
		pt.lid, pt.fresh, pt.unread = 0, false, false
		c.lanes.DoubtForeign(topo.PortID(p))
	}
	c.routing.Want()
}

// adoptRoutes has the routes that were found kept as far as they are right, so
// that neither a takeover nor a restart moves traffic. foreign: another SM ruled since we last did.
func (f forwardingFabric) adoptRoutes(foreign bool) {
	if !foreign && f.routing.Tables() != nil {
		return
	}
	found, some := make([][]ib.PortNum, len(f.nodes)), false
	for id := range f.nodes {
		found[id] = f.lfts.All(topo.NodeID(id))
		some = some || found[id] != nil
	}
	if some { // to look for what can be kept in tables without an entry is a second routing
		f.routing.Adopt(found)
	}
}
