package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Who did it. A directed route that was refused says by which port it came into
// each switch on its way, last hop last, and switches write that themselves. The
// sender may have written entries before the first switch did, to look as if it
// came from further away. So the way is walked back from the device that reports
// it, over the cables that are known, and ends at the first that is no switch: only
// a switch forwards directed routes, so that is where it was sent.

// trace walks the return path of a directed-route SMP back from the port that
// refused it, and gives the end port that sent it; None if it leads nowhere.
// Entry i of the path is the port by which hop i came in, from 1 to hops.
func (c *Core) trace(from topo.PortID, path []ib.PortNum, hops int) topo.PortID {
	if hops >= len(path) {
		return topo.None
	}
	at, end := c.ports[from].node, topo.PortID(topo.None)
	for i := hops; i >= 1; i-- {
		out := c.topo.PortOf(at, path[i])
		if i == hops && path[i] == 0 && at == c.ports[from].node && !c.external(from) {
			out = from // some adapters leave their own port out
		}
		if out == topo.None || c.ports[out].num == 0 {
			return topo.None
		}
		if end = c.peer(out); end == topo.None {
			return topo.None
		}
		at = c.ports[end].node
		if c.topo.Node(at).Type != ib.NodeSwitch {
			return end
		}
	}
	if end != topo.None {
		end = c.topo.Node(at).FirstPort // a switch itself
	}
	return end
}

// accuse names an end port as the source of a report.
func (c *Core) accuse(r *report, p topo.PortID, traced bool) {
	r.guid, r.place, r.traced = c.guidOf(p), c.placeOf(p), traced
	if c.topo.Node(c.ports[p].node).Type == ib.NodeSwitch {
		r.place = ib.Place{Switch: c.nodeGUID(c.ports[p].node)}
	}
}

// accuseLID names the port with a LID as the source, as a packet says that it is.
func (c *Core) accuseLID(r *report, l ib.LID) {
	if p := c.byLID(l); p != topo.None {
		c.accuse(r, p, false)
		return
	}
	r.lid = l
}

// accuseMKey names who sent an SMP that a device refused.
func (c *Core) accuseMKey(r *report, from topo.PortID, n *mad.Trap256) ib.LID {
	source := n.LID
	if n.DRNotice {
		if n.DrSLID.IsUnicast() { // a part that was routed by LID came first
			source = n.DrSLID
			c.accuseLID(r, source)
			return source
		}
		p := topo.PortID(topo.None)
		if !n.DRPathTruncated && !n.LID.IsUnicast() { // else its last part was routed by LID
			p = c.trace(from, n.DRReturnPath[:], int(n.DRHopCount))
		}
		if p == topo.None {
			return 0 // the way leads nowhere
		}
		c.accuse(r, p, true)
		return c.ports[p].lid
	}
	c.accuseLID(r, source)
	return source
}

// accuseSwitch names who sent a packet that an external port of a switch stopped:
// who is cabled there, unless it was on its way out to that one.
func (c *Core) accuseSwitch(r *report, port topo.PortID, n *mad.Trap259) {
	from, to := c.byLID(n.LIDADDR1), c.byLID(n.LIDADDR2)
	peer := c.peer(port)
	outbound := peer != topo.None && to != topo.None && to == c.entryPort(peer) && from != to
	if outbound || peer == topo.None {
		c.accuseLID(r, n.LIDADDR1)
		return
	}
	if p := c.entryPort(peer); c.topo.Node(c.ports[p].node).Type != ib.NodeSwitch {
		c.accuse(r, p, true)
		return
	}
	c.accuseLID(r, n.LIDADDR1) // it came over a trunk
}
