package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sm/blocks"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// mftBlock holds the masks of 32 multicast LIDs for 16 ports.
type mftBlock = [mad.MLIDsPerBlock]mad.PortMask

// mft is what is known of the multicast forwarding table of a switch. A table is
// a row of blocks: for each 32 multicast LIDs as many as the switch has
// positions.
type mft struct {
	positions  int
	empty      bool // what was not read is known to be zero: the switch came without configuration
	want, have []mftBlock
	known      blocks.Set       // blocks whose content is known
	read       blocks.Set       // to be read
	write      blocks.Set       // to be written
	busy       blocks.Set       // asked for
	set        map[int]mftBlock // what is being written, which may no longer be wanted
	twice      blocks.Set       // written twice, still different
	refused    blocks.Set       // left alone until the pause after a refusal has passed
	rounds     int              // pauses made since nothing was refused
	audit      blocks.Set       // to be read again in the background
}

// mftOf returns the multicast table of a switch, nil while nothing is wanted of it or it has none.
func (c *Core) mftOf(id topo.NodeID) *mft {
	n := &c.nodes[id]
	if !n.alive || !n.infoKnown || n.info.MulticastFDBCap == 0 || c.groups.blocks == 0 {
		return nil
	}
	if n.mft == nil {
		n.mft = &mft{positions: int(c.topo.Node(id).NumPorts)/mcast.PortsPerPosition + 1, empty: n.reset}
	}
	return n.mft
}

// widen makes room in the tables of all switches when a multicast LID comes into
// use that lies above all before. Blocks stay in use: to be empty.
func (c *Core) widen(top ib.LID) {
	blocks := blocksTo(top)
	if blocks <= c.groups.blocks {
		return
	}
	c.groups.blocks = blocks
	for id := range c.nodes {
		if c.topo.Node(topo.NodeID(id)).Type == ib.NodeSwitch {
			c.diffMFT(topo.NodeID(id))
		}
	}
}

// blocksTo returns the number of blocks up to a multicast LID, none up to 0.
func blocksTo(top ib.LID) int {
	if top == 0 {
		return 0
	}
	return int(top-ib.MinMulticastLID)/mad.MLIDsPerBlock + 1
}

// sized extends a multicast table to all blocks that are in use. The wanted entries of new blocks are filled in from the
// forest.
func (c *Core) sized(id topo.NodeID, t *mft) {
	blocks := min(c.groups.blocks, (int(c.nodes[id].info.MulticastFDBCap)+mad.MLIDsPerBlock-1)/mad.MLIDsPerBlock)
	if len(t.want) >= blocks*t.positions {
		return
	}
	from := ib.MinMulticastLID + ib.LID(len(t.want)/t.positions*mad.MLIDsPerBlock)
	for len(t.want) < blocks*t.positions {
		t.want, t.have = append(t.want, mftBlock{}), append(t.have, mftBlock{})
	}
	for mlid := from; mlid <= c.groups.forest.Top(); mlid++ {
		ports := c.groups.forest.Branch(mlid, id)
		t.fill(mlid, &ports)
	}
}

// fill puts the wanted ports of a multicast LID into the table.
func (t *mft) fill(mlid ib.LID, ports *mcast.Ports) {
	at := int(mlid - ib.MinMulticastLID)
	for p := range t.positions {
		if i := at/mad.MLIDsPerBlock*t.positions + p; i < len(t.want) {
			t.want[i][at%mad.MLIDsPerBlock] = mad.PortMask(ports.Position(p))
		}
	}
}

// diffMFT finds the blocks of a switch that are to be read or written.
func (c *Core) diffMFT(id topo.NodeID) {
	t := c.mftOf(id)
	if t == nil {
		return
	}
	c.sized(id, t)
	for i := range t.want {
		t.diff(i)
	}
	c.q.MarkNode(work.MFT, id)
	c.q.MarkNode(work.Switch, id)
}

