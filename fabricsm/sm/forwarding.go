package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/blocks"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

const lidsPerBlock = mad.LIDsPerBlock

// lft is the known state of the linear forwarding table of a switch. Blocks that are as wanted are not kept twice: the
// wanted row, which is never changed, stands for them.
type lft struct {
	row     []ib.PortNum           // wanted when blocks were compared last
	same    blocks.Set             // blocks that are known to be as in row
	other   map[int32][]ib.PortNum // blocks that are known to be otherwise
	read    blocks.Set             // to be read
	write   blocks.Set             // to be written
	held    blocks.Set             // of which are to wait for others, see rollout
	rolling blocks.Set             // of which others wait for these
	busy    blocks.Set             // asked for
	set     map[int32][]ib.PortNum // what is being written, of rows that may no longer be wanted
	twice   blocks.Set             // written twice, still different
	refused blocks.Set             // left alone until the pause after a refusal has passed
	pending bool                   // counted in routing.pending
}

func (l *lft) forget() { *l = lft{busy: l.busy, set: l.set, rolling: l.rolling, pending: l.pending} }

// done reports whether no request to the switch is left to be sent.
func (l *lft) done() bool { return !l.pending && l.write.IsEmpty() && l.read.IsEmpty() }

// have returns the content of a block, nil if it is not known.
func (l *lft) have(b int) []ib.PortNum {
	if l.same.Has(b) {
		return blockOf(l.row, b)
	}
	return l.other[int32(b)]
}

// all returns the whole table as far as it is known, nil if nothing of it is.
func (l *lft) all() []ib.PortNum {
	var row []ib.PortNum
	for b := max(l.same.Last(), l.lastOther()); b >= 0; b-- {
		content := l.have(b)
		if content == nil {
			continue
		}
		if row == nil {
			row = make([]ib.PortNum, (b+1)*lidsPerBlock)
			for i := range row {
				row[i] = ib.NoPort
			}
		}
		copy(row[b*lidsPerBlock:], content)
	}
	return row
}

func (l *lft) lastOther() int {
	last := int32(-1)
	for b := range l.other {
		last = max(last, b)
	}
	return int(last)
}

// found records the content of a block. Blocks that are not as in row are copied, so content may be overwritten afterwards.
func (l *lft) found(b int, content []ib.PortNum) {
	if sameEntries(content, blockOf(l.row, b)) {
		l.same.Add(b)
		delete(l.other, int32(b))
		return
	}
	l.same.Remove(b)
	if l.other == nil {
		l.other = make(map[int32][]ib.PortNum)
	}
	l.other[int32(b)] = slices.Clone(content)
}

// compare takes another row for the wanted one.
func (l *lft) compare(want []ib.PortNum) {
	old := l.row
	if sameRow(old, want) {
		return
	}
	for b := range max(len(old), len(want)) / lidsPerBlock {
		if !l.same.Has(b) {
			continue
		}
		if was := blockOf(old, b); !sameEntries(was, blockOf(want, b)) {
			l.same.Remove(b)
			if l.other == nil {
				l.other = make(map[int32][]ib.PortNum)
			}
			l.other[int32(b)] = was
		}
	}
	l.row = want
	for b, content := range l.other {
		if sameEntries(content, blockOf(want, int(b))) {
			l.same.Add(int(b))
			delete(l.other, b)
		}
	}
}

// sameRow reports whether two rows are one, and not only alike: tables share the rows that did not change.
func sameRow(a, b []ib.PortNum) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// sameEntries reports whether two blocks are alike. Strings are compared many bytes at a time; slices of a defined type are
// not.
func sameEntries(a, b []ib.PortNum) bool { return string(a) == string(b) }

// blockOf returns a block of a row, nil where it ends before.
func blockOf(row []ib.PortNum, b int) []ib.PortNum {
	if (b+1)*lidsPerBlock > len(row) {
		return nil
	}
	return row[b*lidsPerBlock : (b+1)*lidsPerBlock]
}

// readLFT reads the table of a switch that another manager programmed before us, so that only what differs is written.
func (c *Core) readLFT(id topo.NodeID) {
	n := &c.nodes[id]
	top := int(n.info.LinearFDBTop)
	if top == 0 || top > int(ib.MaxUnicastLID) {
		c.diffLFT(id)
		return
	}
	for b := range top/lidsPerBlock + 1 {
		n.lft.read.Add(b)
	}
	c.q.MarkNode(work.LFT, id)
}

// diffLFT finds the blocks that are to be written.
func (c *Core) diffLFT(id topo.NodeID) {
	want := c.routing.tables.LFT(id)
	l := &c.nodes[id].lft
	l.compare(want)
	for b := range max(len(want)/lidsPerBlock, l.write.Last()+1) {
		c.diffBlock(l, b)
	}
	c.q.MarkNode(work.LFT, id)
	c.q.MarkNode(work.Switch, id)
	c.updateForwarding(id)
}

