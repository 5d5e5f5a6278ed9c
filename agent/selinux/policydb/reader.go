package policydb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

var errShort = errors.New("the policy ends in the middle of something")

// reader takes values off a policy. Its first error stays, and every value after it
// is zero, so that loops over counts end.
type reader struct {
	data    []byte
	at      int
	version uint32
	mls     bool
	err     error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.at, fmt.Errorf(format, args...))
	}
}

func (r *reader) bytes(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.data)-r.at) {
		r.fail("%w", errShort)
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.data[r.at-n : r.at]
}

func (r *reader) u16() uint16 {
	if b := r.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// skip passes over n words of 32 bits.
func (r *reader) skip(n int) { r.bytes(4 * n) }

// text takes a string of n bytes; a policy holds none that is longer than a page.
func (r *reader) text(n uint32) string {
	if n > 4096 {
		r.fail("a name of %d bytes", n)
		return ""
	}
	return string(r.bytes(int(n)))
}

// count takes how many elements follow. Each has a byte at least.
func (r *reader) count() int {
	n := r.u32()
	if r.err == nil && int64(n) > int64(len(r.data)-r.at) {
		r.fail("%d elements: %w", n, errShort)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

// each takes a count and calls f as often, unless an error ends it.
func (r *reader) each(f func()) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		f()
	}
}

// maxBit bounds the bits of a set: more types or categories no policy has.
const maxBit = 1 << 20

// set is the bits of an extensible bitmap, the least first.
type set []uint32

func (s set) has(bit uint32) bool {
	for _, b := range s {
		if b == bit {
			return true
		}
	}
	return false
}

// bitmap takes an extensible bitmap: unit, highest bit, count of nodes, and 64 bits
// a node.
func (r *reader) bitmap() set {
	unit, high := r.u32(), r.u32()
	switch {
	case r.err == nil && unit != 64:
		r.fail("a bitmap in units of %d bits, want 64", unit)
	case high > maxBit:
		r.fail("a bitmap of %d bits", high)
	}
	var s set
	next := uint32(0)
	r.each(func() {
		start, low, up := r.u32(), r.u32(), r.u32()
		if r.err == nil && (start%64 != 0 || start < next || start > maxBit) {
			r.fail("a bitmap's node begins at bit %d", start)
			return
		}
		next = start + 64
		for word := uint64(up)<<32 | uint64(low); word != 0; word &= word - 1 {
			s = append(s, start+uint32(bits.TrailingZeros64(word)))
		}
	})
	return s
}

// Versions of policies and the features that came with them.
const (
	versionLabels          = 31 // labels for InfiniBand
	versionFileTransitions = 33 // in a shorter form
	versionNewest          = 34 // extended rules under conditions
)

// skipLevel passes over a sensitivity and its categories.
func (r *reader) skipLevel() {
	r.skip(1)
	r.bitmap()
}

// levels takes a range, one or two sensitivities and then the categories of each, and
// returns its low level.
func (r *reader) levels() (low level) {
	n := r.u32()
	if r.err == nil && (n < 1 || n > 2) {
		r.fail("a range of %d levels", n)
		return low
	}
	low.sensitivity = r.u32()
	if n == 2 {
		r.skip(1)
	}
	low.categories = r.bitmap()
	if n == 2 {
		r.bitmap()
	}
	return low
}

// label takes a security context: user, role, type and range.
func (r *reader) label() (kind uint32, l level) {
	r.skip(2)
	kind = r.u32()
	if r.mls {
		l = r.levels()
	}
	return kind, l
}

type level struct {
	sensitivity uint32
	categories  set
}

func (a level) equal(b level) bool { return a.dominates(b) && b.dominates(a) }

func (a level) dominates(b level) bool {
	if a.sensitivity < b.sensitivity {
		return false
	}
	for _, c := range b.categories {
		if !a.categories.has(c) {
			return false
		}
	}
	return true
}
