package sm

import (
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// setIntent replaces all that is wanted. Only what differs from before is
// looked at.
func (c *Core) setIntent(in *Intent) {
	for _, pl := range c.members.Take(in) {
		c.expel(pl)
	}
	c.intended(in.Revision)
}

// intended looks at the memberships that an intent has changed.
func (c *Core) intended(revision int64) {
	changed, first := c.members.Intended(revision)
	c.viewDue = true
	for _, ms := range changed {
		now := *ms // looking at it may remove it
		c.lookAt(&now)
	}
	if first {
		c.stopWaiting()
	}
}

// lookAt marks the ports that a membership concerns for work, at once if access is removed.
func (c *Core) lookAt(ms *members.Membership) {
	mark := c.q.Mark
	if ms.Leaving {
		mark = c.q.MarkUrgent
	}
	c.faults.Clear(ms.Refused())
	if sp := c.topo.SwitchPortAt(ms.Place); sp != topo.None {
		c.expel(ms.Place)
		mark(work.OnPort(work.PKey, sp))
	}
	if h, ok := c.byPort[ms.GUID]; ok {
		if sp := c.topo.Peer(h); sp != topo.None {
			mark(work.OnPort(work.PKey, sp))
		}
		mark(work.OnPort(work.PKey, h))
	}
	c.pkeys.Judge.GUID(ms.GUID)
}
