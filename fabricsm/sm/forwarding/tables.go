package forwarding

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Remove forgets a node that is gone, and counts it no longer.
func (t *Tables) Remove(id topo.NodeID) {
	l := &t.nodes[id]
	t.dropRollout(l)
	if l.pending {
		t.pending--
	}
	if l.unread {
		t.unread--
	}
	*l = table{}
}

// Forget takes that a switch has lost its table, or another manager may have changed it.
func (t *Tables) Forget(id topo.NodeID) { t.nodes[id].forget() }

// Resume ends the pause that follows a refusal.
func (t *Tables) Resume(id topo.NodeID) { t.nodes[id].refused = nil }

// All returns the whole table of a switch as far as it is known, nil if nothing of it is.
func (t *Tables) All(id topo.NodeID) []ib.PortNum { return t.nodes[id].all() }

// Forwards reports whether a switch is known to forward a LID by a port.
func (t *Tables) Forwards(id topo.NodeID, l ib.LID, port ib.PortNum) bool {
	content := t.nodes[id].have(int(l) / perBlock)
	return content != nil && content[int(l)%perBlock] == port
}

// WillRead reports whether the block of a LID is still to be read.
func (t *Tables) WillRead(id topo.NodeID, l ib.LID) bool {
	n, b := &t.nodes[id], int(l)/perBlock
	return n.read.Has(b) && !n.refused.Has(b) && !t.fabric.IsPaused(work.OnNode(work.LFT, id))
}

// Pending returns the number of switches whose forwarding is not in place. One that is silent or refuses does not count.
func (t *Tables) Pending() int { return t.pending }

// BlocksLeft counts the blocks that are to be written.
func (t *Tables) BlocksLeft() (n int) {
	for id := range t.nodes {
		if t.nodes[id].pending {
			n += t.nodes[id].write.Len()
		}
	}
	return n
}

// Read has the table of a switch read that another manager programmed before us, so that only what differs is written.
func (t *Tables) Read(id topo.NodeID) {
	top := int(t.fabric.SwitchOf(id).Top)
	if top == 0 || top > int(ib.MaxUnicastLID) {
		t.Compare(id)
		return
	}
	for b := range top/perBlock + 1 {
		t.nodes[id].read.Add(b)
	}
	if t.fabric.ReadsLater() {
		t.later = append(t.later, id)
		return
	}
	t.queue.MarkNode(work.LFT, id)
	t.Recount(id)
}

// HasLater reports whether tables wait for ReadNow.
func (t *Tables) HasLater() bool { return len(t.later) > 0 }

// ReadNow has the tables read that were left for later.
func (t *Tables) ReadNow() {
	later := t.later
	t.later = nil
	for _, id := range later {
		if !t.nodes[id].read.IsEmpty() && t.fabric.SwitchOf(id).Alive {
			t.queue.MarkNode(work.LFT, id)
			t.Recount(id)
		}
	}
}

// Unread returns the number of switches whose tables are being read. One that is silent or refuses does not count.
func (t *Tables) Unread() int { return t.unread }

// Compare finds the blocks that are to be written.
func (t *Tables) Compare(id topo.NodeID) {
	want := t.fabric.Wanted().LFT(id)
	l := &t.nodes[id]
	l.compare(want)
	for b := range max(len(want)/perBlock, l.write.Last()+1) {
		t.compareBlock(l, b)
	}
	t.queue.MarkNode(work.LFT, id)
	t.queue.MarkNode(work.Switch, id)
	t.Recount(id)
}

// CompareAll compares all switches of a fabric whose new tables are wanted from now on. With topStays, LinearFDBTop is what
// it was before.
func (t *Tables) CompareAll(f *topo.Fabric, topStays bool) {
	wanted := t.fabric.Wanted()
	for _, id := range f.Switches() {
		if !t.isSame(f, id) {
			continue
		}
		l := &t.nodes[id]
		if row := wanted.LFT(id); topStays && len(row) > 0 && sameRow(l.row, row) && l.done() {
			continue
		}
		t.Compare(id)
	}
	t.rollOn()
}

