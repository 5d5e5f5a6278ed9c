package bitset

import "slices"

// Replace returns what another set says of all numbers, or else of the given ones; nil for an empty set.
func (b Set) Replace(all bool, size int, given []int32, by Set) Set {
	if !all && !slices.ContainsFunc(given, func(n int32) bool { return b.Has(n) != by.Has(n) }) {
		return b
	}
	out := make(Set, (size+63)/64)
	if all {
		copy(out, by)
	} else {
		copy(out, b)
		for _, n := range given {
			if out[n/64] &^= 1 << (n % 64); by.Has(n) {
				out.Add(n)
			}
		}
	}
	if out.Count() == 0 {
		return nil
	}
	return out
}

// Other returns the numbers that are in one of two sets only.
func (b Set) Other(a Set) Set {
	out := make(Set, max(len(a), len(b)))
	copy(out, a)
	for i, w := range b {
		out[i] ^= w
	}
	return out
}
