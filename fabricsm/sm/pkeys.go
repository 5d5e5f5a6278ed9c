package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// keyBlocks returns the number of blocks of the P_Key table of a port that this SM manages, 0 if it does not manage the
// table.
func (c *Core) keyBlocks(p topo.PortID) int {
	pt := &c.ports[p]
	cap := int(c.topo.Node(pt.node).PartitionCap)
	if c.topo.IsExternal(p) {
		peer := c.topo.Peer(p)
		if !(peer != topo.None && c.topo.IsEndPort(peer)) && !c.members.at(c.topo.PlaceOf(p)) && !pt.pkeys.tenants() {
			return 0
		}
		cap = int(c.nodes[pt.node].info.PartitionEnforcementCap)
	}
	return (cap + keysPerBlock - 1) / keysPerBlock
}

// workPKeys makes the P_Key table of a port known and right, one block at a
// time.
func (c *Core) workPKeys(p topo.PortID) {
	pt := &c.ports[p]
	blocks := c.keyBlocks(p)
	external := c.topo.IsExternal(p)
	if blocks == 0 {
		if external && !c.nodes[pt.node].infoKnown {
			return
		}
		c.keysDone(p)
		return
	}
	if !external && pt.num != 0 && (!pt.seen() || c.topo.Peer(p) == topo.None) {
		return
	}
	if external && !pt.known || pt.num == 0 && !c.nodes[pt.node].infoKnown {
		return
	}
	if pt.unread && !c.mayWriteUnread(p) {
		c.readAfterAll(p)
		return
	}
	if pt.pkeys == nil || len(pt.pkeys.blocks) != blocks {
		c.setKeys(p, c.members.unknownTable(blocks))
	}
	mayWrite := c.writing() && c.members.ready
	fresh := !c.members.keep && c.freshKeys(p) && (pt.num == 0 || pt.info.PortState <= ib.PortInit)
	if fresh && !mayWrite {
		return
	}
	for b, s := range pt.pkeys.blocks {
		if s == blockUnknown && !fresh && !c.mayStayUnread(p, b) {
			c.readKeys(p, b)
			return
		}
	}
	if mayWrite {
		c.review(p)
	}
	if mayWrite && c.writeKeys(p) {
		return
	}
	for b, s := range pt.pkeys.blocks {
		if s == blockProve || s != blockProven && c.concerns(p) {
			c.readKeys(p, b)
			return
		}
	}
	if external && c.concerns(p) && pt.bitsTold() {
		c.q.MarkPort(work.Info, p) // a tenant depends on the enforcement bits: read them back
	}
	if c.readRest(p) {
		return
	}
	if pt.auditBlock > 0 {
		pt.auditBlock--
		c.auditing = true
		c.readKeys(p, min(int(pt.auditBlock), blocks-1))
		c.auditing = false
		return
	}
	if mayWrite {
		c.readRestLater(p)
		c.keysDone(p)
	}
	c.judgePort(p)
}

// keysDone opens the way to Armed.
func (c *Core) keysDone(p topo.PortID) {
	if pt := &c.ports[p]; !pt.keysOK {
		pt.keysOK = true
		c.q.MarkPort(work.Set, p)
	}
}

func (c *Core) readKeys(p topo.PortID, block int) {
	pt := &c.ports[p]
	c.ask(work.OnPort(work.PKey, p), pt.node, mad.MethodGet, mad.AttrPKeyTable, mad.PKeyTableMod(c.topo.ExternalNum(p), uint16(block)))
}

// writeKeys writes the first block that differs from the wanted one.
func (c *Core) writeKeys(p topo.PortID) bool {
	pt := &c.ports[p]
	if c.plain(p) {
		return false
	}
	want, ok := c.members.onlyDefault, true
	if !c.onlyDefault(p) || !pt.pkeys.blank() {
		want, ok = c.wantKeys(p)
	}
	if !ok {
		return false
	}
	for b, s := range pt.pkeys.blocks {
		if !c.topo.IsExternal(p) && c.mustWait(p, b, want) {
			continue
		}
		var table mad.PKeyTable
		lo := b * keysPerBlock
		if lo < len(want) {
			copy(table.PKey[:], want[lo:])
		}
		have := pt.pkeys.keys[lo : lo+keysPerBlock]
		if slices.Equal(table.PKey[:], have) && (s != blockUnknown || c.mayStayUnread(p, b)) {
			continue
		}
		pt.keysOK = false
		pt.prove = slices.ContainsFunc(table.PKey[:], isTenant) || slices.ContainsFunc(have, isTenant)
		c.members.sent[p] = table.PKey
		// From here on it is not known what the block holds, even if no answer
		// comes.
		c.setKeys(p, c.members.tableWith(pt.pkeys, b, have, blockUnknown))
		m := c.ask(work.OnPort(work.PKey, p), pt.node, mad.MethodSet, mad.AttrPKeyTable, mad.PKeyTableMod(c.topo.ExternalNum(p), uint16(b)))
		c.encode(mad.Encode(m.Data(), &table))
		return true
	}
	return false
}

// plain reports whether the most frequent case applies to a port: only the default partition is wanted, and the port holds
// only that.
func (c *Core) plain(p topo.PortID) bool { return c.ports[p].pkeys.plain() && c.onlyDefault(p) }

// onlyDefault reports whether a port is to be a limited member of the default partition and nothing else, which needs no
// plan.
func (c *Core) onlyDefault(p topo.PortID) bool {
	h := p
	if c.topo.IsExternal(p) {
		if h = c.topo.Peer(p); h == topo.None || !c.topo.IsEndPort(h) || !c.canEnforce(p) {
			return false
		}
	}
	guid := c.topo.GUIDOf(h)
	full := c.managerPort(h) || c.cfg.ClassKeys.FullSwitches && c.ports[h].num == 0
	return guid != 0 && !full && len(c.members.byGUID[guid]) == 0
}

// gotPKeys takes one block.
func (c *Core) gotPKeys(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	pt := &c.ports[p]
	var got mad.PKeyTable
	if status != mad.StatusOK || mad.Decode(m.Data(), &got) != nil {
		c.refused(r, status.String())
		return
	}
	b := int(r.Mod & 0xFFFF)
	if pt.pkeys == nil || b >= len(pt.pkeys.blocks) {
		return
	}
	old := pt.pkeys
	state := blockProven
	if r.Method == mad.MethodSet {
		state = blockTold
		if pt.prove {
			state = blockProve
		}
	}
	c.suspectKeys(p, r, old, b, got.PKey[:])
	t := c.members.tableWith(old, b, got.PKey[:], state)
	changed := t != old && (!slices.Equal(old.keys, t.keys) || !slices.Equal(old.blocks, t.blocks))
	c.setKeys(p, t)
	c.viewDue = c.viewDue || changed
	sent := c.members.sent[p]
	delete(c.members.sent, p)
	if r.Method == mad.MethodSet && got.PKey != sent {
		c.refused(r, "the table answered is not the one that was set")
		return
	}
	if r.Audit && !slices.Equal(old.keys, t.keys) {
		c.disturb()
	}
	c.q.MarkPort(work.PKey, p)
	if peer := c.topo.Peer(p); peer != topo.None && changed {
		c.q.MarkPort(work.PKey, peer)
	}
	if changed {
		c.judgePort(p)
	}
}
