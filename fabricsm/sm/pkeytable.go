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

// with returns the table with one block replaced.
func (t *pkeyTable) with(b int, keys []ib.PKey, state blockState) *pkeyTable {
	n := &pkeyTable{keys: slices.Clone(t.keys), blocks: slices.Clone(t.blocks)}
	copy(n.keys[b*keysPerBlock:], keys)
	n.blocks[b] = state
	return n
}

// is reports whether t equals o with one block replaced.
func (t *pkeyTable) is(o *pkeyTable, b int, keys []ib.PKey, state blockState) bool {
	lo, hi := b*keysPerBlock, (b+1)*keysPerBlock
	return len(t.blocks) == len(o.blocks) && t.blocks[b] == state && slices.Equal(t.keys[lo:hi], keys) &&
		slices.Equal(t.keys[:lo], o.keys[:lo]) && slices.Equal(t.keys[hi:], o.keys[hi:]) &&
		slices.Equal(t.blocks[:b], o.blocks[:b]) && slices.Equal(t.blocks[b+1:], o.blocks[b+1:])
}

// setKeys takes what is known of the P_Key table of a port.
func (c *Core) setKeys(p topo.PortID, t *pkeyTable) {
	if c.ports[p].pkeys != t {
		c.ports[p].pkeys = t
		c.shownKeys.Set(int32(p), t)
	}
}

// sharedTables is how many tables are remembered to be shared: most ports of a
// fabric hold the same.
const sharedTables = 8

// tableWith returns a table with one block replaced.
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

// unknownTable returns the table of a port whose P_Keys are not known.
func (m *members) unknownTable(blocks int) *pkeyTable {
	if m.unknown[blocks] == nil {
		m.unknown[blocks] = &pkeyTable{keys: make([]ib.PKey, blocks*keysPerBlock), blocks: make([]blockState, blocks)}
	}
	return m.unknown[blocks]
}

// doubted returns the table with its proven blocks marked as not proven now.
func (t *pkeyTable) doubted() *pkeyTable {
	n := &pkeyTable{keys: t.keys, blocks: slices.Clone(t.blocks)}
	for b, s := range n.blocks {
		if s == blockProven {
			n.blocks[b] = blockTold
		}
	}
	return n
}

// absent reports whether a partition is proven to be in no block.
func (t *pkeyTable) absent(k ib.PKey) bool {
	return t.proven() && !slices.ContainsFunc(t.keys, func(o ib.PKey) bool { return o.Base() == k.Base() })
}

// proves reports whether a key was read back in the table.
func (t *pkeyTable) proves(k ib.PKey) bool {
	if t == nil {
		return false
	}
	i := slices.Index(t.keys, k)
	return i >= 0 && t.blocks[i/keysPerBlock] == blockProven
}

func isTenant(k ib.PKey) bool { return k.Valid() && k.Base() != ib.DefaultPKeyLimited }

func (t *pkeyTable) tenants() bool { return t != nil && slices.ContainsFunc(t.keys, isTenant) }

// blank reports whether a table has no key except, perhaps, that of the default partition in its first place.
func (t *pkeyTable) blank() bool {
	for i, k := range t.keys {
		if k != 0 && (i > 0 || k.Base() != ib.DefaultPKeyLimited) {
			return false
		}
	}
	return true
}

// plain reports whether a table is known to hold the default partition alone.
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

func (t *pkeyTable) table() partition.Table {
	if t == nil {
		return nil
	}
	return t.keys
}
