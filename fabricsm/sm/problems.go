package sm

import "portcullis/fabricsm/sm/fault"

// problem reports something wrong, once, and keeps it in the views until it is solved.
func (c *Core) problem(k fault.Key, e Event) {
	if c.faults.Set(k, e.String()) {
		c.event(e)
	}
}
