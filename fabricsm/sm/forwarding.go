package sm

import (
	"math/bits"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

const lidsPerBlock = mad.LIDsPerBlock

// blockSet is a set of block numbers.
type blockSet []uint64

func (s *blockSet) add(b int) {
	for b/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[b/64] |= 1 << (b % 64)
}

func (s blockSet) remove(b int) {
	if b/64 < len(s) {
		s[b/64] &^= 1 << (b % 64)
	}
}

func (s blockSet) has(b int) bool { return b/64 < len(s) && s[b/64]&(1<<(b%64)) != 0 }

// excuses takes whether a switch answered with the block that it was given, which need not be the
// one that is wanted by now. One that did not is written once more before it counts as refused.
func (s *blockSet) excuses(b int, kept bool) bool {
	excused := kept || !s.has(b)
	if excused && !kept {
		s.add(b)
	} else {
		s.remove(b)
	}
	return excused
}

// first returns the lowest member that is in none of some sets, -1 for none.
func (s blockSet) first(except ...blockSet) int {
	for i, w := range s {
		for _, x := range except {
			if i < len(x) {
				w &^= x[i]
			}
		}
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// last returns the highest member, -1 without one.
func (s blockSet) last() int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] != 0 {
			return i*64 + bits.Len64(s[i]) - 1
		}
	}
	return -1
}

func (s blockSet) empty() bool { return s.first() < 0 }

// lft is the known state of the linear forwarding table of a switch. Blocks that are as wanted are not kept twice: the
// wanted row, which is never changed, stands for them.
type lft struct {
	row     []ib.PortNum           // wanted when blocks were compared last
	same    blockSet               // blocks that are known to be as in row
	other   map[int32][]ib.PortNum // blocks that are known to be otherwise
	read    blockSet               // to be read
	write   blockSet               // to be written
	held    blockSet               // of which are to wait for others, see rollout
	rolling blockSet               // of which others wait for these
	busy    blockSet               // asked for
	set     map[int32][]ib.PortNum // what is being written, of rows that may no longer be wanted
	twice   blockSet               // written twice, still different
	refused blockSet               // left alone until the pause after a refusal has passed
	pending bool                   // counted in routing.pending
}

func (l *lft) forget() { *l = lft{busy: l.busy, set: l.set, rolling: l.rolling, pending: l.pending} }

// done reports whether no request to the switch is left to be sent.
func (l *lft) done() bool { return !l.pending && l.write.empty() && l.read.empty() }

// have returns the content of a block, nil if it is not known.
func (l *lft) have(b int) []ib.PortNum {
	if l.same.has(b) {
		return blockOf(l.row, b)
	}
	return l.other[int32(b)]
}

// all returns the whole table as far as it is known, nil if nothing of it is.
func (l *lft) all() []ib.PortNum {
	var row []ib.PortNum
	for b := max(l.same.last(), l.lastOther()); b >= 0; b-- {
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
		l.same.add(b)
		delete(l.other, int32(b))
		return
	}
	l.same.remove(b)
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
		if !l.same.has(b) {
			continue
		}
		if was := blockOf(old, b); !sameEntries(was, blockOf(want, b)) {
			l.same.remove(b)
			if l.other == nil {
				l.other = make(map[int32][]ib.PortNum)
			}
			l.other[int32(b)] = was
		}
	}
	l.row = want
	for b, content := range l.other {
		if sameEntries(content, blockOf(want, int(b))) {
			l.same.add(int(b))
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
		n.lft.read.add(b)
	}
	c.markNode(clsLFT, id)
}

// diffLFT finds the blocks that are to be written.
func (c *Core) diffLFT(id topo.NodeID) {
	want := c.routing.tables.LFT(id)
	l := &c.nodes[id].lft
	l.compare(want)
	for b := range max(len(want)/lidsPerBlock, l.write.last()+1) {
		c.diffBlock(l, b)
	}
	c.markNode(clsLFT, id)
	c.markNode(clsSwitch, id)
	c.updateForwarding(id)
}

func (c *Core) diffBlock(l *lft, b int) {
	switch {
	case l.read.has(b):
	case (b+1)*lidsPerBlock > len(l.row): // the table became shorter before it was written
		l.write.remove(b)
		c.rolledOut(l, b)
	case l.same.has(b):
		l.write.remove(b)
		c.rolledOut(l, b)
	default:
		l.write.add(b)
	}
}

// workLFT reads and writes blocks, several at a time.
func (c *Core) workLFT(id topo.NodeID) {
	l := &c.nodes[id].lft
	x := ref{clsLFT, int32(id)}
	if b := l.read.first(l.busy, l.refused); b >= 0 {
		l.busy.add(b)
		c.ask(x, id, mad.MethodGet, mad.AttrLinearForwardingTable, uint32(b))
		c.mark(x)
		return
	}
	want := c.routing.tables.LFT(id)
	b := l.write.first(l.busy, l.held, l.refused)
	if b < 0 || !c.writing() || (b+1)*lidsPerBlock > len(want) {
		return
	}
	if c.afterLanes(id) {
		return
	}
	l.busy.add(b)
	m := c.ask(x, id, mad.MethodSet, mad.AttrLinearForwardingTable, uint32(b))
	for i, p := range blockOf(want, b) {
		m.Data()[i] = byte(p)
	}
	if l.set == nil {
		l.set = make(map[int32][]ib.PortNum)
	}
	l.set[int32(b)] = blockOf(want, b)
	c.mark(x)
}

// gotLFT takes one block.
func (c *Core) gotLFT(id topo.NodeID, r *request, m *mad.MAD, status mad.Status) {
	l := &c.nodes[id].lft
	b := int(r.mod)
	l.busy.remove(b)
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
	l.read.remove(b)
	c.diffBlock(l, b)
	if r.method == mad.MethodSet && !l.twice.excuses(b, !l.write.has(b) || sameEntries(content[:], set)) {
		c.refusedBlock(id, r, "the block answered is not the one that was set")
		return
	}
	c.markNode(clsLFT, id)
	c.updateForwarding(id)
}

// refusedBlock leaves a block alone, with all others that are refused until then,
// for the pause that follows the first refusal.
func (c *Core) refusedBlock(id topo.NodeID, r *request, reason string) {
	l := &c.nodes[id].lft
	if l.refused.empty() {
		c.refused(r, reason)
	} else {
		c.markNode(clsLFT, id)
	}
	l.refused.add(int(r.mod))
	c.updateForwarding(id)
}

// lostLFT frees a block whose request ended without an answer.
func (c *Core) lostLFT(id topo.NodeID, r *request) {
	l := &c.nodes[id].lft
	l.busy.remove(int(r.mod))
	delete(l.set, int32(r.mod))
	c.rolledOut(l, int(r.mod)) // a silent switch does not hold up the others
}

// updateForwarding counts a switch whose forwarding is not in place. A switch that is silent or refuses does not hold up
// the others.
func (c *Core) updateForwarding(id topo.NodeID) {
	n := &c.nodes[id]
	t := c.routing.tables
	pending := false
	if n.alive && !n.silent && t.LFT(id) != nil && n.infoKnown {
		pending = n.info.LinearFDBTop != t.MaxLID && c.failures[ref{clsSwitch, int32(id)}].rounds == 0 ||
			(n.lft.write.first(n.lft.refused) >= 0 || n.lft.read.first(n.lft.refused) >= 0) && c.failures[ref{clsLFT, int32(id)}].rounds == 0
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