func (t *mft) diff(i int) {
	switch {
	case t.read.Has(i):
	case !t.known.Has(i) && !t.empty:
		t.read.Add(i)
	case t.want[i] == t.have[i]:
		t.write.Remove(i)
	default:
		t.write.Add(i)
	}
}

// wantMask takes the ports that a tree wants of a switch.
func (c *Core) wantMask(ch mcast.Change) {
	t := c.mftOf(ch.Switch)
	if t == nil {
		return // it is filled in when the switch is there
	}
	c.sized(ch.Switch, t)
	t.fill(ch.MLID, &ch.Ports)
	block := int(ch.MLID-ib.MinMulticastLID) / mad.MLIDsPerBlock
	for i := block * t.positions; i < min((block+1)*t.positions, len(t.want)); i++ {
		t.diff(i)
	}
	c.q.MarkNode(work.MFT, ch.Switch)
}

// workMFT reads and writes blocks, several at a time.
func (c *Core) workMFT(id topo.NodeID) {
	t := c.mftOf(id)
	if t == nil {
		return
	}
	x := work.OnNode(work.MFT, id)
	i := t.read.First(t.busy, t.refused)
	write := i < 0 && c.writing()
	if write {
		i = t.write.First(t.busy, t.refused)
	}
	switch {
	case i < 0:
		if t.read.IsEmpty() && t.write.IsEmpty() {
			t.rounds = 0
		}
		c.auditMFT(id, t)
		return
	case write:
		m := c.ask(x, id, mad.MethodSet, mad.AttrMulticastForwardingTable, t.mod(i))
		c.encode(mad.Encode(m.Data(), &mad.MulticastForwardingTable{PortMask: t.want[i]}))
		if t.set == nil {
			t.set = make(map[int]mftBlock)
		}
		t.set[i] = t.want[i]
	default:
		c.ask(x, id, mad.MethodGet, mad.AttrMulticastForwardingTable, t.mod(i))
	}
	t.busy.Add(i)
	c.q.Mark(x)
}

// mod returns the attribute modifier of a block.
func (t *mft) mod(i int) uint32 {
	return mad.MulticastForwardingMod(uint8(i%t.positions), uint16(i/t.positions))
}

// at returns the block of an attribute modifier.
func (t *mft) at(mod uint32) int { return int(mod&0x1FF)*t.positions + int(mod>>28) }

// auditMFT reads the next block for the audit.
func (c *Core) auditMFT(id topo.NodeID, t *mft) {
	i := t.audit.First(t.busy)
	if i < 0 || i >= len(t.want) {
		return
	}
	t.audit.Remove(i)
	t.busy.Add(i)
	c.auditing = true
	c.ask(work.OnNode(work.MFT, id), id, mad.MethodGet, mad.AttrMulticastForwardingTable, t.mod(i))
	c.auditing = false
}

// backgroundMFT reads all of a multicast table by and by.
func (c *Core) backgroundMFT(id topo.NodeID) {
	if t := c.nodes[id].mft; t != nil {
		for i := range t.want {
			t.audit.Add(i)
		}
		c.q.MarkNode(work.MFT, id)
	}
}

// gotMFT takes one block.
func (c *Core) gotMFT(id topo.NodeID, r *work.Request, m *mad.MAD, status mad.Status) {
	t := c.mftOf(id)
	if t == nil {
		return
	}
	i := t.at(r.Mod)
	t.busy.Remove(i)
	set := t.set[i]
	delete(t.set, i)
	var got mad.MulticastForwardingTable
	if status != mad.StatusOK || mad.Decode(m.Data(), &got) != nil || i >= len(t.have) {
		c.refusedMFT(id, r, status.String())
		return
	}
	t.have[i] = got.PortMask
	t.known.Add(i)
	t.read.Remove(i)
	t.diff(i)
	if r.Method == mad.MethodSet && !t.twice.Excuses(i, !t.write.Has(i) || got.PortMask == set) {
		c.refusedMFT(id, r, "the block answered is not the one that was set")
		return
	}
	c.q.MarkNode(work.MFT, id)
}

