package ib

import (
	"fmt"
	"strconv"
	"strings"
)

// GUID is a 64-bit EUI-64 identifier of a node, a port or a system image
// (IBTA volume 1, 4.1). The zero GUID means "none": no device may use it.
type GUID uint64

// ParseGUID reads "0x" followed by 1 to 16 hexadecimal digits, or four groups
// of four digits separated by colons as Linux sysfs prints them.
func ParseGUID(s string) (GUID, error) {
	if strings.Count(s, ":") == 3 && len(s) == 19 {
		v, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
		if err != nil || s[4] != ':' || s[9] != ':' || s[14] != ':' {
			return 0, fmt.Errorf("GUID %q: want xxxx:xxxx:xxxx:xxxx in hexadecimal", s)
		}
		return GUID(v), nil
	}
	v, err := parseHex(s, 64)
	if err != nil {
		return 0, fmt.Errorf("GUID %q: %w", s, err)
	}
	return GUID(v), nil
}

// String returns "0x" and 16 lower-case digits.
func (g GUID) String() string {
	text := g.text()
	return string(text[:])
}

// text returns what String does.
func (g GUID) text() (text [18]byte) {
	writeHex(text[:], uint64(g))
	return text
}

// writeHex fills text with "0x" and the last digits of v. Names of GUIDs are made by the hundred thousand when a service
// begins to lead a large fabric, and package fmt takes several times as long.
func writeHex(text []byte, v uint64) {
	const digits = "0123456789abcdef"
	text[0], text[1] = '0', 'x'
	for i := len(text) - 1; i > 1; i-- {
		text[i] = digits[v&0xF]
		v >>= 4
	}
}

// Valid reports whether g may identify a device: neither zero nor all ones.
func (g GUID) Valid() bool { return g != 0 && g != ^GUID(0) }

// MarshalText implements encoding.TextMarshaler.
func (g GUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (g *GUID) UnmarshalText(b []byte) (err error) { *g, err = ParseGUID(string(b)); return err }
