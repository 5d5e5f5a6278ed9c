package route

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// change is the judging of tables by what differs from tables that were judged
// before. What it finds out is exact: what no route uses any more after another
// link is not counted as a dependency any longer.
type change struct {
	*survey
	old  *survey
	prev *Tables

	lids []ib.LID // of which an entry, the home or the last hop differs
}

// checkChange judges tables as Check does, where little differs from prev, which
// must have been accepted. ok is false if too much differs or anything is wrong:
// all is to be judged then.
func checkChange(f *topo.Fabric, t, prev *Tables) (r Report, p *proof, ok bool) {
	if prev == nil || prev.proof == nil || prev.proof.survey.anyOdd || t.manyLanes() {
		return r, nil, false
	}
	g, err := NewGraph(f, t)
	if err != nil {
		return r, nil, false
	}
	r = Report{Switches: len(g.IDs), Links: len(g.To)}
	rows := tableRows(g, t, &r)
	for _, targets := range g.Targets {
		r.LIDs += len(targets)
	}
	c := &change{old: prev.proof.survey, prev: prev}
	if len(r.Findings) > 0 || !slices.Equal(g.IDs, c.old.g.IDs) || g.MaxLID != c.old.g.MaxLID {
		return r, nil, false
	}
	c.survey = newSurvey(g, t, rows)
	if !c.comparable() || !c.findLIDs() {
		return r, nil, false
	}
	c.depth = slices.Clone(c.old.depth)
	c.carryOver()
	if !c.walkChanged(&r) || c.deps.loop(rows) != nil {
		return r, nil, false
	}
	r.measure(g, c.load)
	c.maxHops(&r)
	r.Waits = []Waits{{c.deps}}
	return r, newProof(g, c.survey), true
}

// comparable reports that nothing differs that matters to routes which are the
// same.
func (c *change) comparable() bool {
	if !slices.Equal(c.island, c.old.island) {
		return false
	}
	for s, row := range c.rows {
		if (c.g.Hosts[s] > 0) != (c.old.g.Hosts[s] > 0) || len(row) != len(c.old.rows[s]) || c.g.GUID(int32(s)) != c.old.g.GUID(int32(s)) {
			return false
		}
	}
	return true
}

// findLIDs finds what differs, and reports whether it is little.
func (c *change) findLIDs() bool {
	differs := make([]bool, len(c.home))
	for s, row := range c.rows {
		if was := c.old.rows[s]; &was[0] != &row[0] {
			for l, port := range row {
				if port == was[l] {
					continue
				}
				if l >= len(differs) {
					return false
				}
				differs[l] = true
			}
		}
		for e := c.old.g.Row[s]; e < c.old.g.Row[s+1]; e++ {
			port := c.old.g.Port[e]
			if c.edgeNow(int32(s), e) >= 0 {
				continue
			}
			for l := range differs { // what still goes there is broken
				differs[l] = differs[l] || row[l] == port
			}
		}
	}
	for l := range differs {
		if !differs[l] && c.home[l] == c.old.home[l] && c.out[l] == c.old.out[l] {
			continue
		}
		if c.home[l] < 0 {
			for _, row := range c.rows {
				if row[l] != ib.NoPort {
					return false
				}
			}
		}
		c.lids = append(c.lids, ib.LID(l))
	}
	return len(c.lids) <= len(c.home)/4
}

// edgeNow gives the edge that is what an edge of the graph before was, -1 if there
// is none.
func (c *change) edgeNow(s, old int32) int32 {
	if e := c.g.EdgeAt(s, c.old.g.Port[old]); e >= 0 && c.g.To[e] == c.old.g.To[old] {
		return e
	}
	return -1
}

// carryOver takes loads and dependencies over, and the traffic of hosts that came
// or went beside others.
func (c *change) carryOver() {
	old := c.old
	for s := range int32(len(c.g.IDs)) {
		for e := old.g.Row[s]; e < old.g.Row[s+1]; e++ {
			now := c.edgeNow(s, e)
			if now < 0 {
				continue
			}
			c.load[now] = old.load[e]
			to := old.g.To[e]
			old.deps.each(e, func(next int32) {
				if f := c.edgeNow(to, next); f >= 0 {
					c.deps.set(now, f)
				}
			})
		}
	}
	differs := make([]bool, len(c.home))
	for _, l := range c.lids {
		differs[l] = true
	}
	for s, hosts := range c.g.Hosts {
		more := hosts - old.g.Hosts[s]
		for l := range c.home {
			if more == 0 || differs[l] || c.home[l] < 0 || c.out[l] == 0 {
				continue
			}
			c.follow(int32(s), ib.LID(l), func(e int32) bool { c.load[e] += more; return true })
		}
	}
}

