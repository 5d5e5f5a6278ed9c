package pkeys

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Step is the next thing to do about the table of a port.
type Step struct {
	Method mad.Method // 0: nothing
	Block  int
	Audit  bool           // part of the background audit
	Want   *mad.PKeyTable // of a Set, valid until the next call
}

func get(block int) Step { return Step{Method: mad.MethodGet, Block: block} }

// Next returns the next step that makes the table of a port known and right, one block at a time.
func (k *Keeper) Next(p topo.PortID) Step {
	f, t := k.planner.fabric, k.planner.topo
	pt, own := f.PortOf(p), &k.known.ports[p]
	blocks := k.blocks(p, &pt)
	external := t.IsExternal(p)
	if blocks == 0 {
		if !external || f.NodeOf(pt.Node).Known {
			k.finish(p)
		}
		return Step{}
	}
	if !external && pt.Num != 0 && (!pt.Seen || t.Peer(p) == topo.None) {
		return Step{}
	}
	if external && !pt.Known || pt.Num == 0 && !f.NodeOf(pt.Node).Known {
		return Step{}
	}
	if f.ReadFirst(p) {
		return Step{}
	}
	if own.table == nil || len(own.table.blocks) != blocks {
		k.known.set(p, k.known.shared.empty(blocks))
	}
	mayWrite := f.IsWriting() && k.planner.members.IsReady()
	fresh := !k.planner.members.Keeps() && k.isFresh(&pt) && (pt.Num == 0 || pt.State <= ib.PortInit)
	if fresh && !mayWrite {
		return Step{}
	}
	later := false
	for b, s := range own.table.blocks {
		switch {
		case s != unknown || fresh || k.mayStayUnread(p, &pt, b):
		case k.mayReadLater(p, b):
			later = true
		default:
			return get(b)
		}
	}
	if later && !own.later {
		own.later = true
		k.later = append(k.later, p)
	}
	if mayWrite {
		k.review(p, &pt)
		if !k.takeOver(p) {
			return Step{}
		}
		if s := k.write(p, &pt, later); s.Method != 0 {
			return s
		}
	}
	for b, s := range own.table.blocks {
		if s == toProve || s != proven && k.Concerns(p) && !(later && s == unknown) {
			return get(b)
		}
	}
	if external && k.Concerns(p) && pt.BitsDue {
		k.queue.MarkPort(work.Info, p) // a tenant depends on the enforcement bits: read them back
	}
	if b := k.nextRest(own); b >= 0 {
		return Step{Method: mad.MethodGet, Block: b, Audit: true}
	}
	if own.audit > 0 {
		own.audit--
		return Step{Method: mad.MethodGet, Block: min(int(own.audit), blocks-1), Audit: true}
	}
	if mayWrite {
		if !later {
			k.leaveRest(p)
		}
		k.finish(p)
	}
	k.Judge.Port(p)
	return Step{}
}

// finish opens the way to Armed.
func (k *Keeper) finish(p topo.PortID) {
	pt := &k.known.ports[p]
	pt.foreign = false
	if !pt.done {
		pt.done = true
		k.queue.MarkPort(work.Set, p)
	}
}

// write returns the Set of the first block that differs from the wanted one. later: blocks that are not read yet are left
// for ReadNow, unless something is wanted in them.
func (k *Keeper) write(p topo.PortID, pt *Port, later bool) Step {
	own := &k.known.ports[p]
	plain := k.planner.needsOnlyDefault(p, pt)
	if plain && own.table.isPlain() {
		return Step{}
	}
	want, ok := k.planner.onlyDefault, true
	if !plain || !own.table.isBlank() {
		want, ok = k.planner.want(p, pt)
	}
	if !ok {
		return Step{}
	}
	for b, s := range own.table.blocks {
		if !k.planner.topo.IsExternal(p) && k.planner.mustWait(p, b, want) {
			continue
		}
		k.block = mad.PKeyTable{}
		keys := k.block.PKey[:]
		lo := b * perBlock
		if lo < len(want) {
			copy(keys, want[lo:])
		}
		have := own.table.keys[lo : lo+perBlock]
		if slices.Equal(keys, have) && (s != unknown || later || k.mayStayUnread(p, pt, b)) {
			continue
		}
		if s == unknown && later {
			return get(b)
		}
		k.reportForeign(p, want)
		own.done = false
		own.prove = slices.ContainsFunc(keys, members.IsTenant) || slices.ContainsFunc(have, members.IsTenant)
		k.sent[p] = k.block.PKey
		// From here on it is not known what the block holds, even if no answer comes.
		k.known.set(p, k.known.shared.with(own.table, b, have, unknown))
		return Step{Method: mad.MethodSet, Block: b, Want: &k.block}
	}
	return Step{}
}

