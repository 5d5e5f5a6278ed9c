package pkeys

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/members"
)

const perBlock = mad.PKeysPerBlock

// Table is what is known of a P_Key table. It is immutable: views share it. A nil Table stands for one of which nothing was
// read or written.
type Table struct {
	keys   []ib.PKey    // whole blocks
	blocks []blockState // by block
}

type blockState uint8

const (
	unknown blockState = iota
	told               // from the answer to a Set
	toProve            // the same, and tenants depend on it: to be read back
	proven             // from a Get
)

// NewTable returns a table that was read and holds keys.
func NewTable(keys []ib.PKey) *Table {
	blocks := (len(keys) + perBlock - 1) / perBlock
	t := emptyTable(blocks)
	copy(t.keys, keys)
	for b := range t.blocks {
		t.blocks[b] = proven
	}
	return t
}

// emptyTable returns the table of a port whose P_Keys are not known.
func emptyTable(blocks int) *Table {
	return &Table{keys: make([]ib.PKey, blocks*perBlock), blocks: make([]blockState, blocks)}
}

// Keys returns the entries as they are known, empty ones and all. The caller must not write to them.
func (t *Table) Keys() partition.Table {
	if t == nil {
		return nil
	}
	return t.keys
}

// Blocks returns the number of blocks.
func (t *Table) Blocks() int {
	if t == nil {
		return 0
	}
	return len(t.blocks)
}

// Block returns a block, nil if it was neither read nor written. The caller must not write to it.
func (t *Table) Block(b int) []ib.PKey {
	if t == nil || b < 0 || b >= len(t.blocks) || t.blocks[b] == unknown {
		return nil
	}
	return t.keys[b*perBlock:][:perBlock]
}

// IsProven reports whether every block was read with a Get since it was last written.
func (t *Table) IsProven() bool {
	for _, s := range t.blocks {
		if s != proven {
			return false
		}
	}
	return true
}

// IsKnown reports whether every block was read or written.
func (t *Table) IsKnown() bool { return t != nil && !slices.Contains(t.blocks, unknown) }

// with returns the table with one block replaced.
func (t *Table) with(b int, keys []ib.PKey, state blockState) *Table {
	n := &Table{keys: slices.Clone(t.keys), blocks: slices.Clone(t.blocks)}
	copy(n.keys[b*perBlock:], keys)
	n.blocks[b] = state
	return n
}

// is reports whether t equals o with one block replaced.
func (t *Table) is(o *Table, b int, keys []ib.PKey, state blockState) bool {
	lo, hi := b*perBlock, (b+1)*perBlock
	return len(t.blocks) == len(o.blocks) && t.blocks[b] == state && slices.Equal(t.keys[lo:hi], keys) &&
		slices.Equal(t.keys[:lo], o.keys[:lo]) && slices.Equal(t.keys[hi:], o.keys[hi:]) &&
		slices.Equal(t.blocks[:b], o.blocks[:b]) && slices.Equal(t.blocks[b+1:], o.blocks[b+1:])
}

// equals reports whether the same is known of both tables.
func (t *Table) equals(o *Table) bool {
	return t == o || slices.Equal(t.keys, o.keys) && slices.Equal(t.blocks, o.blocks)
}

// doubted returns the table with its proven blocks marked as not proven now.
func (t *Table) doubted() *Table {
	n := &Table{keys: t.keys, blocks: slices.Clone(t.blocks)}
	for b, s := range n.blocks {
		if s == proven {
			n.blocks[b] = told
		}
	}
	return n
}

// lacks reports whether a partition is proven to be in no block.
func (t *Table) lacks(k ib.PKey) bool {
	return t.IsProven() && !slices.ContainsFunc(t.keys, func(o ib.PKey) bool { return o.Base() == k.Base() })
}

// proves reports whether a key was read back in the table.
func (t *Table) proves(k ib.PKey) bool {
	if t == nil {
		return false
	}
	i := slices.Index(t.keys, k)
	return i >= 0 && t.blocks[i/perBlock] == proven
}

func (t *Table) hasTenants() bool { return t != nil && slices.ContainsFunc(t.keys, members.IsTenant) }

// isBlank reports whether a table has no key except, perhaps, that of the default partition in its first place.
func (t *Table) isBlank() bool {
	for i, k := range t.keys {
		if k != 0 && (i > 0 || k.Base() != ib.DefaultPKeyLimited) {
			return false
		}
	}
	return true
}

// isPlain reports whether a table is known to hold the default partition alone.
func (t *Table) isPlain() bool {
	if t.keys[0] != ib.DefaultPKeyLimited {
		return false
	}
	for _, k := range t.keys[1:] {
		if k != 0 {
			return false
		}
	}
	return !slices.Contains(t.blocks, unknown)
}
