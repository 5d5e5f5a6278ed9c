package spread

import (
	"maps"
	"math"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// maxDetours is how many moved entries are remembered. Beyond that the present
// routes are taken for the usual ones.
const maxDetours = 1 << 18

// repairer changes tables where a fabric changed, and nowhere else. Entries
// stay unless a lost link takes them away; what was moved for that goes back
// when the link returns. So links that come and go leave no trace, and the balance
// is that of the last whole routing.
type repairer struct {
	*spreader
	notes, was *route.Notes
	num        []int32 // by topo.NodeID: switch number, -1

	broken      []brokenEntry // that lost their link
	arrived     []bool        // by switch: none of its links was there before
	someArrived bool
	marked      []bool              // by LID: some entry is to be looked at
	whole       []bool              // by destination: all LIDs are
	some        []bool              // by destination: some are
	back        bool                // a usual link has come back
	gone        bool                // usual links are missing
	all         bool                // everything is looked at
	moved       map[ib.LID][]detour // what is in notes.Detours, by LID
	before      []ib.PortNum        // by switch: what the entry for the LID in hand was before a detour, or none
	hops        []int32             // by switch: links to the destination in hand
	next        []int32             // by switch: the edge that was decided for the LID in hand, -1
}

// brokenEntry is an entry whose link is gone.
type brokenEntry struct {
	lid ib.LID
	sw  int32
}

// detour is an entry that was moved, for one LID.
type detour struct {
	sw   int32
	port ib.PortNum
}

// unmoved stands for an entry that is no detour. No switch has a port of the
// number, and no entry that meant "nowhere" is remembered.
const unmoved = ib.NoPort

// repair changes the tables where that is enough, and reports whether it was. It
// needs tables that were proven, and a fabric with no links but usual ones. On
// another basis it looks at everything, and still forgets no detour.
func repair(g *route.Graph, t, prev *route.Tables, plan Plan) bool {
	was := prev.Notes()
	if plan.Basis == nil || was == nil || !prev.Proven() || prev.Engine != t.Engine {
		return false
	}
	basis, same := merge(was.Basis, plan.Basis)
	r := &repairer{
		was: was, num: g.Num,
		notes: &route.Notes{
			Basis: basis, First: was.First, Usual: was.Usual,
			Detours: maps.Clone(was.Detours), Provisional: maps.Clone(was.Provisional),
		},
		marked: make([]bool, int(g.MaxLID)+1), whole: make([]bool, len(g.IDs)), some: make([]bool, len(g.IDs)),
		hops: make([]int32, len(g.IDs)), next: make([]int32, len(g.IDs)),
	}
	if !r.usualLinks(t, prev) {
		return false
	}
	r.spreader = newSpreader(g, t, prev)
	r.fresh = make([]bool, len(g.To))
	for s := range int32(len(g.IDs)) {
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			r.load[e] = int32(prev.Load(g.Out(s, e)))
		}
	}
	clearGone(g, t, prev)
	if same && !plan.All {
		r.findBroken(plan.Ways != nil && r.findNew())
	} else {
		r.markAll()
	}
	r.markLIDs()
	r.dropDetours()
	if r.all || plan.Ways == nil {
		r.markBroken()
	} else {
		r.markProvisional()
		r.mendNearby(plan.Ways)
	}
	r.sortDetours()
	r.mend(plan.NewRule())
	if !r.gone && len(r.notes.Detours) == 0 {
		r.notes.Provisional = nil
	}
	if len(r.notes.Detours) > maxDetours {
		r.notes.Detours, r.notes.Provisional, r.notes.Usual, r.notes.First = nil, nil, t.Peers(), basis
	}
	t.SetNotes(r.notes)
	return true
}

// merge gives a basis with the switches of both. same is false if they contradict
// each other, and both then follows the second.
func merge(was, is []int32) (both []int32, same bool) {
	both, same = make([]int32, max(len(was), len(is))), true
	for id := range both {
		a, b := int32(-1), int32(-1)
		if id < len(was) {
			a = was[id]
		}
		if id < len(is) {
			b = is[id]
		}
		if a >= 0 && b >= 0 && a != b {
			same = false
			both[id] = b
			continue
		}
		both[id] = max(a, b)
	}
	return both, same
}

// usualLinks compares the links with those that are usual.
func (r *repairer) usualLinks(t, prev *route.Tables) bool {
	usual := r.was.Usual
	for p, now := range t.Peers() {
		var is, was topo.PortID = topo.None, prev.Peer(topo.PortID(p))
		if p < len(usual) {
			is = usual[p]
		}
		switch {
		case now == topo.None:
			r.gone = r.gone || is != topo.None
		case now != is:
			return false
		case now != was:
			r.back = true
		}
	}
	return true
}

// findNew finds the switches that were not there or not linked before, and reports
// whether no two of them are linked.
func (r *repairer) findNew() (apart bool) {
	g := r.g
	r.arrived, apart = make([]bool, len(g.IDs)), true
	for s := range int32(len(g.IDs)) {
		r.arrived[s] = g.Row[s] < g.Row[s+1]
		for e := g.Row[s]; e < g.Row[s+1] && r.arrived[s]; e++ {
			r.arrived[s] = !r.prev.KnewLink(g, s, e)
		}
	}
	for s, is := range r.arrived {
		r.someArrived = r.someArrived || is
		apart = apart && !(is && slices.ContainsFunc(neighbours(g, int32(s)), func(to int32) bool { return r.arrived[to] }))
	}
	return apart
}

