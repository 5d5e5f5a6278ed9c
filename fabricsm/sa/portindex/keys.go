package portindex

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
)

// keySet is a set of P_Keys, each partition once. It is immutable but for refs, and
// ports with equal ones share it.
type keySet struct {
	keys  []ib.PKey
	dir   [64]uint8 // by the upper 6 bits of a base: its page, 0 is empty
	pages []keyPage

	refs int // how many end ports have it; of the maker
}

// keyPage holds 512 partitions, a bit each.
type keyPage struct{ any, full [8]uint64 }

// newKeySet makes a set of P_Keys in the order of EndPort.PKeys.
func newKeySet(keys []ib.PKey) *keySet {
	s := &keySet{keys: keys, pages: make([]keyPage, 1)}
	for _, k := range keys {
		base := k.Base()
		if s.dir[base>>9] == 0 {
			s.dir[base>>9] = uint8(len(s.pages))
			s.pages = append(s.pages, keyPage{})
		}
		p := &s.pages[s.dir[base>>9]]
		p.any[base>>6&7] |= 1 << (base & 63)
		if k.IsFull() {
			p.full[base>>6&7] |= 1 << (base & 63)
		}
	}
	return s
}

// match reports whether a key in the set matches k. It takes the same steps for every set.
func (s *keySet) match(k ib.PKey) bool {
	base := k.Base()
	p := &s.pages[s.dir[base>>9]]
	w := &p.full
	if k.IsFull() {
		w = &p.any
	}
	return w[base>>6&7]&(1<<(base&63)) != 0
}

// Matches reports whether an end port has a P_Key that can talk with k.
func (e *EndPort) Matches(k ib.PKey) bool {
	if e.keys != nil {
		return e.keys.match(k)
	}
	return slices.ContainsFunc(e.PKeys, k.Matches)
}

// Common returns the first P_Key that two end ports can communicate with, as the first port has it. They share its
// partition, and at least one is a full member.
func Common(x, y *EndPort) (ib.PKey, bool) {
	for _, k := range x.PKeys {
		if y.Matches(k) {
			return k, true
		}
	}
	return 0, false
}

// Sees reports whether an end port may know of another: it is the same, or they can
// talk. It looks at all P_Keys of the first if they cannot; with decoy it does so in
// any case.
func Sees(x, y *EndPort, decoy bool) bool {
	sees, _ := Looks(x, y, decoy)
	return sees
}

// Looks is Sees, and also returns how many P_Keys were looked at.
func Looks(x, y *EndPort, decoy bool) (sees bool, keys int) {
	sees = x.Port == y.Port
	for _, k := range x.PKeys {
		keys++
		if sees = y.Matches(k) || sees; sees && !decoy {
			break
		}
	}
	return sees, keys
}

// inOrder sorts P_Keys as EndPort.PKeys has them and leaves each partition once, full
// membership if there is one.
func inOrder(keys []ib.PKey) []ib.PKey {
	slices.SortFunc(keys, func(a, b ib.PKey) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b, a))
	})
	return slices.CompactFunc(keys, func(a, b ib.PKey) bool { return a.Base() == b.Base() })
}

// rank orders P_Keys so that tenants get their own partition before the default one.
func rank(k ib.PKey) int {
	if k.Base() == ib.DefaultPKeyLimited {
		return 1 << 16
	}
	return int(k.Base())
}

// interned finds sets again. It belongs to the maker.
type interned map[uint64][]*keySet

// of returns the set of P_Keys in order. The keys are copied if the set is new.
func (in interned) of(keys []ib.PKey) *keySet {
	h := hashKeys(keys)
	for _, s := range in[h] {
		if slices.Equal(s.keys, keys) {
			s.refs++
			return s
		}
	}
	s := newKeySet(slices.Clone(keys))
	s.refs = 1
	in[h] = append(in[h], s)
	return s
}

// drop removes a set that no end port has any more.
func (in interned) drop(s *keySet) {
	if s.refs--; s.refs > 0 {
		return
	}
	h := hashKeys(s.keys)
	if in[h] = slices.DeleteFunc(in[h], func(o *keySet) bool { return o == s }); len(in[h]) == 0 {
		delete(in, h)
	}
}

func hashKeys(keys []ib.PKey) uint64 {
	h := uint64(len(keys))
	for _, k := range keys {
		h = mix(h ^ uint64(k))
	}
	return h
}

// mix spreads bits over the whole word.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}
