package mcast

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Forest is the trees of all groups, kept up to date while members come and go
// and the fabric changes. The zero Forest has no groups. It is not safe for
// concurrent use.
type Forest struct {
	p      *planner // nil without a ground
	groups []*group // by multicast LID from 0xC000 on, nil for those not in use
	dirty  []ib.LID // to be planned
	done   []ib.LID // planned by the last Flush
	top    ib.LID
	// version counts changes of trees.
	version uint64
	shown   []Tree // at version shownAt
	shownAt uint64
}

// Tree is the tree of a group.
type Tree struct {
	MLID     ib.LID
	Branches []Branch      // by switch id
	Roots    []topo.NodeID // the top switch of the tree of each island, by id
}

type group struct {
	seats []seat // by switch id
	tree  []Branch
	roots []topo.NodeID
	left  []topo.NodeID
	dirty bool
	gone  bool // to be forgotten once its tree was taken away
	fresh bool // in no snapshot yet
}

// Change is a new mask of a switch for a multicast LID, empty when packets of
// the group are to be dropped there.
type Change struct {
	MLID ib.LID
	Branch
}

// SetGround has all trees grow on another ground.
func (f *Forest) SetGround(gr *Ground) {
	f.p = newPlanner(gr)
	for i, g := range f.groups {
		if g != nil {
			f.soil(ib.MinMulticastLID+ib.LID(i), g)
		}
	}
}

// Ground returns the ground of the trees, nil before the first.
func (f *Forest) Ground() *Ground {
	if f.p == nil {
		return nil
	}
	return f.p.gr
}

func (f *Forest) soil(mlid ib.LID, g *group) {
	if !g.dirty {
		g.dirty = true
		f.dirty = append(f.dirty, mlid)
	}
}

// at returns a group, nil if there is none.
func (f *Forest) at(mlid ib.LID) *group {
	if i := int(mlid) - int(ib.MinMulticastLID); i >= 0 && i < len(f.groups) {
		return f.groups[i]
	}
	return nil
}

// Add makes a group without members, if there is none. mlid must be a multicast
// LID.
func (f *Forest) Add(mlid ib.LID) {
	if g := f.at(mlid); g != nil {
		g.gone = false
		return
	}
	i := int(mlid - ib.MinMulticastLID)
	for len(f.groups) <= i {
		f.groups = append(f.groups, nil)
	}
	g := &group{fresh: true}
	f.groups[i] = g
	f.soil(mlid, g)
	f.top = max(f.top, mlid)
}

// Drop takes a group away with all its members.
func (f *Forest) Drop(mlid ib.LID) {
	if g := f.at(mlid); g != nil {
		g.seats, g.gone = nil, true
		f.soil(mlid, g)
	}
}

// Seat says how a port of a switch takes part in a group that was added: it is
// a port to a host, or switch port 0. State 0: no longer.
func (f *Forest) Seat(mlid ib.LID, sw topo.NodeID, port ib.PortNum, state JoinState) {
	g := f.at(mlid)
	if g == nil {
		return
	}
	i, found := slices.BinarySearchFunc(g.seats, sw, func(s seat, id topo.NodeID) int { return cmp.Compare(s.sw, id) })
	if !found {
		if !state.Sends() {
			return
		}
		g.seats = slices.Insert(g.seats, i, seat{sw: sw})
	}
	s := &g.seats[i]
	was := *s
	s.receives.Remove(port)
	s.sends.Remove(port)
	switch {
	case state.Receives():
		s.receives.Add(port)
	case state.Sends():
		s.sends.Add(port)
	}
	if *s == was {
		return
	}
	if s.receives.IsEmpty() && s.sends.IsEmpty() {
		g.seats = slices.Delete(g.seats, i, i+1)
	}
	f.soil(mlid, g)
}

