package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/topo"
)

const keysPerBlock = mad.PKeysPerBlock

// pkeyTable is what is known of a P_Key table. It is immutable: views share it.
type pkeyTable struct {
	keys   []ib.PKey    // whole blocks
	blocks []blockState // by block
}

type blockState uint8

const (
	blockUnknown blockState = iota
	blockTold               // from the answer to a Set
	blockProve              // the same, and tenants depend on it: to be read back
	blockProven             // from a Get
)

func (t *pkeyTable) proven() bool {
	for _, s := range t.blocks {
		if s != blockProven {
			return false
		}
	}
	return true
}

// with gives the table with one block replaced.
func (t *pkeyTable) with(b int, keys []ib.PKey, state blockState) *pkeyTable {
	n := &pkeyTable{keys: slices.Clone(t.keys), blocks: slices.Clone(t.blocks)}
	copy(n.keys[b*keysPerBlock:], keys)
	n.blocks[b] = state
	return n
}

// is reports that t is another table with one block replaced.
func (t *pkeyTable) is(o *pkeyTable, b int, keys []ib.PKey, state blockState) bool {
	lo, hi := b*keysPerBlock, (b+1)*keysPerBlock
	return len(t.blocks) == len(o.blocks) && t.blocks[b] == state && slices.Equal(t.keys[lo:hi], keys) &&
		slices.Equal(t.keys[:lo], o.keys[:lo]) && slices.Equal(t.keys[hi:], o.keys[hi:]) &&
		slices.Equal(t.blocks[:b], o.blocks[:b]) && slices.Equal(t.blocks[b+1:], o.blocks[b+1:])
}

// sharedTables is how many tables are remembered to be shared: most ports of a
// fabric hold the same.
const sharedTables = 8

// tableWith gives a table with one block replaced.
func (m *members) tableWith(t *pkeyTable, b int, keys []ib.PKey, state blockState) *pkeyTable {
	if t.is(t, b, keys, state) {
		return t
	}
	for _, o := range m.shared {
		if o != nil && o.is(t, b, keys, state) {
			return o
		}
	}
	n := t.with(b, keys, state)
	m.shared[m.sharedAt] = n
	m.sharedAt = (m.sharedAt + 1) % sharedTables
	return n
}

// unknownTable gives the table of a port of which nothing is known.
func (m *members) unknownTable(blocks int) *pkeyTable {
	if m.unknown[blocks] == nil {
		m.unknown[blocks] = &pkeyTable{keys: make([]ib.PKey, blocks*keysPerBlock), blocks: make([]blockState, blocks)}
	}
	return m.unknown[blocks]
}

// doubted gives the table as one that was proven before, but not now.
func (t *pkeyTable) doubted() *pkeyTable {
	n := &pkeyTable{keys: t.keys, blocks: slices.Clone(t.blocks)}
	for b, s := range n.blocks {
		if s == blockProven {
			n.blocks[b] = blockTold
		}
	}
	return n
}

// absent reports that no block can hold a partition.
func (t *pkeyTable) absent(k ib.PKey) bool {
	return t.proven() && !slices.ContainsFunc(t.keys, func(o ib.PKey) bool { return o.Base() == k.Base() })
}

// proves reports that a key was read back in the table.
func (t *pkeyTable) proves(k ib.PKey) bool {
	if t == nil {
		return false
	}
	i := slices.Index(t.keys, k)
	return i >= 0 && t.blocks[i/keysPerBlock] == blockProven
}

func isTenant(k ib.PKey) bool { return k.Valid() && k.Base() != ib.DefaultPKeyLimited }

// keyBlocks gives the number of blocks of the P_Key table of a port that this
// SM looks after, 0 if it does not.
func (c *Core) keyBlocks(p topo.PortID) int {
	pt := &c.ports[p]
	cap := int(c.topo.Node(pt.node).PartitionCap)
	if c.external(p) {
		peer := c.peer(p)
		if !(peer != topo.None && c.isEnd(peer)) && !c.members.at(c.placeOf(p)) && !pt.pkeys.tenants() {
			return 0
		}
		cap = int(c.nodes[pt.node].info.PartitionEnforcementCap)
	}
	return (cap + keysPerBlock - 1) / keysPerBlock
}

func (t *pkeyTable) tenants() bool { return t != nil && slices.ContainsFunc(t.keys, isTenant) }

