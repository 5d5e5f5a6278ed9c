package partition

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// BlockSize is the number of entries that one P_KeyTable attribute carries.
const BlockSize = 32

// Table is a P_Key table by index; 0 is an empty entry. Entries behind the
// last one are empty, so that a table needs no more room than its keys.
type Table []ib.PKey

// Index returns the index at which the table holds a key with exactly this membership,
// -1 if it does not.
func (t Table) Index(k ib.PKey) int { return slices.Index(t, k) }

// at returns an entry, also beyond the end.
func (t Table) at(i int) ib.PKey {
	if i < len(t) {
		return t[i]
	}
	return 0
}

// Block is one block of a table: entries 32*Num up to 32*Num+31.
type Block struct {
	Num   uint16
	PKeys [BlockSize]ib.PKey
}

// Blocks returns the blocks of want that differ from have, in order. have must be the whole table as it was read: entries
// that it lacks count as empty.
func Blocks(want, have Table) []Block {
	var out []Block
	for lo := 0; lo < max(len(want), len(have)); lo += BlockSize {
		b, differs := Block{Num: uint16(lo / BlockSize)}, false
		for i := range b.PKeys {
			b.PKeys[i] = want.at(lo + i)
			differs = differs || b.PKeys[i] != have.at(lo+i)
		}
		if differs {
			out = append(out, b)
		}
	}
	return out
}

// arrange puts the default key at index 0 and the others, sorted and of
// different partitions, behind it. A key whose partition is in the current
// table keeps that index, also when its membership changes. New keys go behind
// the last entry in use, then to entries that are empty, and only then to
// those that are being freed: a queue pair may still refer to them. There must
// be room for all.
func arrange(current Table, capacity int, def ib.PKey, keys []ib.PKey) Table {
	out := make(Table, capacity)
	out[0] = def
	placed := make([]bool, len(keys))
	lastUsed := 0
	for i := 1; i < min(len(current), capacity); i++ {
		if current[i] == 0 {
			continue
		}
		lastUsed = i
		if k := indexOfBase(keys, current[i]); k >= 0 && !placed[k] {
			out[i], placed[k] = keys[k], true
		}
	}
	free := entries{current: current, out: out, lastUsed: lastUsed, i: lastUsed}
	for k, key := range keys {
		if !placed[k] {
			out[free.next()] = key
		}
	}
	return trim(out)
}

// entries returns empty entries of a table one after the other, in the order of use.
type entries struct {
	current, out Table
	lastUsed     int
	i            int // the last one given
	round        uint8
}

// Rounds of entries: those behind the last one in use, those that are empty, and
// those that are being freed.
const (
	behindLast uint8 = iota
	unused
	freed
)

// next returns the next entry. There must be one.
func (e *entries) next() int {
	for {
		if e.i++; e.i >= len(e.out) {
			e.i, e.round = 1, e.round+1
		}
		var fits bool
		switch e.round {
		case behindLast:
			fits = e.i > e.lastUsed
		case unused:
			fits = e.i < e.lastUsed && e.current.at(e.i) == 0
		case freed:
			fits = e.i <= e.lastUsed && e.current.at(e.i) != 0
		default:
			panic("partition: more keys than entries")
		}
		if fits && e.out[e.i] == 0 {
			return e.i
		}
	}
}

func indexOfBase(keys []ib.PKey, k ib.PKey) int {
	return slices.IndexFunc(keys, func(o ib.PKey) bool { return o.Base() == k.Base() })
}

func trim(t Table) Table {
	n := len(t)
	for n > 0 && t[n-1] == 0 {
		n--
	}
	return t[:n:n]
}
