package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// A link comes up at both ends at once and leaves both in Init (IBTA volume 1,
// 7.2.7); only a subnet manager moves them on. So when one end was read in Init,
// and a NodeInfo over the link said which port the other end is, that port need
// not be read before it is written: nothing lives on it, and the answer to a Set
// shows all of PortInfo (14.2.5.6). Should the device refuse, or should a grant
// depend on the port, it is read after all.

// leaveUnread takes the far end of a link that was just found: it is read only
// if it must be.
func (c *Core) leaveUnread(q topo.PortID) {
	pt := &c.ports[q]
	if pt.known || pt.unread || c.q.IsAsked(work.Info, q) {
		return
	}
	pt.unread = true
	if !c.mayWriteUnread(q) {
		c.readAfterAll(q)
		return
	}
	c.q.Unmark(work.OnPort(work.Info, q))
	pt.fresh = true
	pt.info = portset.Guess(&c.ports[c.topo.Peer(q)].info)
	c.touch(q)
	if c.topo.IsEndPort(q) {
		c.lids.Settle(q)
	}
}

// mayWriteUnread reports whether a port which was never read may be written. Speeds and widths cannot be set without
// knowing those that it supports.
func (c *Core) mayWriteUnread(q topo.PortID) bool {
	peer := c.topo.Peer(q)
	return !c.mkeys.IsOn() && peer != topo.None && c.topo.IsExternal(peer) && c.ports[peer].known && c.ports[peer].info.PortState == ib.PortInit &&
		!c.pkeys.Concerns(q) && c.rules.LinkOf(q) == (portpolicy.Link{})
}

// readAfterAll reads a port that was left unread.
func (c *Core) readAfterAll(q topo.PortID) {
	c.ports[q].unread = false
	c.q.MarkPort(work.Info, q)
}

// seen reports whether enough is known of a port to write to it.
func (pt *port) seen() bool { return pt.known || pt.unread }

// readUnread reads the end ports that were left unread, and reports whether there were any. An SM that is not master yet
// asks every port whether another SM is on it. Where no link was ever configured this is not needed, since there is no
// master then. It is still needed if other SMs are expected that share our SM_Key, as they may just be starting, too.
func (c *Core) readUnread() bool {
	if !c.configured && c.cfg.SMKey.IsZero() {
		return false
	}
	any := false
	for p := range c.ports {
		if id := topo.PortID(p); c.ports[p].unread && c.topo.IsEndPort(id) {
			c.readAfterAll(id)
			any = true
		}
	}
	return any
}

// A new switch has most of its cables found from the nodes that are nearer to
// us. So its ports are read when those are done: the ports of a switch that are
// unknown then lead away from us, and every cable is asked for from one end.

// readLevel reads the ports of the switches that were found lately, once nothing
// is left to be found nearer to us. A node that keeps us waiting longer than
// Config.Late does not hold that up.
func (c *Core) readLevel() {
	if len(c.level) == 0 && !c.subtrees.IsPending() || c.q.MayFind() || c.wire.MayFind() {
		return
	}
	for _, p := range c.subtrees.EndLevel() {
		c.q.MarkPort(work.Probe, p)
	}
	level := c.level
	c.level = nil
	for _, id := range level {
		if !c.nodes[id].alive {
			continue
		}
		c.topo.EachExternal(id, func(p topo.PortID) {
			if pt := &c.ports[p]; !pt.seen() && !c.q.IsAsked(work.Info, p) {
				c.q.MarkPort(work.Info, p)
			}
		})
	}
}