// workPKeys makes the P_Key table of a port known and right, one block at a
// time.
func (c *Core) workPKeys(p topo.PortID) {
	pt := &c.ports[p]
	blocks := c.keyBlocks(p)
	external := c.external(p)
	if blocks == 0 {
		if external && !c.nodes[pt.node].infoKnown {
			return
		}
		c.keysDone(p)
		return
	}
	if !external && pt.num != 0 && (!pt.seen() || c.peer(p) == topo.None) {
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
		pt.pkeys = c.members.unknownTable(blocks)
	}
	mayWrite := c.writing() && c.members.ready
	fresh := c.freshKeys(p) && (pt.num == 0 || pt.info.PortState <= ib.PortInit)
	if fresh && !mayWrite {
		return
	}
	for b, s := range pt.pkeys.blocks {
		if s == blockUnknown && !fresh && !c.mayStayUnread(p, b) {
			c.readKeys(p, b)
			return
		}
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
		c.markPort(clsInfo, p) // a tenant depends on the enforcement bits: read them back
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
		c.markPort(clsSet, p)
	}
}

func (c *Core) readKeys(p topo.PortID, block int) {
	pt := &c.ports[p]
	c.ask(ref{clsPKey, int32(p)}, pt.node, mad.MethodGet, mad.AttrPKeyTable, c.keyMod(p, block))
}

func (c *Core) keyMod(p topo.PortID, block int) uint32 {
	num := ib.PortNum(0)
	if c.external(p) {
		num = c.ports[p].num
	}
	return mad.PKeyTableMod(num, uint16(block))
}

// writeKeys writes the first block that differs from what is wanted now.
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
		if !c.external(p) && c.mustWait(p, b, want) {
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
		pt.pkeys = c.members.tableWith(pt.pkeys, b, have, blockUnknown)
		m := c.ask(ref{clsPKey, int32(p)}, pt.node, mad.MethodSet, mad.AttrPKeyTable, c.keyMod(p, b))
		c.encode(mad.Encode(m.Data(), &table))
		return true
	}
	return false
}

// plain reports the most frequent case: nothing but the default partition is
// wanted of a port, and that is what it holds.
func (c *Core) plain(p topo.PortID) bool { return c.ports[p].pkeys.plain() && c.onlyDefault(p) }

// onlyDefault reports that a port is to be a limited member of the default
// partition and nothing else, which needs no plan.
func (c *Core) onlyDefault(p topo.PortID) bool {
	h := p
	if c.external(p) {
		if h = c.peer(p); h == topo.None || !c.isEnd(h) || !c.canEnforce(p) {
			return false
		}
	}
	guid := c.guidOf(h)
	return guid != 0 && h != c.own() && len(c.members.byGUID[guid]) == 0
}

// blank reports a table without any key but, perhaps, that of the default
// partition in its first place.
func (t *pkeyTable) blank() bool {
	for i, k := range t.keys {
		if k != 0 && (i > 0 || k.Base() != ib.DefaultPKeyLimited) {
			return false
		}
	}
	return true
}

// plain reports a table that is known to hold the default partition alone.
func (t *pkeyTable) plain() bool {
	if t.keys[0] != ib.DefaultPKeyLimited {
		return false
	}
	for _, k := range t.keys[1:] {
		if k != 0 {
			return false
		}
	}
	return !slices.Contains(t.blocks, blockUnknown)
}

// gotPKeys takes one block.
func (c *Core) gotPKeys(p topo.PortID, r *request, m *mad.MAD, status mad.Status) {
	pt := &c.ports[p]
	var got mad.PKeyTable
	if status != mad.StatusOK || mad.Decode(m.Data(), &got) != nil {
		c.refused(r, status.String())
		return
	}
	b := int(r.mod & 0xFFFF)
	if pt.pkeys == nil || b >= len(pt.pkeys.blocks) {
		return
	}
	old := pt.pkeys
	state := blockProven
	if r.method == mad.MethodSet {
		state = blockTold
		if pt.prove {
			state = blockProve
		}
	}
	t := c.members.tableWith(old, b, got.PKey[:], state)
	changed := t != old && (!slices.Equal(old.keys, t.keys) || !slices.Equal(old.blocks, t.blocks))
	pt.pkeys = t
	c.viewDue = c.viewDue || changed
	sent := c.members.sent[p]
	delete(c.members.sent, p)
	if r.method == mad.MethodSet && got.PKey != sent {
		c.refused(r, "the table answered is not the one that was set")
		return
	}
	if r.audit && !slices.Equal(old.keys, t.keys) {
		c.disturb()
	}
	c.markPort(clsPKey, p)
	if peer := c.peer(p); peer != topo.None && changed {
		c.markPort(clsPKey, peer)
	}
	if changed {
		c.judgePort(p)
	}
}

