package multicast

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sm/blocks"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// block holds the masks of 32 multicast LIDs for 16 ports.
type block = [mad.MLIDsPerBlock]mad.PortMask

// table is what is known of the multicast forwarding table of a switch. It is
// a row of blocks: for each 32 multicast LIDs as many as the switch has
// positions.
type table struct {
	positions  int
	empty      bool // what was not read is known to be zero: the switch came without configuration
	want, have []block
	known      blocks.Set    // blocks whose content is known
	read       blocks.Set    // to be read
	write      blocks.Set    // to be written
	busy       blocks.Set    // asked for
	set        map[int]block // what is being written, which may no longer be wanted
	unsure     blocks.Set    // whose last Set was not answered, so that the switch may have taken it
	twice      blocks.Set    // written twice, still different
	refused    blocks.Set    // left alone until the pause after a refusal has passed
	rounds     int           // pauses made since nothing was refused
	audit      blocks.Set    // to be read again in the background
}

// Step is the next thing to do about the table of a switch.
type Step struct {
	Method mad.Method                      // 0: nothing
	Mod    uint32                          // attribute modifier of the block
	Audit  bool                            // a Get that is part of the background audit
	Masks  [mad.MLIDsPerBlock]mad.PortMask // of a Set
}

// tableOf returns the table of a switch, nil while nothing is wanted of it or it has none.
func (g *Groups) tableOf(id topo.NodeID) *table {
	sw := g.fabric.SwitchOf(id)
	if sw.Cap == 0 || g.blocks == 0 {
		return nil
	}
	g.tables = topo.ExtendNodes(g.tables, int(id)+1)
	if g.tables[id] == nil {
		g.tables[id] = &table{positions: int(g.topo.Node(id).NumPorts)/mcast.PortsPerPosition + 1, empty: sw.IsReset}
	}
	return g.tables[id]
}

// kept returns the table of a switch as it is, nil if there is none.
func (g *Groups) kept(id topo.NodeID) *table {
	if int(id) >= len(g.tables) {
		return nil
	}
	return g.tables[id]
}

// RemoveSwitch forgets what is known of a switch that comes or goes.
func (g *Groups) RemoveSwitch(id topo.NodeID) {
	if int(id) < len(g.tables) {
		g.tables[id] = nil
	}
}

// widen makes room in the tables of all switches when a multicast LID comes into
// use that lies above all before. Blocks stay in use: to be empty.
func (g *Groups) widen(top ib.LID) {
	n := blocksTo(top)
	if n <= g.blocks {
		return
	}
	g.blocks = n
	for id := range topo.NodeID(g.topo.NumNodes()) {
		if g.topo.Node(id).Type == ib.NodeSwitch {
			g.Compare(id)
		}
	}
}

// sized extends a table to all blocks that are in use. The wanted entries of new blocks are filled in from the
// forest.
func (g *Groups) sized(id topo.NodeID, t *table) {
	n := min(g.blocks, (g.fabric.SwitchOf(id).Cap+mad.MLIDsPerBlock-1)/mad.MLIDsPerBlock)
	if len(t.want) >= n*t.positions {
		return
	}
	from := ib.MinMulticastLID + ib.LID(len(t.want)/t.positions*mad.MLIDsPerBlock)
	for len(t.want) < n*t.positions {
		t.want, t.have = append(t.want, block{}), append(t.have, block{})
	}
	for mlid := from; mlid <= g.forest.Top(); mlid++ {
		ports := g.forest.Branch(mlid, id)
		t.fill(mlid, &ports)
	}
}

// fill puts the wanted ports of a multicast LID into the table.
func (t *table) fill(mlid ib.LID, ports *mcast.Ports) {
	at := int(mlid - ib.MinMulticastLID)
	for p := range t.positions {
		if i := at/mad.MLIDsPerBlock*t.positions + p; i < len(t.want) {
			t.want[i][at%mad.MLIDsPerBlock] = mad.PortMask(ports.Position(p))
		}
	}
}

// Compare finds the blocks of a switch that are to be read or written.
func (g *Groups) Compare(id topo.NodeID) {
	t := g.tableOf(id)
	if t == nil {
		return
	}
	g.sized(id, t)
	for i := range t.want {
		t.compare(i)
	}
	g.queue.MarkNode(work.MFT, id)
	g.queue.MarkNode(work.Switch, id)
}

func (t *table) compare(i int) {
	switch {
	case t.read.Has(i):
	case !t.known.Has(i) && !t.empty:
		t.read.Add(i)
	case t.want[i] == t.have[i] && !t.unsure.Has(i):
		t.write.Remove(i)
	default:
		t.write.Add(i)
	}
}

