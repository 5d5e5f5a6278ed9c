package image

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// UUID names a key. The zero UUID is none.
type UUID [16]byte

// ParseUUID reads "c0ffee00-1122-3344-5566-778899aabbcc".
func ParseUUID(s string) (UUID, error) {
	var u UUID
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(u) || len(s) != 36 {
		return u, fmt.Errorf("UUID %q: want the form c0ffee00-1122-3344-5566-778899aabbcc", s)
	}
	copy(u[:], b)
	if u.String() != strings.ToLower(s) {
		return UUID{}, fmt.Errorf("UUID %q: want the form c0ffee00-1122-3344-5566-778899aabbcc", s)
	}
	return u, nil
}

func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// IsZero reports whether u names no key.
func (u UUID) IsZero() bool { return u == UUID{} }

// Development reports whether u has the form of the vendor's development keys:
// something in the first ten bytes and nothing in the last six.
func (u UUID) Development() bool {
	return !u.IsZero() && [6]byte(u[10:]) == [6]byte{}
}

// MarshalText implements encoding.TextMarshaler.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *UUID) UnmarshalText(b []byte) (err error) {
	*u, err = ParseUUID(string(b))
	return err
}
