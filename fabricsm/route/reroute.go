package route

import "portcullis/fabricsm/ib"

// rerouter follows the routes to one LID of which some entries differ.
type rerouter struct {
	*change
	lid      ib.LID
	seen     []int32 // by switch: the LID that it was last affected for
	affected []int32 // switches whose routes to the LID differ somewhere
	guests   []int32 // switches with more hosts, or fewer, than before
}

// reroute updates the loads from the old to the new tables, and finds the dependencies that differ, for all LIDs that are
// not walked.
func (c *change) reroute() {
	r := &rerouter{change: c, seen: make([]int32, len(c.g.IDs))}
	for s, o := range c.was {
		if o >= 0 && c.g.Hosts[s] != c.old.g.Hosts[o] {
			r.guests = append(r.guests, int32(s))
		}
	}
	cells := c.cells
	for l, h := range c.home {
		lid := ib.LID(l)
		r.lid, r.affected = lid, r.affected[:0]
		for ; len(cells) > 0 && cells[0].lid == lid; cells = cells[1:] {
			r.affect(cells[0].sw)
		}
		if h < 0 || c.walk[l] || len(r.affected) == 0 && len(r.guests) == 0 {
			continue
		}
		r.findUpstream()
		for _, s := range r.affected {
			r.shift(s)
		}
		for _, s := range r.guests {
			if r.seen[s] != int32(lid) && c.out[l] != 0 {
				more := c.g.Hosts[s] - c.old.g.Hosts[c.was[s]]
				c.follow(s, lid, func(e int32) { c.load[e] += more })
			}
		}
	}
}

func (r *rerouter) affect(s int32) {
	if r.seen[s] != int32(r.lid) {
		r.seen[s] = int32(r.lid)
		r.affected = append(r.affected, s)
	}
}

// findUpstream finds all switches that had routes over the switches found so far. A switch that has such routes now had
// them before, or its entry differs.
func (r *rerouter) findUpstream() {
	old := r.old
	for i := 0; i < len(r.affected); i++ {
		s := r.was[r.affected[i]]
		if s < 0 {
			continue
		}
		for _, u := range old.g.To[old.g.Row[s]:old.g.Row[s+1]] {
			if e := old.next(u, r.lid); e >= 0 && old.g.To[e] == s && r.now[u] >= 0 {
				r.affect(r.now[u])
			}
		}
	}
}

// shift subtracts the old traffic of a switch, and adds the new one.
func (r *rerouter) shift(s int32) {
	c, o := r.change, r.was[s]
	toCA, hosts := c.out[r.lid] != 0, c.g.Hosts[s]
	if o >= 0 {
		if toCA && hosts > 0 {
			had := c.old.g.Hosts[o]
			c.old.follow(o, r.lid, func(e int32) {
				if now := c.edge[e]; now >= 0 {
					c.load[now] -= had
				}
			})
		}
		c.old.pairs(o, r.lid, toCA, func(e, next int32) {
			if a, b := c.edge[e], c.edge[next]; a >= 0 && b >= 0 {
				c.gone.set(a, b)
			}
		})
	}
	if toCA && hosts > 0 {
		c.follow(s, r.lid, func(e int32) { c.load[e] += hosts })
	}
	c.pairs(s, r.lid, toCA, c.add.set)
}

// next returns the edge that a switch sends a LID over, -1 if it delivers or drops it.
func (v *survey) next(s int32, l ib.LID) int32 {
	if s == v.home[l] {
		return -1
	}
	return v.g.EdgeAt(s, v.rows[s][l])
}

// follow visits the edges of the route from a switch to a LID.
func (v *survey) follow(s int32, l ib.LID, visit func(e int32)) {
	for range v.g.IDs {
		e := v.next(s, l)
		if e < 0 {
			return
		}
		visit(e)
		s = v.g.To[e]
	}
}

// pairs visits the edges that data from a switch to a LID uses one right after the
// other: the first two if each switch sends such data, or else all, if it has hosts.
func (v *survey) pairs(s int32, l ib.LID, first bool, visit func(e, next int32)) {
	if !first && v.g.Hosts[s] == 0 {
		return
	}
	e := v.next(s, l)
	for range v.g.IDs {
		if e < 0 {
			return
		}
		next := v.next(v.g.To[e], l)
		if next >= 0 {
			visit(e, next)
		}
		if first {
			return
		}
		e = next
	}
}

// fed reports whether packets of some CA port to a LID pass a switch, or begin there.
func (c *change) fed(s int32, l ib.LID) bool {
	v := c.survey
	if c.asked == nil {
		c.asked = make([]int32, len(v.g.IDs))
	}
	c.question++
	c.asked[s] = c.question
	c.queue = append(c.queue[:0], s)
	for i := 0; i < len(c.queue); i++ {
		s := c.queue[i]
		if v.g.Hosts[s] > 0 {
			return true
		}
		for _, u := range v.g.To[v.g.Row[s]:v.g.Row[s+1]] {
			if e := v.next(u, l); e >= 0 && v.g.To[e] == s && c.asked[u] != c.question {
				c.asked[u] = c.question
				c.queue = append(c.queue, u)
			}
		}
	}
	return false
}