// refusedMFT leaves a block alone, with all others that are refused until then,
// for the pause that follows the first refusal.
func (c *Core) refusedMFT(id topo.NodeID, r *work.Request, reason string) {
	t := c.nodes[id].mft
	if t.refused.IsEmpty() {
		c.failures[r.Ref] = failure{rounds: t.rounds} // other blocks may have been taken since
		t.rounds++
		c.refused(r, reason)
	} else {
		c.q.MarkNode(work.MFT, id)
	}
	t.refused.Add(t.at(r.Mod))
}

// lostMFT frees a block whose request ended without an answer.
func (c *Core) lostMFT(id topo.NodeID, r *work.Request) {
	if t := c.nodes[id].mft; t != nil {
		t.busy.Remove(t.at(r.Mod))
		delete(t.set, t.at(r.Mod))
	}
}

// forgetMFT records that a switch lost its tables.
func (c *Core) forgetMFT(id topo.NodeID) {
	n := &c.nodes[id]
	if n.mft != nil {
		n.mft = &mft{positions: n.mft.positions, busy: n.mft.busy, set: n.mft.set, empty: n.reset}
	}
	c.diffMFT(id)
}

// wantMulticast fills in the fields of SwitchInfo that are about multicast, once the first groups have arrived. These are
// the end of the blocks that are in use, and that packets no entry matches are dropped.
func (c *Core) wantMulticast(id topo.NodeID, want *mad.SwitchInfo) {
	n := &c.nodes[id]
	if want.MulticastFDBCap == 0 || !c.groups.ready {
		return
	}
	p0 := &c.ports[c.topo.Node(id).FirstPort]
	if p0.known && p0.info.CapabilityMask.Has(mad.IsMulticastFDBTopSupported) && n.notKept&FieldMulticastFDBTop == 0 {
		blocks := max(c.groups.blocks, blocksTo(c.groups.forest.Top()))
		want.MulticastFDBTop = ib.MinMulticastLID + ib.LID(min(blocks*mad.MLIDsPerBlock, int(want.MulticastFDBCap))) - 1
	}
	if n.notKept&FieldDefaultMulticastPorts == 0 {
		want.DefaultMulticastPrimaryPort, want.DefaultMulticastNotPrimaryPort = ib.NoPort, ib.NoPort
	}
}

// mcAsked is what the last Set of SwitchInfo asked for.
type mcAsked struct {
	top                 ib.LID
	primary, notPrimary ib.PortNum
}

// learnMulticast remembers which of those fields a switch did not keep in a Set.
func (c *Core) learnMulticast(id topo.NodeID) {
	got, asked := &c.nodes[id].info, c.nodes[id].mcAsked
	var missed PortFields
	if got.MulticastFDBTop != asked.top {
		missed |= FieldMulticastFDBTop
	}
	if got.DefaultMulticastPrimaryPort != asked.primary || got.DefaultMulticastNotPrimaryPort != asked.notPrimary {
		missed |= FieldDefaultMulticastPorts
	}
	c.learn(id, 0, missed)
}

// TreesRefused says that multicast cannot be routed without a possible credit
// loop in a part of the fabric. Groups there reach the hosts of one switch only.
type TreesRefused struct{ Reason string }

// GroupCut says that the tree of a group does not reach all switches with
// members.
type GroupCut struct {
	MLID     ib.LID
	Switch   ib.GUID // the first of those that are left out
	Switches int     // how many are
}

func (*TreesRefused) FabricEvent() {}
func (*GroupCut) FabricEvent()     {}

func (e *TreesRefused) String() string { return "multicast: " + e.Reason }

func (e *GroupCut) String() string {
	return fmt.Sprintf("multicast LID 0x%04x does not reach the members at switch %v, nor those at %d others: no safe way leads there, or a table has no room",
		uint16(e.MLID), e.Switch, e.Switches-1)
}
