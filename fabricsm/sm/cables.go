package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// link records a cable between two ports.
func (c *Core) link(p, q topo.PortID) {
	c.topo.Connect(p, q)
	c.pkeys.Moved()
	c.law.SawBoth(p, q)
	c.tree.Linked(p, q)
	c.contests.Linked(p)
	for _, x := range [2]topo.PortID{p, q} {
		c.ports[x].pause, c.ports[x].told = 0, false
		c.faults.Clear(fault.Key{Kind: fault.LinkDead, Place: c.topo.PlaceOf(x)}) // perhaps it was seen from the other side
		c.touch(x)
		c.mkeys.Linked(x)
		if c.topo.IsEndPort(x) {
			c.lids.Settle(x)
		}
	}
	if c.topo.IsExternal(p) && c.topo.IsExternal(q) {
		c.routing.Want()
		for _, x := range [2]topo.PortID{p, q} {
			// Perhaps not the cable was away, but the switch: it is asked whether it still has its configuration. Its port 0
			// has lost its LID then, also if a Set of SwitchInfo has reached it since.
			if n, id := &c.nodes[c.ports[x].node], c.ports[x].node; n.sw.IsKnown() && c.writing() {
				n.sw.Recheck()
				c.q.MarkNode(work.Switch, id)
				c.q.MarkPort(work.Info, c.topo.Node(id).FirstPort)
			}
		}
	}
}

// touch looks again at everything that is programmed on a port.
func (c *Core) touch(p topo.PortID) {
	c.q.MarkPort(work.PKey, p)
	c.lanes.Touch(p)
	c.q.MarkPort(work.Set, p)
	c.aliases.Touch(p)
}

// cut forgets a cable without asking which nodes can still be reached.
func (c *Core) cut(p topo.PortID) {
	q := c.topo.Peer(p)
	c.links.Unlinked(p, q)
	c.topo.Disconnect(p)
	c.pkeys.Moved()
	c.law.Down(p, false)
	c.law.Down(q, false)
	c.mkeys.LinkLost(p, q)
	for _, x := range [2]topo.PortID{p, q} {
		pt := &c.ports[x]
		c.contests.Release(x)
		c.lanes.Doubt(x)
		c.keyDoubted(x)
		c.pkeys.Undo(x)
		c.devices.StirLink(x)
		pt.set.ForgetBits()
		pt.unread = false
		pt.obeyed = false
		pt.wrote.Forget()
		c.refusing.Obeys(x)
		if c.topo.IsExternal(x) {
			c.pkeys.Doubt(x) // the switch may have rebooted
		}
		if c.topo.IsEndPort(x) && c.topo.Node(pt.node).Type != ib.NodeSwitch {
			c.leave(x)
			pt.known = false
			c.devices.NotePort(x)
			c.pkeys.Forget(x)
			tp := c.topo.Port(x)
			tp.State = ib.PortNop // until it is read again
			c.topo.SetPort(x, tp)
		}
		c.touch(x)
	}
	if c.topo.IsExternal(p) && c.topo.IsExternal(q) {
		c.routing.Want()
	}
}

// unlink takes a cable away, and what could be reached over it alone.
func (c *Core) unlink(p topo.PortID) {
	q := c.topo.Peer(p)
	if q == topo.None {
		return
	}
	c.cut(p)
	c.tree.Unlinked(p, q)
}
