package sm

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// PortStateChange says that some port of a switch changed, not which. Its ports
// are read by neighbourhood, the likeliest first: where there is no link, since
// one that comes up is one of few; then those to hosts; then those to other
// switches. When a change was found it was most likely all, and what is left
// waits for the next step of the audit. A change between switches is reported
// from the other end, too.

// neighbourhood is what a port of a switch leads to.
type neighbourhood uint8

const (
	toNobody neighbourhood = iota
	toHosts
	toSwitches
	neighbourhoods
)

// neighbourhoodOf returns what a port leads to.
func neighbourhoodOf(t *topo.Builder, p topo.PortID) neighbourhood {
	switch peer := t.Peer(p); {
	case peer == topo.None:
		return toNobody
	case t.IsEndPort(peer):
		return toHosts
	default:
		return toSwitches
	}
}

// readPorts looks for the ports of a switch that changed.
func (c *Core) readPorts(id topo.NodeID) {
	n := &c.nodes[id]
	n.readPorts, n.found, n.looking = false, false, toNobody
	c.readNext(id)
}

// readNext reads the next neighbourhood that has ports.
func (c *Core) readNext(id topo.NodeID) {
	n := &c.nodes[id]
	for ; n.looking < neighbourhoods && n.suspects == 0; n.looking++ {
		c.topo.EachExternal(id, func(p topo.PortID) {
			if neighbourhoodOf(&c.topo, p) != n.looking {
				return
			}
			if pt := &c.ports[p]; !pt.suspect {
				pt.suspect = true
				n.suspects++
			}
			c.q.MarkPort(work.Info, p)
		})
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
	case n.suspects > 0 || n.looking == neighbourhoods:
	case n.found && n.looking > toNobody && c.cfg.AuditPeriod > 0: // else another change was reported in the meantime
		if n.leftFrom == toNobody {
			c.lookLater = append(c.lookLater, pt.node)
			n.leftFrom = n.looking
		}
		n.leftFrom = min(n.leftFrom, n.looking)
	default:
		c.readNext(pt.node)
	}
}

// auditLeft reads the ports that were left for later: those to hosts at every switch, since no other device reports them,
// and those to other switches at one switch.
func (c *Core) auditLeft() {
	waiting, links := c.lookLater[:0], false
	for _, id := range c.lookLater {
		n := &c.nodes[id]
		if !n.alive || n.leftFrom == toNobody {
			continue
		}
		if n.leftFrom == toHosts {
			c.readQuietly(id, toHosts)
			n.leftFrom = toSwitches
		}
		if links {
			waiting = append(waiting, id)
			continue
		}
		c.readQuietly(id, toSwitches)
		n.leftFrom, links = toNobody, true
	}
	c.lookLater = waiting
}

func (c *Core) readQuietly(id topo.NodeID, at neighbourhood) {
	c.topo.EachExternal(id, func(p topo.PortID) {
		if neighbourhoodOf(&c.topo, p) == at {
			c.background(p)
		}
	})
}
