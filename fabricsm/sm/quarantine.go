package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// quarantineAt applies an action at a place, or at all links of a switch.
func (c *Core) quarantineAt(pl ib.Place, a health.Action) {
	if pl.Port != 0 {
		if p := c.topo.SwitchPortAt(pl); p != topo.None {
			c.quarantine(p, a)
		}
		return
	}
	id := c.topo.NodeByGUID(pl.Switch)
	if id == topo.None || a <= health.Ignore {
		return // the ports in front of it recover by themselves
	}
	var facing []topo.PortID
	c.topo.EachExternal(id, func(q topo.PortID) {
		if p := c.topo.Peer(q); p != topo.None && c.topo.IsExternal(p) {
			facing = append(facing, p)
		}
	})
	for _, p := range facing {
		c.shun(p, pl)
	}
}

// shun quarantines a port because of the switch behind it, for as long as that
// is sick.
func (c *Core) shun(p topo.PortID, sw ib.Place) {
	if !c.topo.IsExternal(p) || c.protected(p) {
		return
	}
	if a, ill := c.health.Shun(c.topo.PlaceOf(p), sw); ill {
		c.quarantine(p, a)
	}
}

// protected reports whether no action is taken on a port: our own and those that it depends on.
func (c *Core) protected(p topo.PortID) bool {
	return p == c.rootPort || c.topo.Peer(p) == c.rootPort || c.ports[p].node == c.root && c.topo.Node(c.root).Type != ib.NodeSwitch
}

// untouchable reports whether no action is taken at a place: a protected port, or the switch that we are attached to.
func (c *Core) untouchable(pl ib.Place) bool {
	if pl.Port != 0 {
		p := c.topo.SwitchPortAt(pl)
		return p != topo.None && c.protected(p)
	}
	id := c.topo.NodeByGUID(pl.Switch)
	return id != topo.None && (id == c.root || c.tree.Up(id) == c.rootPort)
}

// quarantine puts an action into force on a switch port, or out of it.
func (c *Core) quarantine(p topo.PortID, a health.Action) {
	pt := &c.ports[p]
	if a == health.Ignore {
		a = health.Report
	}
	if !c.topo.IsExternal(p) || pt.quarantine == a || a > health.Ignore && c.protected(p) {
		return
	}
	pt.reopen = pt.reopen || pt.quarantine == health.Disable
	pt.quarantine = a
	if a > health.Ignore {
		c.unlink(p)
		if c.ports[p].quarantine != a {
			return // its own node went with the link
		}
		c.contests.Unfence(p)
		c.contests.Release(p)
		pt.pause, pt.verify = 0, false
	} else {
		pt.pause = 0
		c.q.MarkPort(work.Probe, p)
	}
	c.q.MarkPort(work.Info, p)
	c.q.MarkPort(work.Set, p)
}

// dark reports whether nothing behind a port is read.
func (c *Core) dark(p topo.PortID) bool { return c.ports[p].barred() > health.Ignore }

// workQuarantine brings the link of a port into the state that its quarantine
// asks for. It reports whether the port is none of workSet's business.
func (c *Core) workQuarantine(p topo.PortID) bool {
	pt := &c.ports[p]
	bar := pt.barred()
	if pt.reopen && bar != health.Disable && pt.known {
		if pt.info.PortPhysicalState == ib.PhysDisabled {
			c.forceLink(p, ib.PhysPolling)
			return true
		}
		if c.law.MayBeOff(p) {
			c.q.MarkPort(work.Info, p)
			return true
		}
		pt.reopen = false
		c.law.IsOpen(p)
	}
	switch {
	case !c.dark(p):
		return false
	case !pt.known:
	case bar == health.Disable && pt.info.PortPhysicalState != ib.PhysDisabled:
		c.forceLink(p, ib.PhysDisabled)
	case bar == health.Isolate && pt.info.PortState > ib.PortInit:
		c.forceLink(p, ib.PhysNop)
	default:
		pt.set.Restart()
	}
	return true
}

// forceLink takes the link of a switch port down and says what the port does then:
// nothing that it does not do by itself, poll, or stay switched off.
func (c *Core) forceLink(p topo.PortID, phys ib.PhysState) {
	pt := &c.ports[p]
	x := work.OnPort(work.Set, p)
	if pt.set.IsStuck() {
		pt.set.Restart()
		c.pauseWork(x) // it takes the Set and does not do it
		return
	}
	c.takeDown(p, phys)
}

// nearer returns the end of a link that is nearer to us. The device that misbehaves is behind it, and only this end can
// still be reached when it is closed.
func (c *Core) nearer(p, q topo.PortID) topo.PortID {
	switch {
	case q == topo.None || !c.topo.IsExternal(q):
		return p
	case !c.topo.IsExternal(p):
		return q
	}
	a, b := c.tree.RouteTo(c.ports[p].node).Len(), c.tree.RouteTo(c.ports[q].node).Len()
	if b < a || a == b && c.topo.NodeGUID(c.ports[q].node) < c.topo.NodeGUID(c.ports[p].node) {
		return q
	}
	return p
}

// flapped records that a link went down.
func (c *Core) flapped(p, q topo.PortID) {
	at := c.nearer(p, q)
	if !c.topo.IsExternal(at) {
		return
	}
	var guid ib.GUID
	if far := c.topo.Peer(at); far != topo.None {
		guid = c.topo.NodeGUID(c.ports[far].node)
	}
	c.health.Strike(c.topo.PlaceOf(at), guid, health.Flapping)
}

// remember restores the quarantine that was in force at the ports of a node that is found again.
func (c *Core) remember(id topo.NodeID) {
	if len(c.health.Sick()) == 0 {
		return
	}
	c.topo.EachExternal(id, func(p topo.PortID) {
		if a := c.health.ActionAt(c.topo.PlaceOf(p)); a > health.Ignore {
			c.ports[p].quarantine = a
		}
	})
}
