package proof

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// keys is a set of packets, by what ports check: the P_Keys they carry, and whether raw packets, without a P_Key, are among
// them.
type keys struct {
	all  bool // every P_Key; list is nil then
	raw  bool
	list []ib.PKey // sorted
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

func (a keys) same(b keys) bool {
	return a.all == b.all && a.raw == b.raw && slices.Equal(a.list, b.list)
}

// rule is a comparison of the P_Key of a packet with an entry of a table; entries have a base other than 0.
type rule func(packet, entry ib.PKey) bool

func exact(packet, entry ib.PKey) bool { return packet == entry }
func base(packet, entry ib.PKey) bool  { return packet.Base() == entry.Base() }

// notAbove is the inbound rule of switches that respect membership.
func notAbove(packet, entry ib.PKey) bool {
	return base(packet, entry) && (entry.IsFull() || !packet.IsFull())
}

// passing returns the P_Keys that a table lets pass by a rule. Empty entries let nothing pass.
func passing(table []ib.PKey, r rule) keys {
	var out []ib.PKey
	for _, entry := range table {
		for _, packet := range []ib.PKey{entry.Limited(), entry.Full()} {
			if entry.Valid() && r(packet, entry) {
				out = append(out, packet)
			}
		}
	}
	slices.Sort(out)
	return keys{raw: true, list: slices.Compact(out)}
}

// bits is a set of small numbers.
type bits []uint64

func (b bits) has(n int32) bool { return len(b) > 0 && b[n/64]&(1<<(n%64)) != 0 }
func (b bits) set(n int32)      { b[n/64] |= 1 << (n % 64) }
