package route

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// change is the judging of tables by what differs from tables that were judged
// before. What it finds out is exact: what no route uses any more after another
// link is not counted as a dependency any longer.
//
// An entry that differs, but leads one link nearer to the same home as before, moves
// the routes that pass it and proves right without a walk. Only where routes to a
// home have another length now are all LIDs behind it walked.
type change struct {
	*survey
	old *survey

	now  []int32 // by switch before: its number now, -1 if it is gone
	was  []int32 // by switch: its number before, -1 if it is new
	edge []int32 // by edge before: the edge now, -1 if it is gone

	cells []cell   // entries that differ, by LID and then switch
	moved []ib.LID // whose home or last hop differs
	walk  []bool   // by LID: its routes are walked
	anew  []bool   // by home: the routes to it have another length, or none before

	add  *dependencies // that routes have now where something differs
	gone *dependencies // that they had there, by edges now

	asked    []int32 // by switch: the question that it was last looked at for, see fed
	question int32
	queue    []int32
}

// cell is one entry.
type cell struct {
	lid ib.LID
	sw  int32
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

// alone reports whether a switch has no link to another.
func (g *Graph) alone(s int32) bool { return g.Row[s] == g.Row[s+1] }

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

// findCells finds what differs, and reports whether it is little.
func (c *change) findCells() bool {
	for s, row := range c.rows {
		o := c.was[s]
		if o < 0 {
			for l, port := range row {
				if l < len(c.home) && c.home[l] >= 0 {
					c.cells = append(c.cells, cell{ib.LID(l), int32(s)})
				} else if port != ib.NoPort {
					return false
				}
			}
			continue
		}
		if was := c.old.rows[o]; &was[0] != &row[0] && !c.compare(int32(s), was, row) {
			return false
		}
		for e := c.old.g.Row[o]; e < c.old.g.Row[o+1]; e++ {
			if c.edge[e] < 0 && slices.Contains(row, c.old.g.Port[e]) {
				return false
			}
		}
	}
	slices.SortFunc(c.cells, func(a, b cell) int { return cmp.Or(cmp.Compare(a.lid, b.lid), cmp.Compare(a.sw, b.sw)) })
	for l := range c.home {
		if h := c.home[l]; c.out[l] == c.old.out[l] && (h < 0 && c.old.home[l] < 0 || h >= 0 && c.was[h] >= 0 && c.was[h] == c.old.home[l]) {
			continue
		}
		c.moved = append(c.moved, ib.LID(l))
		if c.home[l] < 0 && slices.ContainsFunc(c.rows, func(row []ib.PortNum) bool { return row[l] != ib.NoPort }) {
			return false
		}
	}
	return len(c.moved) <= len(c.home)/4 && len(c.cells) <= len(c.home)*len(c.g.IDs)/4
}

// compare notes where two rows differ; false: beyond the LIDs that there are.
func (c *change) compare(s int32, was, is []ib.PortNum) bool {
	for from := 0; from < len(is); from += BlockSize { // rows are whole blocks
		to := from + BlockSize
		if string(is[from:to]) == string(was[from:to]) { // many bytes at a time
			continue
		}
		for l := from; l < to; l++ {
			if is[l] == was[l] {
				continue
			}
			if l >= len(c.home) {
				return false
			}
			c.cells = append(c.cells, cell{ib.LID(l), s})
		}
	}
	return true
}

// findWalks finds the depths of new switches, and the LIDs that are to be walked; it
// reports whether they are few.
func (c *change) findWalks() bool {
	c.walk, c.anew = make([]bool, len(c.home)), make([]bool, len(c.g.IDs))
	c.takeDepths()
	for _, l := range c.moved {
		c.walk[l] = true
		if h := c.home[l]; h >= 0 && c.was[h] < 0 {
			c.anew[h] = true
		}
	}
	n := len(c.g.IDs)
	for _, x := range c.cells {
		h := c.home[x.lid]
		if h < 0 || c.walk[x.lid] || c.anew[h] {
			continue
		}
		port, depth := c.rows[x.sw][x.lid], c.depth[int(x.sw)*n+int(h)]
		e := c.g.EdgeAt(x.sw, port)
		switch {
		case x.sw == h: // its last hop differs, though the LID is where it was
			return false
		case e < 0:
			c.anew[h] = c.anew[h] || port != ib.NoPort || depth != farDepth || c.was[x.sw] >= 0
		case depth == farDepth || c.depth[int(c.g.To[e])*n+int(h)]+1 != depth:
			c.anew[h] = true
		}
	}
	walks := 0
	for h, anew := range c.anew {
		for _, t := range c.g.Targets[h] {
			c.walk[t.LID] = c.walk[t.LID] || anew
			if c.walk[t.LID] {
				walks++
			}
		}
	}
	return walks <= len(c.home)/4
}

// takeDepths takes over the depths from before, and finds those of new switches by
// where they send leads. A home that they cannot be told of is walked.
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
			c.anew[h] = true
		} else {
			c.depth[int(s)*n+h] = d + 1
		}
	}
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

// walkAnew walks what is to be walked, as it was and as it is, and reports whether all
// is well with it.
func (c *change) walkAnew(r *Report) bool {
	var was, leads, others []errand
	for l, walk := range c.walk {
		if h := c.old.home[l]; walk && h >= 0 {
			was = append(was, errand{h, Target{LID: ib.LID(l), Out: c.old.out[l]}})
		}
	}
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
	before := c.old.someJudges(len(was))
	deal(before, was, func(j *judge, home int32, t Target, ports []ib.PortNum) {
		j.readEntries(home, t, ports)
		j.walkAll(t)
		j.account(t)
	})
	now := c.someJudges(max(len(leads), len(others)))
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
		c.add.merge(j.deps[0])
		for e, n := range j.load {
			c.load[e] += n
		}
	}
	for _, j := range before {
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
	return true
}

// someJudges gives as many judges as some LIDs are work for.
func (v *survey) someJudges(lids int) []*judge {
	judges := make([]*judge, min(coresFor(len(v.g.IDs)), (lids+gatherLIDs-1)/gatherLIDs))
	for i := range judges {
		judges[i] = newJudge(v.g, v.t, v.rows, v.island)
	}
	return judges
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

func (d *dependencies) has(e, next int32) bool {
	i := next - d.g.Row[d.g.To[e]]
	return d.bits[d.first[e]+i/64]&(1<<(i%64)) != 0
}

func (d *dependencies) clear(e, next int32) {
	i := next - d.g.Row[d.g.To[e]]
	d.bits[d.first[e]+i/64] &^= 1 << (i % 64)
}