// mayStayUnread reports whether a block of a table is left to the background. Nothing is wanted in such a block, its link
// came up without configuration, and an entry in it would grant no access. That is so for an adapter whose switch port
// checks P_Keys. It is also so for a port of a switch that was reset: its LinearFDBTop was 0, which no subnet manager
// leaves so, and a reset empties the tables (IBTA volume 1, 10.9.1). The first block is always written. Where something is
// granted, or to be proven gone, every block is read.
func (k *Keeper) mayStayUnread(p topo.PortID, pt *Port, block int) bool {
	t := k.planner.topo
	if block == 0 || k.planner.members.Keeps() || !k.isFresh(pt) || k.Concerns(p) {
		return false
	}
	if pt.Num == 0 || t.IsExternal(p) {
		return k.planner.fabric.NodeOf(pt.Node).Reset
	}
	sp := t.Peer(p)
	if sp == topo.None || !t.IsExternal(sp) {
		return false
	}
	e := k.planner.fabric.EnforcementOf(sp)
	return e.Possible && !e.Forgotten
}

// mayReadLater reports whether a block of a table is left for ReadNow: all that is wanted of the port is proven in the blocks
// before it. Hosts of a fabric whose Subnet Manager changes have answers sooner so, and no more is granted: what a table
// grants beyond what is wanted was kept from it by the Subnet Manager before.
func (k *Keeper) mayReadLater(p topo.PortID, block int) bool {
	m := k.planner.members
	if block == 0 || !k.planner.fabric.ReadsLater() || !m.IsReady() || m.Keeps() {
		return false
	}
	table := k.known.ports[p].table
	isIn := func(ms *members.Membership) bool { return !ms.Leaving && table.proves(ms.PKey) }
	if !k.planner.topo.IsExternal(p) {
		return all(m.Of(k.planner.topo.GUIDOf(p)), isIn)
	}
	place := k.planner.topo.PlaceOf(p)
	for _, guid := range m.GUIDsAt(place) {
		if !all(m.Of(guid), func(ms *members.Membership) bool { return ms.Place != place || isIn(ms) }) {
			return false
		}
	}
	return true
}

// all reports whether all of a list match.
func all[T any](list []T, match func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !match(x) })
}

// isFresh reports whether the table of a port is written without being read: its link, or the switch it is port 0 of, came
// up without configuration.
func (k *Keeper) isFresh(pt *Port) bool {
	return pt.Fresh || pt.Num == 0 && k.planner.fabric.NodeOf(pt.Node).Reset
}

// leaveRest leaves the unknown blocks of a table to the background.
func (k *Keeper) leaveRest(p topo.PortID) {
	if pt := &k.known.ports[p]; !pt.listed && !pt.rest && !pt.table.IsKnown() {
		pt.listed = true
		k.planner.fabric.PutOff(work.OnPort(work.PKey, p))
	}
}

// nextRest returns the next block to be read that was left to the background, -1 for none.
func (k *Keeper) nextRest(pt *port) int {
	if !pt.rest {
		return -1
	}
	b := slices.Index(pt.table.blocks, unknown)
	pt.rest = b >= 0
	return b
}

// review compares a switch port's table, which was read whole and is not written yet, with an intent that holds memberships
// or keeps others.
func (k *Keeper) review(p topo.PortID, pt *Port) {
	t, m := k.planner.topo, k.planner.members
	if !m.Reviews() || !t.IsExternal(p) {
		return
	}
	pl, keys := t.PlaceOf(p), k.known.ports[p].table.keys
	agreed := m.Agree(pl, keys)
	// Nothing is kept for a port whose link is in Init: no data passes it, and a port that comes up there is not proven to be
	// the one that had the P_Key.
	peer, kept := t.Peer(p), false
	if peer != topo.None && t.IsEndPort(peer) && pt.State >= ib.PortArmed && t.GUIDOf(peer) != 0 {
		kept = m.Keep(t.GUIDOf(peer), pl, keys)
	}
	if !agreed && !kept {
		return
	}
	if peer != topo.None {
		k.queue.MarkPort(work.PKey, peer)
	}
	k.Judge.Port(p)
}

// Answer is what follows from a block that was read or written.
type Answer struct {
	Changed bool // more, or something else, is known of the table than before
	Differs bool // the table holds other keys than were known
	NotSet  bool // the answer to a Set shows another block than was set
}

// Take takes a block that was read or written, of a table that has it.
func (k *Keeper) Take(p topo.PortID, r *work.Request, got *mad.PKeyTable) Answer {
	pt, b := &k.known.ports[p], int(r.Mod&0xFFFF)
	old := pt.table
	state := proven
	if r.Method == mad.MethodSet {
		state = told
		if pt.prove {
			state = toProve
		}
	}
	t := k.known.shared.with(old, b, got.PKey[:], state)
	a := Answer{Changed: !t.equals(old), Differs: t != old && !slices.Equal(old.keys, t.keys)}
	k.known.set(p, t)
	sent := k.sent[p]
	delete(k.sent, p)
	if a.NotSet = r.Method == mad.MethodSet && got.PKey != sent; a.NotSet {
		return a
	}
	k.queue.MarkPort(work.PKey, p)
	if peer := k.planner.topo.Peer(p); peer != topo.None && a.Changed {
		k.queue.MarkPort(work.PKey, peer)
	}
	if a.Changed {
		k.Judge.Port(p)
	}
	return a
}
