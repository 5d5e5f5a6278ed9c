// Package keystest finds keys where they must not be. Tests plant keys that
// nothing else looks like, let the code under test do its work, and scan what
// came out of it, in every form in which a key could have come out.
package keystest

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Planted returns a key that is easily recognised and that every check accepts: the n-th of an endless list.
func Planted(n int) uint64 {
	return 0xC0FFEE5EC2E70000 ^ uint64(n+1)*0x9E3779B97F4A7C15
}

// Hex returns a key as the 16 digits, in upper case, that files of keys hold.
func Hex(key uint64) string { return fmt.Sprintf("%016X", key) }

// Scanner knows the forms of some secrets. Make one with New.
type Scanner struct{ forms []form }

// form is one way in which a secret could come out.
type form struct {
	text  []byte
	what  string
	lower bool // compare with the sink in lower case
}

// Leak is a place where a secret came out.
type Leak struct {
	Form string // in which form
	At   int    // byte of the sink
}

// New returns a scanner for keys of 64 bits.
func New(secrets ...uint64) *Scanner {
	s := &Scanner{}
	for i, v := range secrets {
		s.key(fmt.Sprintf("secret %d", i), v)
	}
	return s
}

// Bytes adds a long secret, such as a master: Find searches for every eight bytes of it. A shorter rest at the end is not
// searched for.
func (s *Scanner) Bytes(name string, secret []byte) {
	for i := 0; i+8 <= len(secret); i += 8 {
		s.key(fmt.Sprintf("%s, byte %d", name, i), binary.BigEndian.Uint64(secret[i:]))
	}
}

func (s *Scanner) add(what string, lower bool, text string) {
	s.forms = append(s.forms, form{[]byte(text), what, lower})
}

func (s *Scanner) key(name string, v uint64) {
	s.add(name+" in decimal", false, strconv.FormatUint(v, 10))
	s.add(name+" in signed decimal", false, strconv.FormatInt(int64(v), 10))
	s.add(name+" in octal", false, strconv.FormatUint(v, 8))
	s.add(name+" in binary", false, strconv.FormatUint(v, 2))
	s.add(name+" in hexadecimal", true, strconv.FormatUint(v, 16))
	be := binary.BigEndian.AppendUint64(nil, v)
	for order, b := range map[string][]byte{"": be, ", swapped": swapped(be, 8), ", words swapped": swapped(be, 4), ", halves swapped": swapped(be, 2)} {
		s.octets(name+order, b)
	}
}

// swapped turns each n bytes round.
func swapped(b []byte, n int) []byte {
	out := slices.Clone(b)
	for chunk := range slices.Chunk(out, n) {
		slices.Reverse(chunk)
	}
	return out
}

func (s *Scanner) octets(name string, b []byte) {
	s.add(name+" as bytes", false, string(b))
	s.add(name+" in hexadecimal", true, hex.EncodeToString(b))
	for _, sep := range []string{":", " ", "-", ", ", ","} {
		s.add(name+" in hexadecimal bytes", true, join(b, sep, "%02x"))
		s.add(name+" in Go syntax", true, join(b, sep, "0x%x"))
		s.add(name+" in hexadecimal bytes", true, join(b, sep, "0x%02x"))
		s.add(name+" in decimal bytes", false, join(b, sep, "%d"))
	}
	s.add(name+" in hexadecimal words", true, fmt.Sprintf("%x:%x:%x:%x", b[:2], b[2:4], b[4:6], b[6:]))
	s.add(name+" in hexadecimal words", true, fmt.Sprintf("%x %x", b[:4], b[4:]))
	s.add(name+" escaped", true, join(b, "", `\x%02x`))
	s.add(name+" in a URL", true, join(b, "", "%%%02x"))
	s.add(name+" quoted", false, strings.Trim(strconv.Quote(string(b)), `"`))
	for shift := range 5 {
		if shift < 3 {
			s.add(name+" in base64", false, inside(base64.RawStdEncoding.EncodeToString, b, shift, 6))
			s.add(name+" in base64", false, inside(base64.RawURLEncoding.EncodeToString, b, shift, 6))
		}
		s.add(name+" in base32", false, inside(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString, b, shift, 5))
	}
}

func join(b []byte, sep, verb string) string {
	parts := make([]string, len(b))
	for i, x := range b {
		parts[i] = fmt.Sprintf(verb, x)
	}
	return strings.Join(parts, sep)
}

// inside returns the digits that depend on b alone when it stands after shift other bytes and before others, in an encoding
// with the given bits a digit.
func inside(encode func([]byte) string, b []byte, shift, bits int) string {
	text := encode(append(make([]byte, shift), b...))
	return text[(shift*8+bits-1)/bits : (shift+len(b))*8/bits]
}

// Find returns the leaks in a sink, in the order of the sink.
func (s *Scanner) Find(sink []byte) []Leak {
	lower := bytes.ToLower(sink)
	var out []Leak
	for _, f := range s.forms {
		in := sink
		if f.lower {
			in = lower
		}
		if i := bytes.Index(in, f.text); i >= 0 {
			out = append(out, Leak{f.what, i})
		}
	}
	slices.SortFunc(out, func(a, b Leak) int { return a.At - b.At })
	return out
}
