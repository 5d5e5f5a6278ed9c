package sm

import "portcullis/fabricsm/topo"

// A host that answers late on purpose, ever at another node, must not use up the requests that silent nodes leave to the
// others. So work on subtrees that hang by one cable waits while as many answers are late as the window has requests.

// throttle reports whether a piece of work has to wait for that reason.
func (c *Core) throttle(x ref, target topo.NodeID) bool {
	if c.wire.out-c.wire.fresh < c.cfg.Window {
		return false
	}
	if target == topo.None {
		if x.class != clsProbe {
			return false
		}
		target = c.ports[x.id].node
	}
	if !c.subtrees.IsSuspect(target) {
		return false
	}
	c.throttled = append(c.throttled, x)
	return true
}

// delaysThrottled reports whether a request is about such a subtree while more work on such subtrees waits. No other work
// waits for the answer.
func (c *Core) delaysThrottled(r *request) bool {
	id := r.node
	if id == topo.None && r.ref.class == clsProbe {
		id = c.ports[r.ref.id].node
	}
	return len(c.throttled) > 0 && id != topo.None && c.subtrees.IsSuspect(id)
}

// resumeThrottled puts as much of that work back as there is room for.
func (c *Core) resumeThrottled() {
	n := min(len(c.throttled), c.cfg.Window-(c.wire.out-c.wire.fresh))
	if n <= 0 {
		return
	}
	for _, x := range c.throttled[:n] {
		if c.marksOf(x).queued&(1<<x.class) != 0 {
			c.q.push(1+int(x.class), x)
		}
	}
	if c.throttled = c.throttled[n:]; len(c.throttled) == 0 {
		c.throttled = nil
	}
}
