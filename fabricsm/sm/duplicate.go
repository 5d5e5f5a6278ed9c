package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// contest begins to find out who is right: behind port newcomer answers what is
// known to be linked to port known. Either the cable was moved, or two nodes
// have one GUID. The known place is asked again.
func (c *Core) contest(known, newcomer topo.PortID) {
	pt := &c.ports[known]
	pt.challenger, pt.verify = newcomer, true
	c.markPort(clsInfo, known)
	c.markPort(clsProbe, known)
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
	peer := c.peer(known)
	guid := c.nodeGUID(c.ports[peer].node)
	c.duplicate(guid, c.placeOf(known), challenger)
}

// duplicate closes port p, behind which a GUID answers that is elsewhere, and
// looks at it again later: the twin may have gone.
func (c *Core) duplicate(guid ib.GUID, first ib.Place, p topo.PortID) {
	if c.peer(p) != topo.None {
		c.unlink(p)
	}
	pt := &c.ports[p]
	if !c.nodes[pt.node].alive {
		return
	}
	if !pt.fenced {
		pt.fenced = true
		c.problem(problemKey{kind: twin, place: c.placeOf(p)}, &DuplicateGUID{GUID: guid, First: first, Second: c.placeOf(p)})
	}
	pt.pause = c.longer(pt.pause)
	c.after(pt.pause, timerRetry, ref{clsProbe, int32(p)})
}

// seenAt gives the place at which an end port, or the node of a switch port, is
// seen.
func (c *Core) seenAt(p topo.PortID) ib.Place {
	if p == topo.None {
		return ib.Place{}
	}
	return c.placeOf(p)
}

// firstLink gives the far end of the first cable of a node.
func (c *Core) firstLink(id topo.NodeID) topo.PortID {
	tn := c.topo.Node(id)
	for i := 1; i <= int(tn.NumPorts); i++ {
		if p := c.peer(tn.FirstPort + topo.PortID(i)); p != topo.None {
			return p
		}
	}
	return topo.None
}

// unfence opens a port that was closed because of a duplicate.
func (c *Core) unfence(p topo.PortID) {
	if c.ports[p].fenced {
		c.ports[p].fenced = false
		c.solved(problemKey{kind: twin, place: c.placeOf(p)})
	}
}
