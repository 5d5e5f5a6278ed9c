package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// The source of a report. None of these fields proves it:
//
//   - the source LID of a packet is stamped by the sender's adapter. Other firmware may
//     stamp another;
//   - a directed route says by which port it came into each switch on its way, last hop
//     last, and switches write that themselves. The sender may have written entries
//     before the first switch did, to look as if it came from further away. So the way is
//     walked back from the device that reports it, over the cables that are known, and
//     ends at the first that is no switch: only a switch forwards directed routes. But an
//     SMP whose hop pointer is past its hop count is taken by the first that gets it
//     (IBTA volume 1, C14-9), with a way that its sender made up whole;
//   - the trap itself may be forged.
//
// The LID that the sender wrote into the SMP as its own (DrSLID) names no port: it is recorded where it differs.

// trace walks the return path of a directed-route SMP back from the port that refused it, and returns the end port that
// sent it; None if the path leads nowhere. Entry i of the path is the port by which hop i came in, from 1 to hops.
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
func (c *Core) accuse(r *report, p topo.PortID, by Basis) {
	r.guid, r.place, r.by = c.guidOf(p), c.placeOf(p), by
	if c.topo.Node(c.ports[p].node).Type == ib.NodeSwitch {
		r.place = ib.Place{Switch: c.nodeGUID(c.ports[p].node)}
	}
}

// accuseLID names the port with a LID as the source, as a packet says that it is.
func (c *Core) accuseLID(r *report, l ib.LID) {
	if p := c.byLID(l); p != topo.None {
		c.accuse(r, p, ByLID)
		return
	}
	r.lid = l
}

// accuseMKey names the sender of an SMP that a device refused, and returns its LID, or 0.
func (c *Core) accuseMKey(r *report, from topo.PortID, n *mad.Trap256) ib.LID {
	if !n.DRNotice {
		c.accuseLID(r, n.LID)
		return n.LID
	}
	source := c.accuseDirected(r, from, n)
	if n.DrSLID.IsUnicast() && n.DrSLID != source && !(source != 0 && c.byLID(n.DrSLID) != topo.None && c.byLID(n.DrSLID) == c.byLID(source)) {
		r.named = n.DrSLID
	}
	return source
}

// accuseDirected is accuseMKey for a directed route. Its last part may have been routed
// by LID: then the switch at the end of the path stamped its LID, or an adapter sent it by
// LID alone and stamped its own.
func (c *Core) accuseDirected(r *report, from topo.PortID, n *mad.Trap256) ib.LID {
	stamped, at := topo.PortID(topo.None), from
	if n.LID.IsUnicast() {
		if stamped = c.byLID(n.LID); stamped == topo.None || c.ports[stamped].num != 0 || n.DRHopCount == 0 {
			c.accuseLID(r, n.LID)
			return n.LID
		}
		at = stamped
	}
	p := topo.PortID(topo.None)
	if !n.DRPathTruncated && n.DRHopCount > 0 {
		p = c.trace(at, n.DRReturnPath[:], int(n.DRHopCount))
	}
	switch {
	case p != topo.None && (c.ports[p].num != 0 || !n.DrSLID.IsUnicast()):
		c.accuse(r, p, ByWay)
		return c.ports[p].lid
	case p == topo.None && stamped != topo.None:
		c.accuse(r, stamped, ByLID)
		return n.LID
	default:
		return 0 // the way leads nowhere, or to a switch that got it by LID from a sender that nothing shows
	}
}

// accuseSwitch names the sender of a packet that an external port of a switch stopped:
// the port that is cabled there, unless the packet was on its way out to that one.
func (c *Core) accuseSwitch(r *report, port topo.PortID, n *mad.Trap259) {
	from, to := c.byLID(n.LIDADDR1), c.byLID(n.LIDADDR2)
	peer := c.peer(port)
	outbound := peer != topo.None && to != topo.None && to == c.entryPort(peer) && from != to
	if outbound || peer == topo.None {
		c.accuseLID(r, n.LIDADDR1)
		return
	}
	if p := c.entryPort(peer); c.topo.Node(c.ports[p].node).Type != ib.NodeSwitch {
		c.accuse(r, p, ByPort)
		return
	}
	c.accuseLID(r, n.LIDADDR1) // it came over a trunk
}
