package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode returns the canonical bytes of s, or every reason why s has none.
func (s *Statement) Encode() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.marshal()
}

func (s *Statement) marshal() ([]byte, error) {
	c := *s
	c.CollectedAt = c.CollectedAt.UTC()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// ParseStatement reads a statement. It accepts only the canonical bytes: parsing and encoding again must result in b. So
// there is no room for duplicate keys, other letter case, white space, other number forms or trailing data.
func ParseStatement(b []byte) (*Statement, error) {
	if len(b) > MaxStatement {
		return nil, fmt.Errorf("statement of %d bytes, at most %d are read", len(b), MaxStatement)
	}
	if err := checkShape(b); err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	s := new(Statement)
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	again, err := s.marshal()
	if err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	if i := firstDifference(again, b); i >= 0 {
		return nil, fmt.Errorf("statement: not canonical from byte %d on: got %q, want %q", i, window(b, i), window(again, i))
	}
	return s, nil
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

func window(b []byte, from int) string { return string(b[from:min(len(b), from+16)]) }

func clip(s string) string { return s[:min(len(s), 64)] }

// Bounds of a statement's JSON, looked at before any of it is kept: a statement
// of its greatest size could otherwise ask for hundreds of times that memory.
const (
	maxDepth    = 8
	maxElements = 512 // of one list
)

var errShape = fmt.Errorf("nested deeper than %d or a list of more than %d", maxDepth, maxElements)

// checkShape walks the JSON without keeping it.
func checkShape(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	var counts []int // values seen at each depth
	for {
		t, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if d, ok := t.(json.Delim); ok && (d == ']' || d == '}') {
			counts = counts[:len(counts)-1]
			continue
		}
		if n := len(counts); n > 0 {
			if counts[n-1]++; counts[n-1] > maxElements {
				return errShape
			}
		}
		if _, opens := t.(json.Delim); opens {
			if counts = append(counts, 0); len(counts) > maxDepth {
				return errShape
			}
		}
	}
}