func (t *Tables) compareBlock(l *table, b int) {
	switch {
	case l.read.Has(b):
	case (b+1)*perBlock > len(l.row), // the table became shorter before it was written
		l.same.Has(b):
		l.write.Remove(b)
		t.rolledOut(l, b)
	default:
		l.write.Add(b)
	}
}

// Step is the next thing to do about the table of a switch.
type Step struct {
	Method mad.Method // 0: nothing
	Block  int
	Want   []ib.PortNum // of a Set
}

// Next returns the next step. There may be more, also before it is answered.
func (t *Tables) Next(id topo.NodeID) Step {
	l := &t.nodes[id]
	if b := l.read.First(l.busy, l.refused); b >= 0 {
		l.busy.Add(b)
		return Step{Method: mad.MethodGet, Block: b}
	}
	want := t.fabric.Wanted().LFT(id)
	b := l.write.First(l.busy, l.held, l.refused)
	if b < 0 || !t.fabric.IsWriting() || (b+1)*perBlock > len(want) || t.fabric.MustWait(id) {
		return Step{}
	}
	l.busy.Add(b)
	if l.set == nil {
		l.set = make(map[int32][]ib.PortNum)
	}
	l.set[int32(b)] = blockOf(want, b)
	return Step{Method: mad.MethodSet, Block: b, Want: blockOf(want, b)}
}

// Take takes a block that was read or written. It reports false if the answer to a Set shows, once again, another block than
// was set.
func (t *Tables) Take(id topo.NodeID, r *work.Request, content []ib.PortNum) bool {
	l, b := &t.nodes[id], int(r.Mod)
	set := l.ended(b)
	l.compare(t.fabric.Wanted().LFT(id))
	l.found(b, content)
	l.read.Remove(b)
	t.compareBlock(l, b)
	if r.Method == mad.MethodSet && !l.twice.Excuses(b, !l.write.Has(b) || sameEntries(content, set)) {
		return false
	}
	t.queue.MarkNode(work.LFT, id)
	t.Recount(id)
	return true
}

// Lost takes that a request for a block ended without an answer, or with an error: a silent switch does not hold up the
// others. A switch may have taken a Set that it did not answer: what the block holds is not known then, so it is written also
// where what is wanted now is what it held before.
func (t *Tables) Lost(id topo.NodeID, r *work.Request) {
	l, b := &t.nodes[id], int(r.Mod)
	if l.ended(b) != nil {
		l.compare(t.fabric.Wanted().LFT(id))
		l.doubt(b)
		t.compareBlock(l, b)
		t.Recount(id)
	}
	t.rolledOut(l, b)
}

// Refuse leaves a block alone, with all others that are refused until then, for the pause that follows the first refusal. It
// reports whether this is the first.
func (t *Tables) Refuse(id topo.NodeID, r *work.Request) (first bool) {
	l := &t.nodes[id]
	if first = l.refused.IsEmpty(); !first {
		t.queue.MarkNode(work.LFT, id)
	}
	l.refused.Add(int(r.Mod))
	return first
}

// Recount counts a switch whose forwarding is not in place. A switch that is silent or refuses does not hold up the others.
func (t *Tables) Recount(id topo.NodeID) {
	l, s, wanted := &t.nodes[id], t.fabric.SwitchOf(id), t.fabric.Wanted()
	t.recountUnread(id, l, s)
	pending := false
	if s.Alive && !s.Silent && wanted.LFT(id) != nil && s.Known {
		pending = s.Top != wanted.MaxLID && !t.fabric.IsPaused(work.OnNode(work.Switch, id)) ||
			(l.write.First(l.refused) >= 0 || l.read.First(l.refused) >= 0) && !t.fabric.IsPaused(work.OnNode(work.LFT, id))
	}
	if pending == l.pending {
		return
	}
	l.pending = pending
	if pending {
		t.pending++
	} else {
		t.pending--
	}
}

func (t *Tables) recountUnread(id topo.NodeID, l *table, s Switch) {
	unread := s.Alive && !s.Silent && l.read.First(l.refused) >= 0 && !t.fabric.IsPaused(work.OnNode(work.LFT, id))
	if unread == l.unread {
		return
	}
	l.unread = unread
	if unread {
		t.unread++
	} else {
		t.unread--
	}
}
