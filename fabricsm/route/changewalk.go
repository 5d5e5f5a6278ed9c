package route

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// walkAnew walks the marked LIDs, by the new and the old tables, and reports whether it found no error.
func (c *change) walkAnew(r *Report) bool {
	if !c.walkNow(r) {
		return false
	}
	c.walkBefore()
	return true
}

// walkNow adds what routes use now, and reports whether all of them arrive.
func (c *change) walkNow(r *Report) bool {
	leads, others := c.errandsNow()
	judges := c.someJudges(max(len(leads), len(others)))
	for i, some := range [][]errand{leads, others} {
		deal(judges, some, func(j *judge, home int32, t Target, ports []ib.PortNum) {
			if !j.walk1(home, t, ports) {
				j.wrong = true
				return
			}
			j.account(t)
			if i == 0 {
				c.setDepth(home, j)
			} else if !c.asDeep(home, j) {
				j.odd = true
			}
		})
	}
	for _, j := range judges {
		if j.wrong {
			return false
		}
		c.anyOdd = c.anyOdd || j.odd
		r.MaxHops = max(r.MaxHops, j.report.MaxHops)
		c.add.merge(j.deps[0])
		for e, n := range j.load {
			c.load[e] += n
		}
	}
	return true
}

// errandsNow lists the LIDs to be walked: first the leads that set the new depths of their homes, then those that are
// compared with depths.
func (c *change) errandsNow() (leads, others []errand) {
	for h, targets := range c.g.Targets {
		rest := slices.ContainsFunc(targets, func(t Target) bool { return !c.walk[t.LID] })
		for i, t := range targets {
			switch {
			case !c.walk[t.LID]:
			case int32(i) == c.lead[h] && !rest:
				leads = append(leads, errand{int32(h), t})
			default:
				others = append(others, errand{int32(h), t})
			}
		}
	}
	return leads, others
}

// walkBefore removes what the old routes of the same LIDs used.
func (c *change) walkBefore() {
	var errands []errand
	for l, walk := range c.walk {
		if h := c.old.home[l]; walk && h >= 0 {
			errands = append(errands, errand{h, Target{LID: ib.LID(l), Out: c.old.out[l]}})
		}
	}
	judges := c.old.someJudges(len(errands))
	deal(judges, errands, func(j *judge, home int32, t Target, ports []ib.PortNum) {
		j.readEntries(home, t, ports)
		j.walkAll(t)
		j.account(t)
	})
	for _, j := range judges {
		for e, now := range c.edge {
			if now < 0 {
				continue
			}
			c.load[now] -= j.load[e]
			j.deps[0].each(int32(e), func(next int32) {
				if f := c.edge[next]; f >= 0 {
					c.gone.set(now, f)
				}
			})
		}
	}
}

// deal has some LIDs walked by some judges at the same time.
func deal(judges []*judge, errands []errand, visit func(j *judge, home int32, t Target, ports []ib.PortNum)) {
	forSome(len(judges), len(errands), func(core, from, to int) {
		j := judges[core]
		j.each(errands[from:to], func(home int32, t Target, ports []ib.PortNum) { visit(j, home, t, ports) })
	})
}
