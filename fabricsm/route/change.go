package route

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// change checks tables by their differences from tables that were checked before. The result is exact: a dependency that no
// route uses any more is no longer counted.
//
// Where an entry differs, but still leads one link nearer to the same home, the routes through it move and are right
// without a walk. Only where routes to a home now have another length are all LIDs behind it walked.
type change struct {
	*survey
	old *survey

	now  []int32 // by switch before: its number now, -1 if it is gone
	was  []int32 // by switch: its number before, -1 if it is new
	edge []int32 // by edge before: the edge now, -1 if it is gone

	cells  []cell   // entries that differ, by LID and then switch
	moved  []ib.LID // whose home or last hop differs
	walk   []bool   // by LID: its routes are walked
	relaid []bool   // by home: the routes to it have another length, or none before

	add  *dependencies // that routes have now where something differs
	gone *dependencies // that they had there, by edges now

	asked    []int32 // by switch: the question that it was last examined for, see fed
	question int32
	queue    []int32
}

// checkChange judges tables as Check does, where little differs from prev, which
// must have been accepted. ok is false if too much differs or anything is wrong:
// all is to be judged then.
func checkChange(f *topo.Fabric, t, prev *Tables) (r Report, p *proof, ok bool) {
	if prev == nil || prev.proof == nil || prev.proof.survey.anyOdd || t.manyLanes() {
		return r, nil, false
	}
	g, err := t.graphFor(f)
	if err != nil {
		return r, nil, false
	}
	r = Report{Switches: len(g.IDs), Links: len(g.To)}
	rows := tableRows(g, t, &r)
	for _, targets := range g.Targets {
		r.LIDs += len(targets)
	}
	c := &change{old: prev.proof.survey}
	if len(r.Findings) > 0 || g.MaxLID != c.old.g.MaxLID {
		return r, nil, false
	}
	c.survey = newSurvey(g, t, rows)
	if !c.match() || !c.findCells() || !c.findWalks() {
		return r, nil, false
	}
	c.carryOver()
	if !c.walkAnew(&r) {
		return r, nil, false
	}
	c.reroute()
	if c.settle() && c.deps.loop(rows) != nil {
		return r, nil, false
	}
	r.measure(g, c.load)
	c.maxHops(&r)
	r.Waits = []Waits{{c.deps}}
	return r, &proof{c.survey}, true
}

// match finds the switches and edges before among those now, and reports that
// nothing differs that matters to routes which are the same. A switch whose links
// have all gone is another one than that before.
func (c *change) match() bool {
	g, old := c.g, c.old.g
	c.now, c.was, c.edge = make([]int32, len(old.IDs)), make([]int32, len(g.IDs)), make([]int32, len(old.To))
	for s := range c.was {
		c.was[s] = -1
	}
	for s, id := range old.IDs {
		c.now[s] = -1
		if int(id) < len(g.Num) && g.Num[id] >= 0 && g.GUID(g.Num[id]) == old.GUID(int32(s)) && g.alone(g.Num[id]) == old.alone(int32(s)) {
			c.now[s] = g.Num[id]
			c.was[c.now[s]] = int32(s)
		}
	}
	for s, n := range c.now {
		if n < 0 && old.Hosts[s] > 0 || n >= 0 && ((g.Hosts[n] > 0) != (old.Hosts[s] > 0) || len(c.rows[n]) != len(c.old.rows[s])) {
			return false
		}
		for e := old.Row[s]; e < old.Row[s+1]; e++ {
			c.edge[e] = -1
			if n < 0 || c.now[old.To[e]] < 0 {
				continue
			}
			if is := g.EdgeAt(n, old.Port[e]); is >= 0 && g.To[is] == c.now[old.To[e]] {
				c.edge[e] = is
			}
		}
	}
	return c.sameIslands()
}

// sameIslands reports whether the switches that are not new are connected with the
// same ones as before, and new ones, which have no hosts, with some of those or none.
func (c *change) sameIslands() bool {
	is, was := make([]int32, len(c.g.IDs)), make([]int32, len(c.old.g.IDs)) // by island: the other's, from 1
	for s, o := range c.was {
		if o < 0 {
			continue
		}
		a, b := c.island[s], c.old.island[o]
		if is[a] == 0 && was[b] == 0 {
			is[a], was[b] = b+1, a+1
		}
		if is[a] != b+1 || was[b] != a+1 {
			return false
		}
	}
	for s, o := range c.was {
		if o < 0 && (c.g.Hosts[s] > 0 || is[c.island[s]] == 0 && !c.g.alone(int32(s))) {
			return false
		}
	}
	return true
}

// carryOver takes loads and dependencies over.
func (c *change) carryOver() {
	old := c.old
	same := make([]bool, len(old.g.IDs)) // by switch before: it has the same links, in the same places
	for s, n := range c.now {
		same[s] = n >= 0 && c.g.Row[n+1]-c.g.Row[n] == old.g.Row[s+1]-old.g.Row[s]
		for e := old.g.Row[s]; e < old.g.Row[s+1]; e++ {
			same[s] = same[s] && c.edge[e] >= 0
		}
	}
	for e, now := range c.edge {
		if now < 0 {
			continue
		}
		c.load[now] = old.load[e]
		if same[old.g.To[e]] {
			copy(c.deps.follow(now), old.deps.follow(int32(e)))
			continue
		}
		old.deps.each(int32(e), func(next int32) {
			if f := c.edge[next]; f >= 0 {
				c.deps.set(now, f)
			}
		})
	}
	c.add, c.gone = c.deps.empty(), c.deps.empty()
}

// settle takes away the dependencies that no route has any more. It reports whether
// there are some that were not there before.
func (c *change) settle() (more bool) {
	for s := range int32(len(c.g.IDs)) {
		for e := c.g.Row[s]; e < c.g.Row[s+1]; e++ {
			c.gone.each(e, func(next int32) {
				if !c.add.has(e, next) && !c.used(s, e, next) {
					c.deps.clear(e, next)
				}
			})
		}
	}
	for i, w := range c.add.bits {
		more = more || w&^c.deps.bits[i] != 0
		c.deps.bits[i] |= w
	}
	return more
}

// used reports whether some route of data uses one edge right after another.
func (c *change) used(s, e, next int32) bool {
	to := c.g.To[e]
	port, follow := c.g.Port[e], c.g.Port[next]
	second := c.rows[to][:len(c.home)]
	for l, p := range c.rows[s][:len(c.home)] {
		if p != port || second[l] != follow {
			continue
		}
		if h := c.home[l]; h >= 0 && h != to && (c.out[l] != 0 || c.fed(s, ib.LID(l))) {
			return true
		}
	}
	return false
}
