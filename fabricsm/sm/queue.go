package sm

import (
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// pump takes work from the queue while the window has room.
func (c *Core) pump() {
	c.resumeThrottled()
	for c.wire.HasRoom(c.cfg.Window) {
		c.unread.ReadLevel()
		x, ok := c.q.Pop()
		if !ok {
			return
		}
		target, ok := c.targetOf(x)
		if c.q.IsVoid(x) {
			c.passTurn(target, ok)
			continue
		}
		if !ok {
			c.q.Unmark(x)
			continue
		}
		if c.throttle(x, target) {
			c.passTurn(target, ok)
			continue
		}
		if target != topo.None && c.mkeys.IsOn() {
			if p, held := c.mkeys.Holds(x, target); held {
				c.mkeys.Await(x, p)
				c.passTurn(target, ok)
				continue
			}
		}
		if target != topo.None && c.sure.Awaits(x, target) {
			c.sure.Hold(x, target)
			c.passTurn(target, ok)
			continue
		}
		if target != topo.None && int(c.nodes[target].out) >= c.cfg.PerTarget {
			n := &c.nodes[target]
			n.parked = append(n.parked, x)
			continue
		}
		c.q.Unmark(x)
		if c.overdrawn(x) {
			c.passTurn(target, ok)
			continue
		}
		if target == topo.None {
			c.workOn(x)
			continue
		}
		before := c.nodes[target].out
		c.workOn(x)
		if n := &c.nodes[target]; n.out == before {
			c.unpark(n) // its turn was not used
		}
	}
}

// passTurn lets the next work that waits for a node go ahead, after work that sent nothing. That work may have used the
// turn of a node, and nothing else would pass it on.
func (c *Core) passTurn(target topo.NodeID, ok bool) {
	if ok && target != topo.None {
		c.unpark(&c.nodes[target])
	}
}

// targetOf returns the node that a piece of work is to ask, None if it is not known yet. Work on nodes that are gone or
// silent is dropped: all work of a node is marked when it comes back.
func (c *Core) targetOf(x work.Ref) (topo.NodeID, bool) {
	switch {
	case x.Class == work.Root, x.Class == work.Probe:
		return topo.None, true
	case x.Class.IsOnNode():
		n := &c.nodes[x.ID]
		return x.Node(), n.alive && !n.silent
	default:
		id := c.ports[x.ID].node
		return id, c.nodes[id].alive && !c.nodes[id].silent
	}
}

// unpark puts one piece of work back that waited for its node.
func (c *Core) unpark(n *node) {
	for len(n.parked) > 0 && int(n.out) < c.cfg.PerTarget {
		x := n.parked[0]
		n.parked = n.parked[1:]
		if len(n.parked) == 0 {
			n.parked = nil
		}
		if c.q.PutBack(x) {
			return
		}
	}
}

// work looks at one item and sends the next request for it, if any.
func (c *Core) workOn(x work.Ref) {
	switch x.Class {
	case work.Switch:
		switchFabric{desk{c}}.look(x.Node())
	case work.Info:
		c.workInfo(x.Port())
	case work.Root, work.Probe:
		c.workProbe(x)
	case work.SMInfo:
		c.election.Work(x.Port())
	case work.PKey:
		c.workPKeys(x.Port())
	case work.LFT:
		c.workLFT(x.Node())
	case work.SLtoVL, work.VLArb:
		laneFabric{c}.step(x, c.lanes.Next(x))
	case work.Set:
		c.workSet(x.Port())
	case work.Desc:
		c.workDescription(x.Node())
	case work.GUID:
		c.workGUIDs(x.Port())
	case work.MFT:
		c.workMFT(x.Node())
	case work.Vendor:
		linkFabric{desk{c}}.look(x.Port())
	case work.Notice:
		notices{desk{c}}.work(x.Port())
	}
}