func (c *Core) diffBlock(l *lft, b int) {
	switch {
	case l.read.Has(b):
	case (b+1)*lidsPerBlock > len(l.row): // the table became shorter before it was written
		l.write.Remove(b)
		c.rolledOut(l, b)
	case l.same.Has(b):
		l.write.Remove(b)
		c.rolledOut(l, b)
	default:
		l.write.Add(b)
	}
}

// workLFT reads and writes blocks, several at a time.
func (c *Core) workLFT(id topo.NodeID) {
	l := &c.nodes[id].lft
	x := work.OnNode(work.LFT, id)
	if b := l.read.First(l.busy, l.refused); b >= 0 {
		l.busy.Add(b)
		c.ask(x, id, mad.MethodGet, mad.AttrLinearForwardingTable, uint32(b))
		c.q.Mark(x)
		return
	}
	want := c.routing.tables.LFT(id)
	b := l.write.First(l.busy, l.held, l.refused)
	if b < 0 || !c.writing() || (b+1)*lidsPerBlock > len(want) {
		return
	}
	if c.lanes.Delays(id) {
		return
	}
	l.busy.Add(b)
	m := c.ask(x, id, mad.MethodSet, mad.AttrLinearForwardingTable, uint32(b))
	for i, p := range blockOf(want, b) {
		m.Data()[i] = byte(p)
	}
	if l.set == nil {
		l.set = make(map[int32][]ib.PortNum)
	}
	l.set[int32(b)] = blockOf(want, b)
	c.q.Mark(x)
}

// gotLFT takes one block.
func (c *Core) gotLFT(id topo.NodeID, r *work.Request, m *mad.MAD, status mad.Status) {
	l := &c.nodes[id].lft
	b := int(r.Mod)
	l.busy.Remove(b)
	set := l.set[int32(b)]
	delete(l.set, int32(b))
	if status != mad.StatusOK {
		c.rolledOut(l, b)
		c.refusedBlock(id, r, status.String())
		return
	}
	var content [lidsPerBlock]ib.PortNum
	for i, p := range m.Data() {
		content[i] = ib.PortNum(p)
	}
	l.compare(c.routing.tables.LFT(id))
	l.found(b, content[:])
	l.read.Remove(b)
	c.diffBlock(l, b)
	if r.Method == mad.MethodSet && !l.twice.Excuses(b, !l.write.Has(b) || sameEntries(content[:], set)) {
		c.refusedBlock(id, r, "the block answered is not the one that was set")
		return
	}
	c.q.MarkNode(work.LFT, id)
	c.updateForwarding(id)
}

// refusedBlock leaves a block alone, with all others that are refused until then,
// for the pause that follows the first refusal.
func (c *Core) refusedBlock(id topo.NodeID, r *work.Request, reason string) {
	l := &c.nodes[id].lft
	if l.refused.IsEmpty() {
		c.refused(r, reason)
	} else {
		c.q.MarkNode(work.LFT, id)
	}
	l.refused.Add(int(r.Mod))
	c.updateForwarding(id)
}

// lostLFT frees a block whose request ended without an answer.
func (c *Core) lostLFT(id topo.NodeID, r *work.Request) {
	l := &c.nodes[id].lft
	l.busy.Remove(int(r.Mod))
	delete(l.set, int32(r.Mod))
	c.rolledOut(l, int(r.Mod)) // a silent switch does not hold up the others
}

// updateForwarding counts a switch whose forwarding is not in place. A switch that is silent or refuses does not hold up
// the others.
func (c *Core) updateForwarding(id topo.NodeID) {
	n := &c.nodes[id]
	t := c.routing.tables
	pending := false
	if n.alive && !n.silent && t.LFT(id) != nil && n.infoKnown {
		pending = n.info.LinearFDBTop != t.MaxLID && c.failures[work.OnNode(work.Switch, id)].rounds == 0 ||
			(n.lft.write.First(n.lft.refused) >= 0 || n.lft.read.First(n.lft.refused) >= 0) && c.failures[work.OnNode(work.LFT, id)].rounds == 0
	}
	if pending == n.lft.pending {
		return
	}
	n.lft.pending = pending
	if pending {
		c.routing.pending++
	} else {
		c.routing.pending--
	}
}

// noForwarding stops counting a switch that is gone.
func (c *Core) noForwarding(id topo.NodeID) {
	n := &c.nodes[id]
	c.dropRollout(&n.lft)
	if n.lft.pending {
		n.lft.pending = false
		c.routing.pending--
	}
}
