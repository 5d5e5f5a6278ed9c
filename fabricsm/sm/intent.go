package sm

// setIntent replaces all that is wanted. Only what differs from before is
// looked at.
func (c *Core) setIntent(in *Intent) {
	took := c.members.TakesOver()
	for _, pl := range c.members.Take(in) {
		c.expel(pl)
	}
	c.intended(in.Revision)
	if took && !c.members.TakesOver() && c.writing() {
		c.touchAll() // what was kept without a host behind it goes
	}
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
