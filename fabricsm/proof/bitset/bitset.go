// Package bitset has sets of small numbers.
package bitset

import (
	"iter"
	"math/bits"
)

// Set is a set of numbers from 0 on. The nil Set is empty.
type Set []uint64

// Has reports whether a number is in the set.
func (b Set) Has(n int32) bool { return int(n/64) < len(b) && b[n/64]&(1<<(n%64)) != 0 }

// Add adds a number that is below the size of the set.
func (b Set) Add(n int32) { b[n/64] |= 1 << (n % 64) }

// Of returns the set of some numbers, for numbers below size.
func Of(size int, list ...int32) Set {
	b := make(Set, (size+63)/64)
	for _, n := range list {
		b.Add(n)
	}
	return b
}

// All returns the numbers in ascending order.
func (b Set) All() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i, w := range b {
			for ; w != 0; w &= w - 1 {
				if !yield(int32(64*i + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// Count returns how many numbers are in the set.
func (b Set) Count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}
