package ib

import (
	"fmt"
	"strings"
)

// PKeyRange is a range of partitions, both ends in it. Membership bits are clear.
type PKeyRange struct{ First, Last PKey }

// ParsePKeyRange reads "0x0100-0x01ff", or one P_Key. It rejects membership bits, the default partition and 0.
func ParsePKeyRange(s string) (r PKeyRange, err error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	for _, end := range []struct {
		text string
		key  *PKey
	}{{first, &r.First}, {last, &r.Last}} {
		if *end.key, err = ParsePKey(end.text); err != nil {
			return PKeyRange{}, fmt.Errorf("P_Key range %q: %w", s, err)
		}
	}
	if r.First == 0 || r.Last >= DefaultPKeyLimited || r.First > r.Last {
		return PKeyRange{}, fmt.Errorf("P_Key range %q: want FIRST-LAST between 0x0001 and 0x7ffe", s)
	}
	return r, nil
}

// Contains reports whether the range has the partition of k, with either membership.
func (r PKeyRange) Contains(k PKey) bool { return r.First <= k.Base() && k.Base() <= r.Last }

// String returns the form that ParsePKeyRange reads.
func (r PKeyRange) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}
