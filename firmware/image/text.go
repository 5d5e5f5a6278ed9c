package image

import (
	"bytes"
	"fmt"
	"strings"
)

// text reads a string that ends at the first zero byte or with its field. It writes bytes that are not printable ASCII, and
// the backslash, as \xNN: the maker of the image chose these bytes, and they reach terminals and logs.
func text(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	var s strings.Builder
	for _, c := range b {
		if c < ' ' || c > '~' || c == '\\' {
			fmt.Fprintf(&s, `\x%02x`, c)
		} else {
			s.WriteByte(c)
		}
	}
	return s.String()
}

// PSID names a board's configuration, such as "MT_0000000838". One that came
// out of an image may hold anything printable.
type PSID string

// maxPSID is the size of its field.
const maxPSID = 16

// ParsePSID reads what a person wrote: up to 16 letters, digits, "_" and "-".
func ParsePSID(s string) (PSID, error) {
	if s == "" || len(s) > maxPSID {
		return "", fmt.Errorf("PSID %q: want 1 to %d characters", s, maxPSID)
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '_' && c != '-' {
			return "", fmt.Errorf("PSID %q: want letters, digits, _ and - only", s)
		}
	}
	return PSID(s), nil
}

// Version is that of a firmware. The zero Version is none.
type Version struct{ Major, Minor, Sub uint16 }

// ParseVersion reads "22.47.1088".
func ParseVersion(s string) (Version, error) {
	var v Version
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return v, fmt.Errorf("version %q: want three numbers, such as 22.47.1088", s)
	}
	for i, to := range []*uint16{&v.Major, &v.Minor, &v.Sub} {
		n, err := parseUint16(parts[i])
		if err != nil {
			return Version{}, fmt.Errorf("version %q: want three numbers below 65536", s)
		}
		*to = n
	}
	return v, nil
}

func parseUint16(s string) (uint16, error) {
	n := uint32(0)
	if s == "" || len(s) > 5 {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q is not a number", s)
		}
		n = n*10 + uint32(c-'0')
	}
	if n > 0xFFFF {
		return 0, fmt.Errorf("%d is too large", n)
	}
	return uint16(n), nil
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Sub) }

// Compare is negative when v is older than w, and positive when it is newer.
func (v Version) Compare(w Version) int {
	for _, d := range []int{int(v.Major) - int(w.Major), int(v.Minor) - int(w.Minor), int(v.Sub) - int(w.Sub)} {
		if d != 0 {
			return d
		}
	}
	return 0
}

// MarshalText implements encoding.TextMarshaler.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *Version) UnmarshalText(b []byte) (err error) {
	*v, err = ParseVersion(string(b))
	return err
}
