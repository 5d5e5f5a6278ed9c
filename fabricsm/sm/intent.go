package sm

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
		c.pkeys.Changed(&now)
	}
	if first {
		c.stopWaiting()
	}
}
