package sm

import (
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// A host that answers late on purpose, ever at another node, must not use up the requests that silent nodes leave to the
// others. So work on subtrees that hang by one cable waits while as many answers are late as the window has requests.

// throttle reports whether a piece of work has to wait for that reason.
func (c *Core) throttle(x work.Ref, target topo.NodeID) bool {
	if c.wire.Late() < c.cfg.Window {
		return false
	}
	if target == topo.None {
		if x.Class != work.Probe {
			return false
		}
		target = c.ports[x.ID].node
	}
	if !c.subtrees.IsSuspect(target) {
		return false
	}
	c.throttled = append(c.throttled, x)
	return true
}

// delaysThrottled reports whether a request is about such a subtree while more work on such subtrees waits. No other work
// waits for the answer.
func (c *Core) delaysThrottled(r *work.Request) bool {
	id := r.Node
	if id == topo.None && r.Ref.Class == work.Probe {
		id = c.ports[r.Ref.ID].node
	}
	return len(c.throttled) > 0 && id != topo.None && c.subtrees.IsSuspect(id)
}

// resumeThrottled puts as much of that work back as there is room for.
func (c *Core) resumeThrottled() {
	n := min(len(c.throttled), c.cfg.Window-c.wire.Late())
	if n <= 0 {
		return
	}
	c.q.PutBackAll(c.throttled[:n])
	if c.throttled = c.throttled[n:]; len(c.throttled) == 0 {
		c.throttled = nil
	}
}