// follow visits the edges of the route from a switch to a LID, as long as visit
// wants more.
func (c *change) follow(s int32, l ib.LID, visit func(e int32) bool) {
	for range c.g.IDs {
		e := c.g.EdgeAt(s, c.rows[s][l])
		if s == c.home[l] || e < 0 || !visit(e) {
			return
		}
		s = c.g.To[e]
	}
}

// walkChanged walks what differs, as it was and as it is, and reports whether all
// is well with it.
func (c *change) walkChanged(r *Report) bool {
	var was, leads, others []errand
	for _, l := range c.lids {
		if h := c.old.home[l]; h >= 0 {
			was = append(was, errand{h, Target{LID: l, Out: c.old.out[l]}})
		}
		h := c.home[l]
		if h < 0 {
			continue
		}
		now := errand{h, Target{LID: l, Out: c.out[l]}}
		if i := c.lead[h]; c.g.Targets[h][i].LID == l {
			leads = append(leads, now)
		} else {
			others = append(others, now)
		}
	}
	before := c.old.judges()
	now := c.judges()
	deal(before, was, func(j *judge, home int32, t Target, ports []ib.PortNum) {
		j.readEntries(home, t, ports)
		j.walkAll(t)
		j.account(t)
	})
	for i, some := range [][]errand{leads, others} {
		deal(now, some, func(j *judge, home int32, t Target, ports []ib.PortNum) {
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
	for _, j := range now {
		if j.wrong {
			return false
		}
		c.anyOdd = c.anyOdd || j.odd
		r.MaxHops = max(r.MaxHops, j.report.MaxHops)
	}
	c.settle(before, now)
	return true
}

// deal has some LIDs walked by some judges at the same time.
func deal(judges []*judge, errands []errand, visit func(j *judge, home int32, t Target, ports []ib.PortNum)) {
	forSome(len(judges), len(errands), func(core, from, to int) {
		j := judges[core]
		j.each(errands[from:to], func(home int32, t Target, ports []ib.PortNum) { visit(j, home, t, ports) })
	})
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

// settle brings loads and dependencies from what was to what is.
func (c *change) settle(before, now []*judge) {
	add := newDependencies(c.g)
	for _, j := range now {
		add.merge(j.deps[0])
		for e, n := range j.load {
			c.load[e] += n
		}
	}
	gone := newDependencies(c.old.g)
	for _, j := range before {
		gone.merge(j.deps[0])
	}
	for s := range int32(len(c.g.IDs)) {
		for e := c.old.g.Row[s]; e < c.old.g.Row[s+1]; e++ {
			edge := c.edgeNow(s, e)
			if edge < 0 {
				continue
			}
			for _, j := range before {
				c.load[edge] -= j.load[e]
			}
			to := c.g.To[edge]
			gone.each(e, func(next int32) {
				if f := c.edgeNow(to, next); f >= 0 && !add.has(edge, f) && !c.used(s, edge, f) {
					c.deps.clear(edge, f)
				}
			})
		}
	}
	c.deps.merge(add)
}

// used reports whether some route of data uses one edge right after another.
func (c *change) used(s, e, next int32) bool {
	to := c.g.To[e]
	first, second := c.rows[s], c.rows[to]
	port, follow := c.g.Port[e], c.g.Port[next]
	for l, h := range c.home {
		if first[l] != port || second[l] != follow || h < 0 || h == to {
			continue
		}
		if c.out[l] != 0 || c.passes(s, ib.LID(l)) {
			return true
		}
	}
	return false
}

// passes reports whether packets of some CA port to a LID pass a switch.
func (c *change) passes(s int32, l ib.LID) bool {
	for from, hosts := range c.g.Hosts {
		if hosts == 0 {
			continue
		}
		found := int32(from) == s
		c.follow(int32(from), l, func(e int32) bool {
			found = found || c.g.To[e] == s
			return !found
		})
		if found {
			return true
		}
	}
	return false
}

// maxHops finds the longest route between CAs by the depths.
func (c *change) maxHops(r *Report) {
	n := len(c.g.IDs)
	for home, targets := range c.g.Targets {
		if len(targets) == 0 || targets[0].Out == 0 {
			continue
		}
		for s, hosts := range c.g.Hosts {
			if d := c.depth[s*n+home]; hosts > 0 && d != farDepth {
				r.MaxHops = max(r.MaxHops, int(d))
			}
		}
	}
}

func (d *dependencies) has(e, next int32) bool {
	i := next - d.g.Row[d.g.To[e]]
	return d.bits[d.first[e]+i/64]&(1<<(i%64)) != 0
}

func (d *dependencies) clear(e, next int32) {
	i := next - d.g.Row[d.g.To[e]]
	d.bits[d.first[e]+i/64] &^= 1 << (i % 64)
}