// wantMask takes the ports that a tree wants of a switch.
func (g *Groups) wantMask(ch mcast.Change) {
	t := g.tableOf(ch.Switch)
	if t == nil {
		return // it is filled in when the switch is there
	}
	g.sized(ch.Switch, t)
	t.fill(ch.MLID, &ch.Ports)
	at := int(ch.MLID-ib.MinMulticastLID) / mad.MLIDsPerBlock
	for i := at * t.positions; i < min((at+1)*t.positions, len(t.want)); i++ {
		t.compare(i)
	}
	g.queue.MarkNode(work.MFT, ch.Switch)
}

// Next returns the next block of a switch to be read or written. Several may be asked for at a time: the caller has to mark
// the switch again after a step that is not part of the audit.
func (g *Groups) Next(id topo.NodeID, mayWrite bool) Step {
	t := g.tableOf(id)
	if t == nil {
		return Step{}
	}
	s := Step{Method: mad.MethodGet}
	i := t.read.First(t.busy, t.refused)
	if i < 0 && mayWrite {
		i = t.write.First(t.busy, t.refused)
		s.Method = mad.MethodSet
	}
	if i < 0 {
		if t.read.IsEmpty() && t.write.IsEmpty() {
			t.rounds = 0
		}
		return t.nextAudit()
	}
	if s.Method == mad.MethodSet {
		s.Masks = t.want[i]
		if t.set == nil {
			t.set = make(map[int]block)
		}
		t.set[i] = t.want[i]
	}
	t.busy.Add(i)
	s.Mod = t.mod(i)
	return s
}

// nextAudit returns the next block to be read for the audit.
func (t *table) nextAudit() Step {
	i := t.audit.First(t.busy)
	if i < 0 || i >= len(t.want) {
		return Step{}
	}
	t.audit.Remove(i)
	t.busy.Add(i)
	return Step{Method: mad.MethodGet, Audit: true, Mod: t.mod(i)}
}

// mod returns the attribute modifier of a block.
func (t *table) mod(i int) uint32 {
	return mad.MulticastForwardingMod(uint8(i%t.positions), uint16(i/t.positions))
}

// at returns the block of an attribute modifier.
func (t *table) at(mod uint32) int { return int(mod&0x1FF)*t.positions + int(mod>>28) }

// Audit has all of a table read by and by.
func (g *Groups) Audit(id topo.NodeID) {
	if t := g.kept(id); t != nil {
		for i := range t.want {
			t.audit.Add(i)
		}
		g.queue.MarkNode(work.MFT, id)
	}
}

// Answer takes a block that a switch answered with, nil for an error, and what the error was. It reports whether the block
// counts as refused, and why.
func (g *Groups) Answer(id topo.NodeID, r *work.Request, got *mad.MulticastForwardingTable, why string) (reason string, refused bool) {
	t := g.tableOf(id)
	if t == nil {
		return "", false
	}
	i := t.at(r.Mod)
	t.busy.Remove(i)
	set := t.set[i]
	delete(t.set, i)
	if got == nil || i >= len(t.have) {
		return why, true
	}
	t.have[i] = got.PortMask
	t.known.Add(i)
	t.read.Remove(i)
	t.unsure.Remove(i)
	t.compare(i)
	if r.Method == mad.MethodSet && !t.twice.Excuses(i, !t.write.Has(i) || got.PortMask == set) {
		return "the block answered is not the one that was set", true
	}
	g.queue.MarkNode(work.MFT, id)
	return "", false
}

// Refuse leaves a block alone, with all others that are refused until then, for the pause that follows the first refusal.
// It reports whether this is the first, and how many pauses were made before.
func (g *Groups) Refuse(id topo.NodeID, r *work.Request) (first bool, rounds int) {
	t := g.kept(id)
	if first = t.refused.IsEmpty(); first {
		rounds = t.rounds // other blocks may have been taken since
		t.rounds++
	} else {
		g.queue.MarkNode(work.MFT, id)
	}
	t.refused.Add(t.at(r.Mod))
	return first, rounds
}

// Resume ends the pause after a refusal.
func (g *Groups) Resume(id topo.NodeID) {
	if t := g.kept(id); t != nil {
		t.refused = nil
	}
}

// Lost frees a block whose request ended without an answer. One that was being written is written again, whatever is wanted
// now.
func (g *Groups) Lost(id topo.NodeID, r *work.Request) {
	if t := g.kept(id); t != nil {
		i := t.at(r.Mod)
		t.busy.Remove(i)
		if _, set := t.set[i]; set && i < len(t.want) {
			t.unsure.Add(i)
			t.compare(i)
		}
		delete(t.set, i)
	}
}

// Forget records that a switch lost its tables.
func (g *Groups) Forget(id topo.NodeID) {
	if t := g.kept(id); t != nil {
		g.tables[id] = &table{positions: t.positions, busy: t.busy, set: t.set, empty: g.fabric.SwitchOf(id).IsReset}
	}
	g.Compare(id)
}
