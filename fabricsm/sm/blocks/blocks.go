// Package blocks holds sets of block numbers, of tables that are read and written block by block.
package blocks

import "math/bits"

// Set is a set of block numbers. The zero Set is empty.
type Set []uint64

// Add adds a number.
func (s *Set) Add(b int) {
	for b/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[b/64] |= 1 << (b % 64)
}

// Remove removes a number.
func (s Set) Remove(b int) {
	if b/64 < len(s) {
		s[b/64] &^= 1 << (b % 64)
	}
}

// Has reports whether a number is a member.
func (s Set) Has(b int) bool { return b/64 < len(s) && s[b/64]&(1<<(b%64)) != 0 }

// Excuses reports whether the answer to a Set of a block is accepted, for a set of those that were not kept once. A switch
// has to answer with the block that it was given, which need not be the one that is wanted by now. A block that was not kept
// is written once more before it counts as refused.
func (s *Set) Excuses(b int, kept bool) bool {
	excused := kept || !s.Has(b)
	if excused && !kept {
		s.Add(b)
	} else {
		s.Remove(b)
	}
	return excused
}

// First returns the lowest member that is in none of some sets, -1 for none.
func (s Set) First(except ...Set) int {
	for i, w := range s {
		for _, x := range except {
			if i < len(x) {
				w &^= x[i]
			}
		}
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Last returns the highest member, -1 without one.
func (s Set) Last() int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] != 0 {
			return i*64 + bits.Len64(s[i]) - 1
		}
	}
	return -1
}

// IsEmpty reports whether the set has no member.
func (s Set) IsEmpty() bool { return s.First() < 0 }

// Len returns how many members the set has.
func (s Set) Len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