// planFor plans the P_Keys of an end port on the present topology.
func (c *Core) planFor(h topo.PortID) partition.PortPlan {
	if c.members.plan == nil {
		c.members.plan = c.topo.Freeze()
	}
	rules := partition.Rules{SM: c.members.self[:0]}
	if own := c.own(); own != topo.None {
		c.members.self[0] = own
		rules.SM = c.members.self[:1]
	}
	if c.cfg.Enforcement == Accepted {
		rules.Enforcement = partition.EnforceCapacity
	}
	now := partition.Current{EndPort: c.ports[h].pkeys.table()}
	sp := c.peer(h)
	if sp != topo.None && c.external(sp) {
		now.Switch = c.ports[sp].pkeys.table()
	}
	wishes := c.members.roster.Of(c.guidOf(h))
	if sp != topo.None && len(wishes) > 0 && c.forgetsEnforcement(sp) {
		wishes = nil
	}
	return partition.PlanPort(c.members.plan, rules, h, wishes, now)
}

func (t *pkeyTable) table() partition.Table {
	if t == nil {
		return nil
	}
	return t.keys
}

// wantKeys gives the table a port should hold now. It is not yet the planned
// one while the other end of the cable has to come first.
func (c *Core) wantKeys(p topo.PortID) (partition.Table, bool) {
	if !c.external(p) {
		return c.wantEndKeys(p), true
	}
	peer := c.peer(p)
	if peer == topo.None || !c.isEnd(peer) {
		return c.wantIdleKeys(p), true
	}
	if c.guidOf(peer) == 0 {
		return nil, false
	}
	plan := c.planFor(peer)
	return plan.Switch, plan.SwitchPort == p
}

// wantIdleKeys is for a switch port with no host on it: it keeps the keys that
// are granted to the place, so that a reboot costs nothing, and loses others.
func (c *Core) wantIdleKeys(p topo.PortID) partition.Table {
	have := c.ports[p].pkeys.keys
	want := slices.Clone(have)
	for i, k := range want {
		if isTenant(k) && !c.members.granted(c.placeOf(p), k) {
			want[i] = 0
		}
	}
	return want
}

// wantEndKeys is the planned table of an end port, but for tenant keys whose
// turn it is not yet: a new one waits until the switch port was read back with
// it. For those that are to go see mustWait.
func (c *Core) wantEndKeys(p topo.PortID) partition.Table {
	pt := &c.ports[p]
	want := slices.Clone(c.planFor(p).EndPort)
	for len(want) < len(pt.pkeys.keys) {
		want = append(want, 0)
	}
	sp := c.peer(p)
	for i, have := range pt.pkeys.keys {
		if want[i] != have && isTenant(want[i]) && !c.switchHolds(sp, want[i]) {
			want[i] = 0
		}
	}
	return want
}

// mustWait reports that a block of an end port holds a key that is to go, and
// that its switch port was not yet read back without it. The block is then not
// written at all: to write it with the old key could give that key back to a
// port that has lost it meanwhile.
func (c *Core) mustWait(p topo.PortID, b int, want partition.Table) bool {
	sp := c.peer(p)
	for i := b * keysPerBlock; i < (b+1)*keysPerBlock; i++ {
		have := c.ports[p].pkeys.keys[i]
		if isTenant(have) && want[i] != have && !c.switchLacks(sp, have) {
			return true
		}
	}
	return false
}

func (c *Core) switchHolds(sp topo.PortID, k ib.PKey) bool {
	if sp == topo.None || !c.external(sp) || !c.enforces(sp) {
		return false
	}
	return c.ports[sp].pkeys.proves(k)
}

// switchLacks reports that a key is proven to be off the switch port, or that
// the switch has nothing to say.
func (c *Core) switchLacks(sp topo.PortID, k ib.PKey) bool {
	if sp == topo.None || !c.external(sp) || c.nodes[c.ports[sp].node].info.PartitionEnforcementCap == 0 {
		return true
	}
	t := c.ports[sp].pkeys
	if t == nil {
		return false
	}
	for i, o := range t.keys {
		if o.Base() == k.Base() && isTenant(k) {
			return o != k && o.IsFull() // held with another membership: replaced, not removed
		}
		if s := t.blocks[i/keysPerBlock]; s == blockUnknown || s == blockProve {
			return false
		}
	}
	return true
}
