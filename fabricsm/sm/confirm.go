package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// The host behind a switch port is asked for its identity when its link is found. By the time the link is Armed, the cable
// may be in another host: while the link was in Init nothing showed that the cable was out. A link that was Armed and then
// out is in Init again, though, and cannot be made Active from there (IBTA volume 1, 7.2.7). So where a grant depends on
// it, the host is asked once more for its identity while the link is Armed. Elsewhere that is done in the background.

// noteArmed keeps account of whether the host behind a switch port was asked
// since its link was armed. It is called with every PortInfo.
func (c *Core) noteArmed(p topo.PortID) {
	pt := &c.ports[p]
	switch {
	case !c.topo.IsExternal(p):
	case pt.info.PortState < ib.PortArmed:
		pt.armed, pt.confirmed = 0, false
	case pt.armed == 0:
		pt.armed = int64(c.now.Sub(c.born)) + 1
		if !c.asksTwice(p) {
			c.inBackground(work.OnPort(work.Probe, p))
		}
	}
}

// asksTwice reports whether the host behind a switch port has to be asked once more before it is let in. That is so where
// something is granted, or where the declared topology is enforced.
func (c *Core) asksTwice(p topo.PortID) bool { return c.law.Enforces() || c.pkeys.Concerns(p) }

// confirm handles a probe that found the expected node.
func (c *Core) confirm(p topo.PortID, r *work.Request) {
	pt := &c.ports[p]
	pt.confirming = false
	switch {
	case pt.armed == 0 || pt.confirmed:
	case int64(r.Sent.Sub(c.born)) >= pt.armed-1:
		pt.confirmed = true
		c.q.MarkPort(work.Set, p)
		if peer := c.topo.Peer(p); peer != topo.None {
			c.q.MarkPort(work.Set, peer)
		}
		c.pkeys.Judge.Port(p)
	case c.asksTwice(p):
		c.confirmNow(p)
	}
}

// confirmed reports whether the host behind a switch port was asked for its identity since the link was armed. If not, it
// asks.
func (c *Core) confirmed(sp topo.PortID) bool {
	if c.ports[sp].confirmed {
		return true
	}
	c.confirmNow(sp)
	return false
}

func (c *Core) confirmNow(sp topo.PortID) {
	if pt := &c.ports[sp]; pt.armed != 0 && !c.q.IsAsked(work.Probe, sp) {
		pt.verify = true
		c.q.MarkPort(work.Probe, sp)
	}
}

// MayActivate reports whether a port that is Armed may be made Active, as far as that depends on the identity of the host.
func (g portGate) MayActivate(p topo.PortID) bool {
	sp := p
	if !g.topo.IsExternal(p) {
		sp = g.topo.Peer(p)
	}
	if sp == topo.None || !g.topo.IsExternal(sp) {
		return true
	}
	h := g.topo.Peer(sp)
	if h != topo.None && g.topo.IsExternal(h) {
		return !g.law.Enforces() || g.confirmed(min(sp, h))
	}
	if h != topo.None && g.topo.IsEndPort(h) && (!g.mkeys.IsSettled(h) || g.nodes[g.ports[sp].node].unsure) {
		return false
	}
	return h == topo.None || !g.topo.IsEndPort(h) || !g.asksTwice(sp) && !g.pkeys.Concerns(h) || g.confirmed(sp)
}

// confirmInBackground asks a host again for its identity, unless that was done or the link is away.
func (c *Core) confirmInBackground(p topo.PortID) {
	pt := &c.ports[p]
	if peer := c.topo.Peer(p); pt.armed != 0 && !pt.confirmed && peer != topo.None && c.topo.IsEndPort(peer) {
		pt.confirming = true
		c.q.MarkPort(work.Probe, p)
	}
}
