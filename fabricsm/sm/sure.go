package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// A switch that is reset while all its links are in Init loses what was written to it, and nothing shows that: its links
// come back in Init, as they were, and it sends no trap without a LID. So the first write to a new switch is the LID of its
// port 0. A reset removes that LID, and it does not come back by itself. Once one of its links is armed, a reset would show
// there. From then on one Get of that LID proves that nothing was lost before. Until that Get, the switch is not sure: no
// link of its hosts is made Active, and no grant there is reported as applied.

// unsure begins to doubt a switch that is new, or has lost its tables.
func (c *Core) unsure(id topo.NodeID, written bool) {
	n := &c.nodes[id]
	n.unsure, n.written, n.proving, n.armed = true, written, false, false
}

// awaitsLID reports work on a switch that has to wait until it has its LID.
func (c *Core) awaitsLID(x work.Ref, id topo.NodeID) bool {
	if !c.nodes[id].unsure || !c.writing() || c.marks0(id) {
		return false
	}
	switch x.Class {
	case work.PKey, work.LFT, work.SLtoVL, work.MFT, work.VLArb:
		return true
	case work.Set:
		return c.ports[x.ID].num != 0
	default:
		return false
	}
}

// marks0 reports whether port 0 of a switch was seen with the LID it is to have, also if that is none.
func (c *Core) marks0(id topo.NodeID) bool {
	pt := &c.ports[c.topo.Node(id).FirstPort]
	return pt.known && pt.info.LID == pt.lid
}

// holdForLID puts work off until the switch has its LID.
func (c *Core) holdForLID(x work.Ref, id topo.NodeID) {
	n := &c.nodes[id]
	n.lidless = append(n.lidless, x)
	c.q.MarkPort(work.Set, c.topo.Node(id).FirstPort)
}

// surer takes a PortInfo of a switch that is not sure.
func (c *Core) surer(p topo.PortID, byGet bool) {
	pt := &c.ports[p]
	id := pt.node
	n := &c.nodes[id]
	if !n.unsure || c.topo.Node(id).Type != ib.NodeSwitch {
		return
	}
	first := c.topo.Node(id).FirstPort
	if p != first && pt.info.PortState >= ib.PortArmed {
		n.armed = true
		if byGet && !n.written {
			c.sure(id) // nothing was written that could have been lost
			return
		}
	}
	if !c.marks0(id) && c.writing() {
		return
	}
	if p == first {
		c.releaseLIDless(id)
	}
	if n.armed && !n.proving {
		c.q.MarkPort(work.Info, first)
	}
}

// releaseLIDless lets the work go on that waited for the LID of a switch.
func (c *Core) releaseLIDless(id topo.NodeID) {
	n := &c.nodes[id]
	waiting := n.lidless
	n.lidless = nil
	c.q.PutBackAll(waiting)
	c.q.MarkNode(work.Switch, id)
}

// anyArmed reports whether a link of a switch is Armed or Active, as far as is known.
func (c *Core) anyArmed(id topo.NodeID) (any bool) {
	c.topo.EachExternal(id, func(p topo.PortID) {
		pt := &c.ports[p]
		any = any || pt.known && pt.info.PortState >= ib.PortArmed && linkUp(&pt.info) && c.topo.Peer(p) != topo.None
	})
	return any
}

// askSure records that the Get of PortInfo that goes out now can prove that a switch lost nothing.
func (c *Core) askSure(p topo.PortID) {
	n := &c.nodes[c.ports[p].node]
	n.proving = n.unsure && n.armed && c.ports[p].num == 0 && c.marks0(c.ports[p].node) && c.anyArmed(c.ports[p].node)
}

// gotSure takes the answer.
func (c *Core) gotSure(p topo.PortID, pi *mad.PortInfo) {
	pt := &c.ports[p]
	n := &c.nodes[pt.node]
	if pt.num != 0 || !n.proving {
		return
	}
	n.proving = false
	if pi.LID == pt.lid {
		c.sure(pt.node)
	}
}

// sure records that a switch holds what was written to it.
func (c *Core) sure(id topo.NodeID) {
	n := &c.nodes[id]
	n.unsure, n.proving = false, false
	c.releaseLIDless(id)
	c.topo.EachExternal(id, func(p topo.PortID) {
		if peer := c.topo.Peer(p); peer != topo.None && c.ports[p].seen() {
			c.q.MarkPort(work.Set, p)
			c.q.MarkPort(work.Set, peer)
		}
	})
	c.pkeys.Judge.Node(id)
}
