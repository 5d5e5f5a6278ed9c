package nexthop

import (
	"cmp"
	"math"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// entry is an entry that is to be decided: it has lost its link, may go back to where
// it was before a detour, or belongs to a new switch.
type entry struct {
	home, sw int32
	lid      ib.LID
	depth    uint8 // of the switch: nearer ones are decided first
	back     bool
}

// localRepair decides entries one by one, where all ways to their destinations have as many links as before. It marks the
// others, so that all of their destinations are examined.
type localRepair struct {
	*repairer
	*nearby
	entries []entry
	rows    [][]ib.PortNum // by switch: as they are now
	writes  []bool         // by switch: its row is our own
	queue   []int32
}

// mendNearby repairs the entries that need only the choices of single switches.
func (r *repairer) mendNearby(ways *Ways) {
	n := len(r.g.IDs)
	var returned []bool
	if r.back {
		returned = make([]bool, len(r.g.To))
		for s := range int32(n) {
			for e := r.g.Row[s]; e < r.g.Row[s+1]; e++ {
				returned[e] = !r.prev.KnewLink(r.g, s, e)
			}
		}
	}
	l := &localRepair{
		repairer: r, nearby: newNearby(r.g, ways, r.prev.Depths(r.g, r.someArrived), returned),
		rows: make([][]ib.PortNum, n), writes: make([]bool, n),
	}
	for s, id := range r.g.IDs {
		l.rows[s] = r.t.LFT(id)
	}
	for s, is := range r.arrived {
		if is {
			l.place(int32(s))
		}
	}
	l.findFits()
	if r.back {
		l.unsettle(returned, r.arrived)
	}
	l.collect()
	l.decideAll()
	if r.someArrived {
		for d, fits := range l.fits {
			if !fits || r.some[d] {
				r.whole[d], r.some[d] = true, true
			}
		}
	}
}

// collect collects the entries to be decided, by destination, LID and depth, and marks those that cannot be decided from
// nearby switches.
func (l *localRepair) collect() {
	for _, b := range l.broken {
		l.collectOne(b.lid, b.sw, false)
	}
	for s, is := range l.arrived {
		if !is {
			continue
		}
		for d, targets := range l.g.Targets {
			for _, t := range targets {
				if d != s {
					l.collectOne(t.LID, int32(s), false)
				}
			}
		}
	}
	if l.back {
		for e := range l.notes.Detours {
			if s := l.num[e.Switch]; s >= 0 {
				l.collectOne(e.LID, s, true)
			}
		}
	}
	slices.SortFunc(l.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.home, b.home), cmp.Compare(a.lid, b.lid), cmp.Compare(a.depth, b.depth), cmp.Compare(a.sw, b.sw), boolean(a.back)-boolean(b.back))
	})
	for _, e := range l.entries {
		if l.some[e.home] || len(l.allowed(e.sw, e.home)) == 0 {
			l.fits[e.home] = false
		}
	}
	for _, e := range l.entries {
		if !l.fits[e.home] {
			l.mark(e.lid)
		}
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (l *localRepair) collectOne(lid ib.LID, s int32, back bool) {
	id := l.t.Home(lid)
	if id == topo.None {
		return
	}
	if d := l.num[id]; d != s {
		l.entries = append(l.entries, entry{home: d, sw: s, lid: lid, depth: l.depthOf(s, d), back: back})
	}
}

// decideAll decides the entries that were collected and not marked.
func (l *localRepair) decideAll() {
	for _, e := range l.entries {
		if !l.fits[e.home] {
			continue
		}
		edges := l.allowed(e.sw, e.home)
		key := route.Entry{Switch: l.g.IDs[e.sw], LID: e.lid}
		present := l.rows[e.sw][e.lid]
		before, moved := l.notes.Detours[key]
		if moved {
			if back := l.g.EdgeAt(e.sw, before); back >= 0 && slices.Contains(edges, back) {
				delete(l.notes.Detours, key)
				l.put(e, back)
				continue
			}
		}
		if at := l.g.EdgeAt(e.sw, present); at >= 0 && slices.Contains(edges, at) {
			continue
		}
		l.put(e, l.least(e, edges))
		if !moved && present != ib.NoPort {
			l.remember(key, present)
		}
	}
}

// least returns the next hop whose whole way carries least.
func (l *localRepair) least(e entry, edges []int32) int32 {
	best, least := edges[0], int64(math.MaxInt64)
	for _, first := range edges {
		sum := int64(0)
		l.along(first, e, l.rows, func(edge int32) { sum += int64(l.load[edge]) })
		if sum < least {
			best, least = first, sum
		}
	}
	return best
}

// put writes an entry, and moves the routes that the switch sends, and those that pass it.
func (l *localRepair) put(e entry, edge int32) {
	t := l.targetOf(e)
	if t.Out != 0 {
		n := l.passing(e)
		if old := l.oldEdge(e); old >= 0 {
			l.along(old, e, l.have, func(edge int32) { l.load[edge] -= n })
		}
		l.along(edge, e, l.rows, func(edge int32) { l.load[edge] += n })
	}
	if !l.writes[e.sw] {
		l.rows[e.sw], l.writes[e.sw] = l.t.Writable(l.prev, l.g.IDs[e.sw]), true
	}
	l.rows[e.sw][e.lid] = l.g.Port[edge]
}

// oldEdge returns the edge that an entry leads over, -1 if it is lost.
func (l *localRepair) oldEdge(e entry) int32 { return l.g.EdgeAt(e.sw, l.have[e.sw][e.lid]) }

// targetOf finds the target of an entry.
func (l *localRepair) targetOf(e entry) route.Target {
	for _, t := range l.g.Targets[e.home] {
		if t.LID == e.lid {
			return t
		}
	}
	return route.Target{LID: e.lid}
}

// along visits an edge and those that lead on from it to a LID.
func (l *localRepair) along(edge int32, e entry, rows [][]ib.PortNum, visit func(edge int32)) {
	for range rows {
		if edge < 0 {
			return
		}
		visit(edge)
		s := l.g.To[edge]
		if s == e.home {
			return
		}
		edge = l.g.EdgeAt(s, rows[s][e.lid])
	}
}

// passing counts the CA ports whose packets to a LID pass a switch, or begin there.
func (l *localRepair) passing(e entry) int32 {
	l.queue = append(l.queue[:0], e.sw)
	sum := int64(0)
	for i := 0; i < len(l.queue) && len(l.queue) <= len(l.rows); i++ {
		s := l.queue[i]
		sum += l.g.Hosts[s]
		for _, u := range neighbours(l.g, s) {
			if u == e.home {
				continue
			}
			if edge := l.g.EdgeAt(u, l.rows[u][e.lid]); edge >= 0 && l.g.To[edge] == s && !slices.Contains(l.queue[i:], u) {
				l.queue = append(l.queue, u)
			}
		}
	}
	return int32(sum)
}

func neighbours(g *route.Graph, s int32) []int32 { return g.To[g.Row[s]:g.Row[s+1]] }
