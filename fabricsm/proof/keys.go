package proof

import (
	"encoding/binary"
	"slices"

	"portcullis/fabricsm/ib"
)

// keys is a set of packets, by what ports check: the P_Keys they carry, and whether raw packets, without a P_Key, are among
// them.
type keys struct {
	all  bool // every P_Key; list is nil then
	raw  bool
	list []ib.PKey // sorted; sets share it, so nothing of it changes
}

var everything = keys{all: true, raw: true}

func (a keys) empty() bool { return !a.all && !a.raw && len(a.list) == 0 }

func (a keys) has(k ib.PKey) bool {
	if a.all {
		return true
	}
	_, found := slices.BinarySearch(a.list, k)
	return found
}

// and returns the intersection.
func (a keys) and(b keys) keys {
	raw := a.raw && b.raw
	switch {
	case a.all && b.all:
		return keys{all: true, raw: raw}
	case a.all:
		return keys{raw: raw, list: b.list}
	case b.all:
		return keys{raw: raw, list: a.list}
	}
	if !slices.ContainsFunc(a.list, func(k ib.PKey) bool { return !b.has(k) }) {
		return keys{raw: raw, list: a.list}
	}
	out := keys{raw: raw}
	for _, k := range a.list {
		if b.has(k) {
			out.list = append(out.list, k)
		}
	}
	return out
}

// or returns the union.
func (a keys) or(b keys) keys {
	out := keys{all: a.all || b.all, raw: a.raw || b.raw}
	if !out.all {
		out.list = append(slices.Clone(a.list), b.list...)
		slices.Sort(out.list)
		out.list = slices.Compact(out.list)
	}
	return out
}

// meets reports whether two sets have a packet in common.
func (a keys) meets(b keys) bool {
	switch {
	case a.raw && b.raw || a.all && b.all:
		return true
	case a.all:
		return len(b.list) > 0
	case b.all:
		return len(a.list) > 0
	}
	return slices.ContainsFunc(a.list, b.has)
}

func (a keys) same(b keys) bool {
	return a.all == b.all && a.raw == b.raw && slices.Equal(a.list, b.list)
}

// rule is a comparison of the P_Key of a packet with an entry of a table; entries have a base other than 0.
type rule uint8

const (
	exact    rule = iota
	matching      // same base, one of the two full
	base
	notAbove // the inbound rule of switches that respect membership
)

func (r rule) passes(packet, entry ib.PKey) bool {
	switch same := packet.Base() == entry.Base(); r {
	case exact:
		return packet == entry
	case matching:
		return packet.Matches(entry)
	case notAbove:
		return same && (entry.IsFull() || !packet.IsFull())
	default:
		return same
	}
}

// passing returns the P_Keys that a table lets pass by a rule. Empty entries let nothing pass.
func passing(table []ib.PKey, r rule) keys {
	var out []ib.PKey
	for _, entry := range table {
		for _, packet := range [...]ib.PKey{entry.Limited(), entry.Full()} {
			if entry.Valid() && r.passes(packet, entry) {
				out = append(out, packet)
			}
		}
	}
	slices.Sort(out)
	return keys{raw: true, list: slices.Compact(out)}
}

// memo has the results of passing by rule and table: most ports have the same table as others. It is full once a proof is made: then several
// may use it at the same time.
type memo struct {
	by   map[string]keys
	full bool
}

func (m *memo) passing(table []ib.PKey, r rule) keys {
	var space [256]byte
	name := append(space[:0], byte(r))
	for _, entry := range table {
		name = binary.LittleEndian.AppendUint16(name, uint16(entry))
	}
	out, ok := m.by[string(name)]
	if !ok {
		if out = passing(table, r); !m.full {
			m.by[string(name)] = out
		}
	}
	return out
}