// Flush plans the trees of groups that changed and calls emit for each switch
// whose mask is another, by multicast LID and switch id. Without a ground it
// does nothing.
func (f *Forest) Flush(emit func(Change)) {
	f.done = f.done[:0]
	if f.p == nil || len(f.dirty) == 0 {
		return
	}
	slices.Sort(f.dirty)
	for _, mlid := range f.dirty {
		g := f.at(mlid)
		g.dirty = false
		tree, left := f.p.plan(mlid, g.seats)
		if diff(mlid, g.tree, tree, emit) || g.gone || g.fresh || !slices.Equal(g.roots, f.p.roots) {
			f.version++
			g.fresh = false
			g.tree, g.roots = slices.Clone(tree), slices.Clone(f.p.roots) // the old ones may be in a snapshot
		}
		g.left = append(g.left[:0], left...)
		if g.gone {
			f.groups[mlid-ib.MinMulticastLID] = nil
		}
	}
	f.dirty, f.done = f.done, f.dirty
	for f.top >= ib.MinMulticastLID && f.at(f.top) == nil {
		f.top--
	}
	if f.top < ib.MinMulticastLID {
		f.top = 0
	}
}

// diff emits how a tree differs from the one before, and reports whether it
// does. Both are sorted by switch.
func diff(mlid ib.LID, old, now []Branch, emit func(Change)) (changed bool) {
	tell := func(b Branch) {
		changed = true
		emit(Change{mlid, b})
	}
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].Switch < now[0].Switch:
			tell(Branch{Switch: old[0].Switch})
			old = old[1:]
		case len(old) == 0 || now[0].Switch < old[0].Switch:
			tell(now[0])
			now = now[1:]
		default:
			if old[0].Ports != now[0].Ports {
				tell(now[0])
			}
			old, now = old[1:], now[1:]
		}
	}
	return changed
}

// Dirty reports whether a group must be planned.
func (f *Forest) Dirty() bool { return len(f.dirty) > 0 }

// Planned returns the multicast LIDs that the last Flush planned, sorted. It is valid until the next Flush.
func (f *Forest) Planned() []ib.LID { return f.done }

// Has reports whether there is a group.
func (f *Forest) Has(mlid ib.LID) bool { g := f.at(mlid); return g != nil && !g.gone }

// MLIDs returns the multicast LIDs of all groups, sorted.
func (f *Forest) MLIDs() (all []ib.LID) {
	for i, g := range f.groups {
		if g != nil && !g.gone {
			all = append(all, ib.MinMulticastLID+ib.LID(i))
		}
	}
	return all
}

// Top returns the highest multicast LID that has a group, 0 without any.
func (f *Forest) Top() ib.LID { return f.top }

// Tree returns the tree of a group as last planned, by switch id; nil without one. It never changes.
func (f *Forest) Tree(mlid ib.LID) []Branch {
	if g := f.at(mlid); g != nil {
		return g.tree
	}
	return nil
}

// Left returns the switches whose members the tree of a group does not reach: no safe way leads there, or the switch does
// not forward that multicast LID. Switches that the ground does not have are not listed: they are new, and a new ground
// follows.
func (f *Forest) Left(mlid ib.LID) []topo.NodeID {
	if g := f.at(mlid); g != nil {
		return g.left
	}
	return nil
}

// Branch returns the ports by which a switch forwards a group, the empty set if none.
func (f *Forest) Branch(mlid ib.LID, sw topo.NodeID) Ports {
	tree := f.Tree(mlid)
	if i, ok := slices.BinarySearchFunc(tree, sw, func(b Branch, id topo.NodeID) int { return cmp.Compare(b.Switch, id) }); ok {
		return tree[i].Ports
	}
	return Ports{}
}

// Trees returns the trees of all groups as last planned, by multicast LID. The result never changes; it is the same as
// before while no tree changed.
func (f *Forest) Trees() []Tree {
	if f.shownAt != f.version {
		f.shown, f.shownAt = nil, f.version
		for i, g := range f.groups {
			if g != nil {
				f.shown = append(f.shown, Tree{ib.MinMulticastLID + ib.LID(i), g.tree, g.roots})
			}
		}
	}
	return f.shown
}
