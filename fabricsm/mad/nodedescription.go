package mad

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NodeDescription is the free text of a node (attribute 0x0010; IBTA volume
// 1, 14.2.5.2). The host sets it: use it neither for identity nor for policy.
type NodeDescription struct {
	NodeString [64]byte `mad:"0,8,text"` // UTF-8, padded with NUL
}

// MakeNodeDescription holds s, cut to 64 bytes at a character boundary.
func MakeNodeDescription(s string) (d NodeDescription) {
	if len(s) > len(d.NodeString) {
		s = s[:len(d.NodeString)]
		for s != "" && !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	copy(d.NodeString[:], s)
	return d
}

// String returns the text up to the first NUL. Unprintable characters are replaced by U+FFFD, so that a host cannot write
// to the terminal of an operator.
func (d NodeDescription) String() string { return printable(d.NodeString[:]) }

func printable(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, string(b))
}
