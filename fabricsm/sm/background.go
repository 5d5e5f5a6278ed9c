package sm

import (
	"time"

	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Data that no other work waits for is requested in the background, at a paced rate, once the fabric is settled. These are
// names of nodes, and those blocks of P_Key tables that are most likely empty. Background work does not make the fabric
// unsettled, unless it finds something that has to be written.

const (
	// backgroundTick and backgroundBatch pace it: 4,000 requests a second.
	backgroundTick  = 10 * time.Millisecond
	backgroundBatch = 40
	// backgroundPatience is how long a fabric that does not settle puts it off.
	backgroundPatience = 10 * time.Second
	// backgroundAnswers is how long the last answers are waited for.
	backgroundAnswers = time.Second
)

// background is the work that no other work waits for.
type background struct {
	work.Ring
	armed bool      // work.Background runs
	since time.Time // of the oldest that was put off
	ended time.Time // when the last of it was asked for
}

// inBackground puts an item into the background queue.
func (c *Core) inBackground(x work.Ref) {
	b := &c.idleWork
	b.Push(x)
	b.ended = time.Time{}
	if !b.armed {
		b.armed, b.since = true, c.now
		c.after(backgroundTick, work.Background, work.Ref{})
	}
}

// backgroundDue works on a batch.
func (c *Core) backgroundDue() {
	b := &c.idleWork
	if c.q.IsEmpty() && (!c.unsettled || c.now.Sub(b.since) > backgroundPatience) {
		for range backgroundBatch {
			x, ok := b.Pop()
			if !ok {
				c.backgroundDone()
				return
			}
			c.backgroundOne(x)
		}
	}
	c.after(backgroundTick, work.Background, work.Ref{})
}

// backgroundDone shows what was found, once the answers are there.
func (c *Core) backgroundDone() {
	b := &c.idleWork
	if b.ended.IsZero() {
		b.ended = c.now
	}
	if c.wire.Out() > 0 && c.now.Sub(b.ended) < backgroundAnswers || c.now.Equal(b.ended) {
		c.after(backgroundTick, work.Background, work.Ref{})
		return
	}
	b.armed, b.Ring, b.ended = false, work.Ring{}, time.Time{}
	c.viewDue = true
	if c.mkeys.rotation.asking > 0 {
		c.rotateSoon() // it may have waited for a device that does not answer
	}
}

// backgroundOne puts one item into the queue. The node or port of the item may be gone.
func (c *Core) backgroundOne(x work.Ref) {
	if x.Class == work.Probe {
		c.confirmInBackground(x.Port())
		return
	}
	if x.Class.IsOnNode() {
		if n := &c.nodes[x.ID]; n.alive && !n.described {
			c.q.Mark(x)
		}
		return
	}
	pt := &c.ports[x.ID]
	if x.Class == work.SLtoVL {
		if c.nodes[pt.node].alive && pt.known {
			c.auditMaps(x.Port())
		}
		return
	}
	if x.Class == work.Vendor {
		if c.nodes[pt.node].alive && pt.known {
			c.q.Mark(x)
		} else {
			c.knowDual(x.Port(), dualUnknown)
		}
		return
	}
	pt.listed = false
	if c.nodes[pt.node].alive && pt.pkeys != nil {
		pt.readRest = true
		c.q.Mark(x)
	}
}

// mayStayUnread reports whether a block of a P_Key table is left to the background. Nothing is wanted in such a block, its
// link came up without configuration, and an entry in it would grant no access. That is so for an adapter whose switch port
// checks P_Keys. It is also so for a port of a switch that was reset: its LinearFDBTop was 0, which no subnet manager
// leaves so, and a reset empties the tables (IBTA volume 1, 10.9.1). The first block is always written. Where something is
// granted, or to be proven gone, every block is read.
func (c *Core) mayStayUnread(p topo.PortID, block int) bool {
	pt := &c.ports[p]
	if block == 0 || c.members.keep || !c.freshKeys(p) || c.concerns(p) {
		return false
	}
	if pt.num == 0 || c.topo.IsExternal(p) {
		return c.nodes[pt.node].reset
	}
	sp := c.topo.Peer(p)
	return sp != topo.None && c.topo.IsExternal(sp) && c.canEnforce(sp) && !c.forgetsEnforcement(sp)
}

// freshKeys reports whether the P_Key table of a port is written without being read: its link, or the switch it is port 0
// of, came up without configuration.
func (c *Core) freshKeys(p topo.PortID) bool {
	pt := &c.ports[p]
	return pt.fresh || pt.num == 0 && c.nodes[pt.node].reset
}

// readRestLater leaves the unknown blocks of a table to the background.
func (c *Core) readRestLater(p topo.PortID) {
	if pt := &c.ports[p]; !pt.listed && !pt.readRest && pt.pkeys.knows() != len(pt.pkeys.blocks) {
		pt.listed = true
		c.inBackground(work.OnPort(work.PKey, p))
	}
}

// knows counts the blocks whose content is known.
func (t *pkeyTable) knows() (n int) {
	for _, s := range t.blocks {
		if s != blockUnknown {
			n++
		}
	}
	return n
}

// readRest reads the next block that was left to the background.
func (c *Core) readRest(p topo.PortID) bool {
	pt := &c.ports[p]
	if !pt.readRest {
		return false
	}
	for b, s := range pt.pkeys.blocks {
		if s == blockUnknown {
			c.auditing = true
			c.readKeys(p, b)
			c.auditing = false
			return true
		}
	}
	pt.readRest = false
	return false
}
