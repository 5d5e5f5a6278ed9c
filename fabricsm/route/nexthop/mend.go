package nexthop

import (
	"math"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// mend decides the marked entries, one destination after the other.
func (r *repairer) mend(rule Rule) {
	c := &Choices{}
	var lids []route.Target
	for dest := range int32(len(r.g.IDs)) {
		if !r.some[dest] {
			continue
		}
		ask(rule, dest, c)
		c.unclassed()
		r.use(dest, c)
		whole := r.whole[dest] || r.otherHops(dest)
		lids = lids[:0]
		for _, t := range r.g.Targets[dest] {
			if whole || r.marked[t.LID] {
				lids = append(lids, t)
			}
		}
		eachChunk(lids, func(lids []route.Target) {
			r.batch.lids = r.batch.lids[:0]
			r.gather(lids)
			for k, t := range lids {
				r.mendOne(dest, t, r.batch.column(k))
			}
		})
	}
}

// otherHops reports whether the way to a destination has another length than it
// had, from any switch.
func (r *repairer) otherHops(dest int32) bool {
	c, home := r.choices, r.g.IDs[dest]
	for s := range r.hops {
		r.hops[s] = -1
	}
	r.hops[dest] = 0
	for i := 1; i < len(c.Order); i++ {
		r.hops[c.Order[i]] = r.hops[r.g.To[c.Edge[c.Row[i]]]] + 1
	}
	for s, h := range r.hops {
		if int(h) != r.prev.Hops(r.g.IDs[s], home) {
			return true
		}
	}
	return false
}

// mendOne decides the entries for one LID again: each goes back where it was
// before a detour, stays, or moves to the way that carries least.
func (r *repairer) mendOne(dest int32, t route.Target, ports []ib.PortNum) {
	if r.stillRight(dest, t, ports) && !r.canGoBack(dest, t.LID) {
		return
	}
	c := r.choices
	for _, d := range r.moved[t.LID] {
		r.before[d.sw] = d.port
	}
	r.carry(dest, t, ports, -1)
	for s := range r.next {
		r.next[s] = -1
	}
	for i := 1; i < len(c.Order); i++ {
		sw := c.Order[i]
		e := int32(-1)
		if before := r.before[sw]; before != unmoved {
			e = r.keptEdge(dest, sw, before)
		}
		if e >= 0 {
			delete(r.notes.Detours, route.Entry{Switch: r.g.IDs[sw], LID: t.LID})
		} else if e = r.keptEdge(dest, sw, ports[sw]); e < 0 {
			e = r.lightest(c.Edge[c.Row[i]:c.Row[i+1]])
			r.detour(sw, t.LID, ports[sw])
		}
		r.next[sw] = e
		if n := int32(r.g.Hosts[sw]); n > 0 && t.Out != 0 {
			for ; e >= 0; e = r.next[r.g.To[e]] {
				r.load[e] += n
			}
		}
	}
	r.write(dest, t, ports)
	for _, d := range r.moved[t.LID] {
		r.before[d.sw] = unmoved
	}
}

// lightest returns the next hop whose whole way carries least now, including the routes of other switches to the same LID.
// So the switches use different ways where one way was lost to all of them.
func (r *repairer) lightest(edges []int32) int32 {
	best, least := edges[0], int64(math.MaxInt64)
	for _, first := range edges {
		sum := int64(0)
		for e := first; e >= 0; e = r.next[r.g.To[e]] {
			sum += int64(r.load[e])
		}
		if sum < least {
			best, least = first, sum
		}
	}
	return best
}

// write changes the entries of one LID to the picked ones.
func (r *repairer) write(dest int32, t route.Target, ports []ib.PortNum) {
	for s, e := range r.next {
		want := ib.NoPort
		switch {
		case int32(s) == dest:
			want = t.Out
		case e >= 0:
			want = r.g.Port[e]
		case ports[s] != ib.NoPort:
			r.detour(int32(s), t.LID, ports[s])
		}
		if want != ports[s] {
			r.t.Writable(r.prev, r.g.IDs[s])[t.LID] = want
		}
	}
}

// carry adds the load by the entries for a LID, a number of times, as far as their links are there.
func (r *repairer) carry(dest int32, t route.Target, ports []ib.PortNum, times int32) {
	if t.Out == 0 {
		return
	}
	copy(r.flow, r.g.Hosts)
	for i := len(r.choices.Order) - 1; i > 0; i-- {
		sw := r.choices.Order[i]
		if e := r.keptEdge(dest, sw, ports[sw]); e >= 0 {
			r.load[e] += times * int32(r.flow[sw])
			r.flow[r.g.To[e]] += r.flow[sw]
		}
	}
}
