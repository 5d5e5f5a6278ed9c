package nexthop

import (
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// repairer changes tables where a fabric changed, and nowhere else. Entries stay unless a lost link takes them away;
// entries moved for that go back when the link returns. So links that come and go have no lasting effect, and the balance
// is that of the last whole routing.
type repairer struct {
	*spreader
	notes, was *route.Notes
	num        []int32 // by topo.NodeID: switch number, -1

	broken      []brokenEntry // that lost their link
	arrived     []bool        // by switch: none of its links was there before
	someArrived bool
	marked      []bool              // by LID: some entry must be examined
	whole       []bool              // by destination: all LIDs are
	some        []bool              // by destination: some are
	back        bool                // a usual link has come back
	gone        bool                // usual links are missing
	all         bool                // all entries are examined
	moved       map[ib.LID][]detour // notes.Detours, by LID
	before      []ib.PortNum        // by switch: the entry for the present LID before a detour, or none
	hops        []int32             // by switch: links to the destination in hand
	next        []int32             // by switch: the edge that was decided for the LID in hand, -1
}

// repair changes the tables where that is enough, and reports whether it was. It needs tables that were proven, and a
// fabric with only usual links. On another basis it examines all entries, and still keeps all detours.
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

// merge returns a basis with the switches of both. same is false if they contradict each other, and both then follows the
// second.
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

// brokenEntry is an entry whose link is gone.
type brokenEntry struct {
	lid ib.LID
	sw  int32
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

// findBroken finds the entries that used a link which is gone. If a switch has come back it marks all entries, unless
// tellNew is set: new switches can then be distinguished.
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
