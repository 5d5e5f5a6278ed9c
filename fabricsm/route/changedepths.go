package route

import "slices"

// takeDepths copies the previous depths, and finds those of new switches from the next switch of their leads. A home whose
// depths cannot be found so is walked.
func (c *change) takeDepths() {
	n, m := len(c.g.IDs), len(c.old.g.IDs)
	if slices.Equal(c.g.IDs, c.old.g.IDs) && !slices.Contains(c.was, -1) {
		c.depth = slices.Clone(c.old.depth)
		return
	}
	c.depth = make([]uint8, n*n)
	for s, o := range c.was {
		row := c.depth[s*n : (s+1)*n]
		if o < 0 {
			for h := range row {
				row[h] = farDepth
			}
			continue
		}
		was := c.old.depth[int(o)*m : (int(o)+1)*m]
		for h, k := range c.was {
			row[h] = farDepth
			if k >= 0 {
				row[h] = was[k]
			}
		}
	}
	for s, o := range c.was {
		if o < 0 {
			c.newDepths(int32(s))
		}
	}
}

// newDepths finds the depths of a new switch.
func (c *change) newDepths(s int32) {
	n := len(c.g.IDs)
	for h, i := range c.lead {
		if i < 0 || int32(h) == s {
			continue
		}
		e := c.g.EdgeAt(s, c.rows[s][c.g.Targets[h][i].LID])
		if e < 0 {
			continue
		}
		to := c.g.To[e]
		if d := c.depth[int(to)*n+h]; c.was[to] < 0 || d == farDepth || c.was[h] < 0 {
			c.relaid[h] = true
		} else {
			c.depth[int(s)*n+h] = d + 1
		}
	}
}

// asDeep reports whether the walk just done found the depths of the home's lead.
func (c *change) asDeep(home int32, j *judge) bool {
	n := len(c.g.IDs)
	for s, d := range j.depth {
		if lead := c.depth[s*n+int(home)]; lead == farDepth && d >= 0 || lead != farDepth && int32(lead) != d {
			return false
		}
	}
	return true
}

// maxHops finds the longest route between CAs by the depths.
func (c *change) maxHops(r *Report) {
	n := len(c.g.IDs)
	for s, hosts := range c.g.Hosts {
		if hosts == 0 {
			continue
		}
		for home, d := range c.depth[s*n : (s+1)*n] {
			if d == farDepth || int(d) <= r.MaxHops {
				continue
			}
			if targets := c.g.Targets[home]; len(targets) > 0 && targets[0].Out != 0 {
				r.MaxHops = int(d)
			}
		}
	}
}
