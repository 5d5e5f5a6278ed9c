// Package guid2lid reads and writes the file in which OpenSM keeps the LIDs of
// end ports across restarts: guid2lid, in its cache directory.
package guid2lid

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// MaxSize bounds a file: every LID owned by a port of its own, and room for
// comments.
const MaxSize = 8 << 20

// Entry says that an end port owns the LIDs First to Last. There are 2^LMC of
// them, and First is a multiple of their number.
type Entry struct {
	GUID        ib.GUID // port GUID, of a switch that of port 0
	First, Last ib.LID
}

// LMC returns the logarithm of the number of LIDs of a legal entry.
func (e *Entry) LMC() ib.LMC { return ib.LMC(bits.Len16(uint16(e.Last - e.First))) }

// New returns the entry of a port that owns 2^lmc LIDs from a base LID on.
func New(guid ib.GUID, base ib.LID, lmc ib.LMC) Entry {
	return Entry{GUID: guid, First: base, Last: base + 1<<lmc - 1}
}

// ErrTooBig means that a file is larger than MaxSize.
var ErrTooBig = errors.New("larger than any list of LIDs")

// Parse reads a file. Lines that are no entry, and entries that are illegal or
// contradict one before them, are left out and reported as "NAME:LINE: ...".
// The entries are in the order of the file.
func Parse(name string, data []byte) (entries []Entry, dropped []error, err error) {
	if len(data) > MaxSize {
		return nil, nil, fmt.Errorf("%s: %w", name, ErrTooBig)
	}
	owner := make([]ib.GUID, int(ib.MaxUnicastLID)+1)
	lines := make(map[ib.GUID]int)
	number := 0
	for line := range bytes.Lines(data) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		e, why := parseEntry(fields)
		if why == nil {
			why = take(&e, owner, lines)
		}
		if why != nil {
			dropped = append(dropped, fmt.Errorf("%s:%d: %w", name, number, why))
			continue
		}
		lines[e.GUID] = number
		entries = append(entries, e)
	}
	return entries, dropped, nil
}

func parseEntry(fields []string) (e Entry, err error) {
	if len(fields) != 3 {
		return e, errors.New("want a port GUID and its first and last LID")
	}
	if e.GUID, err = ib.ParseGUID(fields[0]); err != nil {
		return e, err
	}
	if e.First, err = parseLID(fields[1]); err != nil {
		return e, err
	}
	if e.Last, err = parseLID(fields[2]); err != nil {
		return e, err
	}
	return e, e.check()
}

func parseLID(s string) (ib.LID, error) {
	digits, ok := strings.CutPrefix(s, "0x")
	v, err := strconv.ParseUint(digits, 16, 16)
	if !ok || err != nil {
		return 0, fmt.Errorf("LID %q: want 0x and up to 4 hexadecimal digits", s)
	}
	return ib.LID(v), nil
}

// check reports what no port can have.
func (e *Entry) check() error {
	n := int(e.Last) - int(e.First) + 1
	switch {
	case !e.GUID.Valid():
		return fmt.Errorf("%v is no port GUID", e.GUID)
	case !e.First.IsUnicast() || !e.Last.IsUnicast() || n < 1:
		return fmt.Errorf("LIDs %v to %v of %v: want a range within %v to %v", e.First, e.Last, e.GUID, ib.MinUnicastLID, ib.MaxUnicastLID)
	case n > 128 || n&(n-1) != 0:
		return fmt.Errorf("LIDs %v to %v of %v: %d of them, want a power of two up to 128", e.First, e.Last, e.GUID, n)
	case int(e.First)%n != 0:
		return fmt.Errorf("LIDs %v to %v of %v: want a first one that is a multiple of %d", e.First, e.Last, e.GUID, n)
	default:
		return nil
	}
}

// take assigns the LIDs of an entry to its port, if they have no owner.
func take(e *Entry, owner []ib.GUID, lines map[ib.GUID]int) error {
	if at, twice := lines[e.GUID]; twice {
		return fmt.Errorf("port %v has LIDs in line %d already", e.GUID, at)
	}
	for l := e.First; l <= e.Last; l++ {
		if g := owner[l]; g != 0 {
			return fmt.Errorf("LID %v of %v belongs to %v, line %d", l, e.GUID, g, lines[g])
		}
	}
	for l := e.First; l <= e.Last; l++ {
		owner[l] = e.GUID
	}
	return nil
}

// Format writes a file as OpenSM does, by LID.
func Format(entries []Entry) []byte {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.GUID, b.GUID)) })
	var b bytes.Buffer
	for _, e := range sorted {
		fmt.Fprintf(&b, "0x%016x 0x%04x 0x%04x\n\n", uint64(e.GUID), uint16(e.First), uint16(e.Last))
	}
	return b.Bytes()
}
