package chain

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Anchor is an entry of the audit log as it was noted outside of the store.
type Anchor struct {
	Time   time.Time `json:"time"`
	Origin string    `json:"origin,omitempty"` // Hash of the first entry: says which installation
	Seq    uint64    `json:"seq"`
	Hash   string    `json:"hash"`
}

// maxAnchorLine bounds a line of a file of anchors, in bytes.
const maxAnchorLine = 4096

// maxAnchors bounds the anchors that are read from one file.
const maxAnchors = 1 << 20

// ReadAnchors reads anchors, a JSON object on each line, and returns them by Seq. A last line without an end,
// which a write that was cut off leaves, is left out. The error names the line.
func ReadAnchors(r io.Reader) ([]Anchor, error) {
	var out []Anchor
	in := bufio.NewReaderSize(r, maxAnchorLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return Sorted(out), nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: longer than %d bytes, or not readable: %w", n, maxAnchorLine, err)
		}
		if n > maxAnchors {
			return nil, fmt.Errorf("more than %d lines: take the newest part of the file", maxAnchors)
		}
		var a Anchor
		sum, hashErr := []byte(nil), error(nil)
		if err = json.Unmarshal(line, &a); err == nil {
			sum, hashErr = hex.DecodeString(a.Hash)
		}
		if err != nil || hashErr != nil || a.Seq == 0 || len(sum) != 32 {
			return nil, fmt.Errorf("line %d: want a JSON object with seq from 1 and hash of 64 hexadecimal digits", n)
		}
		out = append(out, a)
	}
}

// Sorted sorts anchors by Seq, then by time, in place, and returns them.
func Sorted(list []Anchor) []Anchor {
	slices.SortFunc(list, func(a, b Anchor) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), a.Time.Compare(b.Time)) })
	return list
}

// Check compares anchors with a chain while it is verified. Anchors must be by Seq.
type Check struct {
	Anchors []Anchor
	met     int
}

// Add compares the anchors of an entry with it. Entries come in the order of the log.
func (k *Check) Add(e *Entry) error {
	for ; k.met < len(k.Anchors) && k.Anchors[k.met].Seq <= e.Seq; k.met++ {
		a := &k.Anchors[k.met]
		if a.Seq == e.Seq && a.Hash != e.Hash {
			return fmt.Errorf("audit entry %d has hash %.12s, and %.12s was anchored at %s: the log was rewritten, or the state was restored and went on from an older one",
				e.Seq, e.Hash, a.Hash, a.Time.Format(time.RFC3339))
		}
	}
	return nil
}

// End reports the anchors that are behind the end of the log.
func (k *Check) End(h Head) error {
	if k.met == len(k.Anchors) {
		return nil
	}
	last := &k.Anchors[len(k.Anchors)-1]
	return fmt.Errorf("audit entry %d was anchored at %s, and the log ends at entry %d: the state was rolled back, and what was decided since is gone",
		last.Seq, last.Time.Format(time.RFC3339), h.Seq)
}

// maxAnchorFile bounds a file of anchors, in bytes.
const maxAnchorFile = 64 << 20

// ReadAnchorFiles reads the anchors of all files named and returns them by Seq. The error
// names the file.
func ReadAnchorFiles(names []string) ([]Anchor, error) {
	var all []Anchor
	for _, name := range names {
		list, err := readAnchorFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return Sorted(all), nil
}

func readAnchorFile(name string) ([]Anchor, error) {
	f, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := ReadAnchors(io.LimitReader(f, maxAnchorFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}
