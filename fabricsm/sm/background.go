package sm

import (
	"time"

	"portcullis/fabricsm/sm/work"
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
	if c.q.IsEmpty() && (c.tally.IsSettled() || c.now.Sub(b.since) > backgroundPatience) {
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
	if c.mkeys.Rotation().IsAsking() {
		c.mkeys.Rotation().Soon() // it may have waited for a device that does not answer
	}
}

// backgroundOne puts one item into the queue. The node or port of the item may be gone.
func (c *Core) backgroundOne(x work.Ref) {
	if x.Class == work.Probe {
		c.hosts.AskInBackground(x.Port())
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
			laneFabric{c}.auditMaps(x.Port())
		}
		return
	}
	if x.Class == work.Vendor {
		if c.nodes[pt.node].alive && pt.known {
			c.q.Mark(x)
		} else {
			c.mkeys.Rotation().Unanswered(x.Port())
		}
		return
	}
	if c.nodes[pt.node].alive {
		c.pkeys.ReadRest(x.Port())
	}
}