// findBroken finds the entries that a link which is gone was used for. All is looked
// at if a switch has come back, unless those can be told apart.
func (r *repairer) findBroken(tellNew bool) {
	for s := range int32(len(r.g.IDs)) {
		id := r.g.IDs[s]
		if !r.prev.Has(id, r.g.GUID(s)) || len(r.have[s]) != len(r.prev.LFT(id)) {
			if tellNew && r.arrived[s] {
				continue
			}
			r.markAll()
			return
		}
		if tellNew && r.g.Row[s] == r.g.Row[s+1] {
			r.cutOff(s)
			continue
		}
		var lost [256]bool
		any := false
		for num := 1; num < len(lost); num++ {
			p := r.g.PortAt(s, ib.PortNum(num))
			if p == topo.None {
				break
			}
			lost[num] = r.prev.Peer(p) != topo.None && r.g.EdgeAt(s, ib.PortNum(num)) < 0
			any = any || lost[num]
		}
		if !any {
			continue
		}
		for l, port := range r.have[s] {
			if lost[port] && l < len(r.marked) {
				r.broken = append(r.broken, brokenEntry{ib.LID(l), s})
			}
		}
	}
}

// cutOff clears the entries of a switch that has lost all links.
func (r *repairer) cutOff(s int32) {
	id := r.g.IDs[s]
	for l, port := range r.have[s] {
		if home := r.t.Home(ib.LID(l)); home == topo.None || home == id || port == ib.NoPort {
			continue
		}
		key := route.Entry{Switch: id, LID: ib.LID(l)}
		if _, is := r.notes.Detours[key]; !is {
			r.remember(key, port)
		}
		r.t.Writable(r.prev, id)[l] = ib.NoPort
	}
}

func (r *repairer) remember(key route.Entry, was ib.PortNum) {
	if r.notes.Detours == nil {
		r.notes.Detours = make(map[route.Entry]ib.PortNum)
	}
	r.notes.Detours[key] = was
}

// markBroken marks the LIDs of entries that lost their link, and when links are back
// those that were moved, which is all that they can matter to: the other routes were
// the right ones with all usual links there.
func (r *repairer) markBroken() {
	for _, b := range r.broken {
		r.mark(b.lid)
	}
	if r.back {
		for e := range r.notes.Detours {
			r.mark(e.LID)
		}
	}
	r.markProvisional()
}

func (r *repairer) markAll() {
	r.all = true
	for dest := range r.whole {
		r.whole[dest], r.some[dest] = true, true
	}
}

// mark has one LID looked at, if it has a home.
func (r *repairer) mark(l ib.LID) {
	if int(l) >= len(r.marked) {
		return
	}
	if home := r.t.Home(l); home != topo.None {
		r.marked[l], r.some[r.num[home]] = true, true
	}
}

// markLIDs marks LIDs that are new or have another home, and writes the last hop.
func (r *repairer) markLIDs() {
	for s, targets := range r.g.Targets {
		id := r.g.IDs[s]
		for _, t := range targets {
			if r.prev.Home(t.LID) != id {
				r.mark(t.LID)
				if r.gone {
					r.provisional(id)
				}
			} else if r.t.LFT(id)[t.LID] != t.Out {
				r.t.Writable(r.prev, id)[t.LID] = t.Out
			}
		}
	}
}

func (r *repairer) provisional(id topo.NodeID) {
	if r.notes.Provisional == nil {
		r.notes.Provisional = make(map[topo.NodeID]bool)
	}
	r.notes.Provisional[id] = true
}

// dropDetours drops detours of LIDs that are gone or moved.
func (r *repairer) dropDetours() {
	for e := range r.notes.Detours {
		if home := r.t.Home(e.LID); home == topo.None || home != r.prev.Home(e.LID) {
			delete(r.notes.Detours, e)
		}
	}
}

// markProvisional marks what was first routed while links were missing, when some are
// back.
func (r *repairer) markProvisional() {
	if !r.back {
		return
	}
	for id := range r.notes.Provisional {
		if s := r.num[id]; s >= 0 {
			r.whole[s], r.some[s] = true, true
		}
	}
}

// sortDetours groups what was moved by LID.
func (r *repairer) sortDetours() {
	r.moved = make(map[ib.LID][]detour)
	for e, port := range r.notes.Detours {
		if s := r.num[e.Switch]; s >= 0 && int(e.LID) < len(r.marked) && r.some[r.num[r.t.Home(e.LID)]] {
			r.moved[e.LID] = append(r.moved[e.LID], detour{s, port})
		}
	}
	r.before = make([]ib.PortNum, len(r.g.IDs))
	for s := range r.before {
		r.before[s] = unmoved
	}
}

// mend looks at what was marked, one destination after the other.
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

// lightest gives the next hop of which the whole way carries least now, what
// other switches send to the same LID included: so they part where one way
// was lost to all of them.
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

// detour remembers what an entry of the LID in hand was.
func (r *repairer) detour(sw int32, l ib.LID, was ib.PortNum) {
	if r.before[sw] != unmoved || was == ib.NoPort {
		return
	}
	r.remember(route.Entry{Switch: r.g.IDs[sw], LID: l}, was)
}

// canGoBack reports whether an entry for a LID was moved and need no longer be.
func (r *repairer) canGoBack(dest int32, l ib.LID) bool {
	if !r.back && !r.all {
		return false
	}
	for _, d := range r.moved[l] {
		if d.sw != dest && r.keptEdge(dest, d.sw, d.port) >= 0 {
			return true
		}
	}
	return false
}

// write changes the entries of one LID to what was picked.
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

// carry adds what the entries for a LID carry, a number of times, as far as
// their links are there.
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

// unclassed says that no switch shares its choices with another.
func (c *Choices) unclassed() {
	c.class, c.classes = c.class[:0], 0
	for range c.Order {
		c.class = append(c.class, noClass)
	}
}
