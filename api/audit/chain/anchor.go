package chain

import (
	"bufio"
	"bytes"
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
	Time    time.Time `json:"time"`
	Service string    `json:"service,omitempty"` // name of the instance that noted it
	Origin  string    `json:"origin,omitempty"`  // Hash of the first entry: says which installation
	Branch  uint64    `json:"branch,omitempty"`  // Head.Branch
	Seq     uint64    `json:"seq"`
	Hash    string    `json:"hash"`
	JWS     string    `json:"jws,omitempty"` // signature of all of the above, RFC 7515 with detached content
}

// Bounds of anchors that are read.
const (
	maxAnchorLine = 4096    // bytes
	maxAnchors    = 1 << 20 // from one file
	// MaxAnchorFile bounds a file of anchors, in bytes.
	MaxAnchorFile = 64 << 20
)

// Marker comes before an anchor in a line of a system log.
const Marker = "portcullis-anchor "

// cutOff ends a line that a write which was cut off has begun. No JSON object ends so.
const cutOff = '#'

// CutOff is what is written behind a line that has no end, before the next one.
const CutOff = string(cutOff) + "\n"

// Content returns what the signature is of: the anchor's JSON without it.
func (a Anchor) Content() ([]byte, error) {
	a.JWS = ""
	return json.Marshal(a)
}

// Line returns the anchor as a line of a file.
func (a Anchor) Line() ([]byte, error) {
	b, err := json.Marshal(a)
	return append(b, '\n'), err
}

// Later reports whether a is of a later branch than b, or further on in the same one.
func (a *Anchor) Later(b *Anchor) bool {
	return a.Branch > b.Branch || a.Branch == b.Branch && a.Seq > b.Seq
}

// ReadAnchors reads anchors, a JSON object on each line, or behind Marker in it that or the fields that Fields returns,
// each as NAME=VALUE, and returns them by Seq. Lines that a
// write which was cut off has begun are left out. The error names the first line that is no anchor; the others are
// returned with it.
func ReadAnchors(r io.Reader) ([]Anchor, error) {
	var out []Anchor
	var first error
	in := bufio.NewReaderSize(r, maxAnchorLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return Sorted(out), first
		case errors.Is(err, bufio.ErrBufferFull):
			first = cmp.Or(first, fmt.Errorf("line %d: longer than %d bytes", n, maxAnchorLine))
			if err := skipLine(in); err != nil {
				return Sorted(out), first
			}
			continue
		case err != nil:
			return Sorted(out), fmt.Errorf("line %d: %w", n, err)
		case n > maxAnchors:
			return Sorted(out), fmt.Errorf("more than %d lines: take the newest part of the file", maxAnchors)
		case bytes.HasSuffix(line, []byte(CutOff)):
			continue
		}
		a, ok := parseAnchor(line)
		if !ok {
			first = cmp.Or(first, fmt.Errorf("line %d: want a JSON object with seq from 1 and hash of 64 hexadecimal digits", n))
			continue
		}
		out = append(out, a)
	}
}

// skipLine reads to the end of a line that is too long.
func skipLine(in *bufio.Reader) error {
	for {
		if _, err := in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func parseAnchor(line []byte) (a Anchor, ok bool) {
	if line[0] != '{' {
		_, after, found := bytes.Cut(line, []byte(Marker))
		if !found {
			return a, false
		}
		line = after
	}
	if bytes.HasPrefix(line, []byte("{")) {
		ok = json.Unmarshal(line, &a) == nil
	} else {
		a, ok = parseFields(line)
	}
	if !ok {
		return a, false
	}
	sum, err := hex.DecodeString(a.Hash)
	return a, err == nil && a.Seq > 0 && len(sum) == 32
}

// Sorted sorts anchors by Seq, then by time, in place, and returns them.
func Sorted(list []Anchor) []Anchor {
	slices.SortFunc(list, func(a, b Anchor) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), a.Time.Compare(b.Time)) })
	return list
}

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
	list, err := ReadAnchors(io.LimitReader(f, MaxAnchorFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}
