// Package label is the labels of objects and the selectors that choose objects by them, in the syntax of Kubernetes.
//
// Labels are for finding objects. They grant nothing, and no guard reads them.
package label

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of the labels of one object.
const (
	Most      = 32       // labels
	MostBytes = 4 << 10  // of all keys and values together
	MostPatch = 2 * Most // members of a patch: each label that is there is removed, and as many are set

	maxName   = 63 // characters of a value, and of a key without its prefix
	maxPrefix = 253
)

// Set is the labels of an object: values by key.
type Set map[string]string

// Check returns an error unless the labels are well formed and within the bounds of an object.
func (s Set) Check() error {
	if len(s) > Most {
		return fmt.Errorf("%d labels: an object has %d at most", len(s), Most)
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if err := CheckKey(key); err != nil {
			return err
		}
		if err := CheckValue(s[key]); err != nil {
			return fmt.Errorf("label %s: %w", key, err)
		}
		size += len(key) + len(s[key])
	}
	if size > MostBytes {
		return fmt.Errorf("labels of %d bytes: keys and values of an object have %d together at most", size, MostBytes)
	}
	return nil
}

// String returns the labels as "a=b,c=d", sorted by key.
func (s Set) String() string {
	parts := make([]string, 0, len(s))
	for _, key := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, key+"="+s[key])
	}
	return strings.Join(parts, ",")
}

// Patch is a JSON merge patch (RFC 7396) of labels: a value sets the label of its key, nil removes it.
type Patch map[string]*string

// Apply returns the labels with the patch applied. The error says what is malformed, or which bound they would pass.
func (p Patch) Apply(s Set) (Set, error) {
	if len(p) > MostPatch {
		return nil, fmt.Errorf("a patch of %d labels: it has %d at most", len(p), MostPatch)
	}
	out := maps.Clone(s)
	if out == nil {
		out = Set{}
	}
	for _, key := range slices.Sorted(maps.Keys(p)) {
		value := p[key]
		if value != nil {
			out[key] = *value
			continue
		}
		if err := CheckKey(key); err != nil {
			return nil, err
		}
		delete(out, key)
	}
	return out, out.Check()
}

// CheckKey returns an error unless key is one of a label: NAME or PREFIX/NAME. A name has 1 to 63 letters, digits, "-", "_" and
// ".", and begins and ends with a letter or digit. A prefix is a DNS name of up to 253 characters.
func CheckKey(key string) error {
	name := key
	if prefix, rest, has := strings.Cut(key, "/"); has {
		if !dnsName(prefix) {
			return fmt.Errorf("label key %s: its prefix is no DNS name of lower-case letters, digits, \"-\" and \".\", of 1 to %d characters", quoted(key), maxPrefix)
		}
		name = rest
	}
	if name == "" || !word(name) {
		return fmt.Errorf("label key %s: want [PREFIX/]NAME, with a name of 1 to %d letters, digits, \"-\", \"_\" and \".\" that begins and ends with a letter or digit", quoted(key), maxName)
	}
	return nil
}

// CheckValue returns an error unless value is one of a label: nothing, or as a name.
func CheckValue(value string) error {
	if value == "" || word(value) {
		return nil
	}
	return fmt.Errorf("value %s: want at most %d letters, digits, \"-\", \"_\" and \".\" that begin and end with a letter or digit", quoted(value), maxName)
}

// quoted returns a part of s that a message can have, in quotes.
func quoted(s string) string {
	const shown = 64
	if len(s) > shown {
		return fmt.Sprintf("%q...", s[:shown])
	}
	return fmt.Sprintf("%q", s)
}

func alphanumeric(c byte) bool { return lowerOrDigit(c) || c >= 'A' && c <= 'Z' }

func lowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// word reports whether s, which is not empty, is a name or value.
func word(s string) bool {
	if len(s) > maxName || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// dnsName reports whether s is a DNS name in lower case (RFC 1123).
func dnsName(s string) bool {
	if len(s) > maxPrefix {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || !lowerOrDigit(part[0]) || !lowerOrDigit(part[len(part)-1]) {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !lowerOrDigit(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

// Digest names these labels, and no others: 16 hexadecimal digits.
func (s Set) Digest() string { return digest(s.String()) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
