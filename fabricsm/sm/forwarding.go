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

// first gives the lowest member that is not in except, -1 for none.
func (s blockSet) first(except blockSet) int {
	for i, w := range s {
		if i < len(except) {
			w &^= except[i]
		}
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

func (s blockSet) empty() bool { return s.first(nil) < 0 }

// lft is what is known of the linear forwarding table of a switch.
type lft struct {
	have    []ib.PortNum // whole blocks
	known   blockSet     // blocks whose content is known
	read    blockSet     // to be read
	write   blockSet     // to be written
	busy    blockSet     // asked for
	twice   blockSet     // written twice, still different
	pending bool         // counted in routing.pending
}

func (l *lft) forget() { *l = lft{busy: l.busy, pending: l.pending} }

func (l *lft) block(b int) []ib.PortNum {
	for len(l.have) < (b+1)*lidsPerBlock {
		l.have = append(l.have, ib.NoPort)
	}
	return l.have[b*lidsPerBlock : (b+1)*lidsPerBlock]
}

// readLFT has the table of a switch read that somebody programmed before us, so
// that only what differs is written.
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
	for b := range len(want) / lidsPerBlock {
		c.diffBlock(l, want, b)
	}
	c.markNode(clsLFT, id)
	c.markNode(clsSwitch, id)
	c.updateForwarding(id)
}

func (c *Core) diffBlock(l *lft, want []ib.PortNum, b int) {
	lo := b * lidsPerBlock
	switch {
	case lo+lidsPerBlock > len(want) || l.read.has(b):
	case l.known.has(b) && slices.Equal(want[lo:lo+lidsPerBlock], l.block(b)):
		l.write.remove(b)
	default:
		l.write.add(b)
	}
}

// workLFT reads and writes blocks, several at a time.
func (c *Core) workLFT(id topo.NodeID) {
	l := &c.nodes[id].lft
	x := ref{clsLFT, int32(id)}
	if b := l.read.first(l.busy); b >= 0 {
		l.busy.add(b)
		c.ask(x, id, mad.MethodGet, mad.AttrLinearForwardingTable, uint32(b))
		c.mark(x)
		return
	}
	want := c.routing.tables.LFT(id)
	b := l.write.first(l.busy)
	if b < 0 || !c.writing() || (b+1)*lidsPerBlock > len(want) {
		return
	}
	if c.afterLanes(id) {
		return
	}
	l.busy.add(b)
	m := c.ask(x, id, mad.MethodSet, mad.AttrLinearForwardingTable, uint32(b))
	for i, p := range want[b*lidsPerBlock : (b+1)*lidsPerBlock] {
		m.Data()[i] = byte(p)
	}
	c.mark(x)
}

// gotLFT takes one block.
func (c *Core) gotLFT(id topo.NodeID, r *request, m *mad.MAD, status mad.Status) {
	l := &c.nodes[id].lft
	b := int(r.mod)
	l.busy.remove(b)
	if status != mad.StatusOK {
		c.refused(r, status.String())
		c.updateForwarding(id)
		return
	}
	l.known.add(b)
	for i, p := range m.Data() {
		l.block(b)[i] = ib.PortNum(p)
	}
	l.read.remove(b)
	want := c.routing.tables.LFT(id)
	c.diffBlock(l, want, b)
	if r.method == mad.MethodSet && l.write.has(b) && !c.rewritten(l, b) {
		c.refused(r, "the block answered is not the one that was set")
		c.updateForwarding(id)
		return
	}
	c.markNode(clsLFT, id)
	c.updateForwarding(id)
}

// rewritten allows for tables that changed meanwhile: a block that differs after a Set is written
// once more before it counts as refused.
func (c *Core) rewritten(l *lft, b int) bool {
	if l.twice.has(b) {
		l.twice.remove(b)
		return false
	}
	l.twice.add(b)
	return true
}

// lostLFT frees a block whose request ended without an answer.
func (c *Core) lostLFT(id topo.NodeID, r *request) {
	c.nodes[id].lft.busy.remove(int(r.mod))
}

// updateForwarding counts a switch whose forwarding is not in place. One that
// is silent or refuses holds nobody up.
func (c *Core) updateForwarding(id topo.NodeID) {
	n := &c.nodes[id]
	t := c.routing.tables
	pending := false
	if n.alive && !n.silent && t.LFT(id) != nil && n.infoKnown {
		pending = n.info.LinearFDBTop != t.MaxLID && c.failures[ref{clsSwitch, int32(id)}].rounds == 0 ||
			(!n.lft.write.empty() || !n.lft.read.empty()) && c.failures[ref{clsLFT, int32(id)}].rounds == 0
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
	if n := &c.nodes[id]; n.lft.pending {
		n.lft.pending = false
		c.routing.pending--
	}
}
