package sm

import (
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// pump takes work from the queue while the window has room.
func (c *Core) pump() {
	c.throttle.Resume()
	for c.wire.HasRoom(c.cfg.Window) {
		c.unread.ReadLevel()
		x, ok := c.q.Pop()
		if !ok {
			return
		}
		target, ok := work.TargetOf(lives{desk{c}}, x)
		if c.q.IsVoid(x) {
			c.passTurn(target, ok)
			continue
		}
		if !ok {
			c.q.Unmark(x)
			continue
		}
		if c.throttle.Delays(x, target) {
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
		if target != topo.None && c.nodes[target].turns.Out() >= c.cfg.PerTarget {
			c.nodes[target].turns.Park(x)
			continue
		}
		c.q.Unmark(x)
		if c.budget.IsOverdrawn(x) {
			c.passTurn(target, ok)
			continue
		}
		if target == topo.None {
			c.handlers[x.Class].Work(x)
			continue
		}
		before := c.nodes[target].turns.Out()
		c.handlers[x.Class].Work(x)
		if t := &c.nodes[target].turns; t.Out() == before {
			t.PassOn(&c.q, c.cfg.PerTarget) // its turn was not used
		}
	}
}

// passTurn lets the next work that waits for a node go ahead, after work that sent nothing. That work may have used the
// turn of a node, and nothing else would pass it on.
func (c *Core) passTurn(target topo.NodeID, ok bool) {
	if ok && target != topo.None {
		c.nodes[target].turns.PassOn(&c.q, c.cfg.PerTarget)
	}
}
