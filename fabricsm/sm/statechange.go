package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// PortStateChange says that some port of a switch changed, not which. The ports
// without a link and those to hosts are read first. If one of them had changed,
// that was most likely all: the links to other switches are then left to the
// next step of the audit, since a change of theirs is reported from the other
// end, too.

// readPorts looks for the ports of a switch that changed.
func (c *Core) readPorts(id topo.NodeID) {
	n := &c.nodes[id]
	n.readPorts, n.found = false, false
	for _, likely := range [2]bool{true, false} {
		c.eachPort(id, func(p topo.PortID) {
			peer := c.peer(p)
			if peer != topo.None && !c.isEnd(peer) || (peer == topo.None) != likely {
				return
			}
			if pt := &c.ports[p]; !pt.suspect {
				pt.suspect = true
				n.suspects++
			}
			c.markPort(clsInfo, p)
		})
	}
	if n.suspects == 0 {
		c.readTrunks(id)
	}
}

// cleared takes what a suspect shows.
func (c *Core) cleared(p topo.PortID, pi *mad.PortInfo) {
	pt := &c.ports[p]
	n := &c.nodes[pt.node]
	pt.suspect = false
	n.suspects--
	n.found = n.found || pi == nil || !pt.known || pi.PortState != pt.info.PortState
	switch {
	case n.suspects > 0:
	case n.found && c.cfg.AuditPeriod > 0:
		if !n.later {
			n.later = true
			c.lookLater = append(c.lookLater, pt.node)
		}
	default:
		c.readTrunks(pt.node)
	}
}

// readTrunks reads the ports of a switch that lead to other switches.
func (c *Core) readTrunks(id topo.NodeID) {
	c.eachPort(id, func(p topo.PortID) {
		if peer := c.peer(p); peer != topo.None && !c.isEnd(peer) {
			c.markPort(clsInfo, p)
		}
	})
}

// auditTrunks looks at the links of one switch that were left for later.
func (c *Core) auditTrunks() {
	for len(c.lookLater) > 0 {
		id := c.lookLater[0]
		c.lookLater = c.lookLater[1:]
		if n := &c.nodes[id]; n.alive && n.later {
			n.later = false
			c.eachPort(id, func(p topo.PortID) {
				if peer := c.peer(p); peer != topo.None && !c.isEnd(peer) {
					c.background(p)
				}
			})
			return
		}
	}
}

// eachPort calls f for the external ports of a switch.
func (c *Core) eachPort(id topo.NodeID, f func(topo.PortID)) {
	tn := c.topo.Node(id)
	if tn.Type != ib.NodeSwitch {
		return
	}
	for i := 1; i <= int(tn.NumPorts); i++ {
		f(tn.FirstPort + topo.PortID(i))
	}
}
