package nvconfig

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// UUID names a key pair: 16 bytes, in the order of its text. The zero UUID means
// "none".
type UUID [16]byte

// ParseUUID reads 32 hexadecimal digits, in groups of 8-4-4-4-12 or in one.
func ParseUUID(s string) (u UUID, err error) {
	digits := s
	if len(s) == 36 {
		for _, i := range []int{8, 13, 18, 23} {
			if s[i] != '-' {
				return UUID{}, fmt.Errorf("UUID %q: want 8-4-4-4-12 hexadecimal digits", clip(s))
			}
		}
		digits = strings.ReplaceAll(s, "-", "")
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != len(u) {
		return UUID{}, fmt.Errorf("UUID %q: want 8-4-4-4-12 hexadecimal digits", clip(s))
	}
	return UUID(b), nil
}

// String returns 8-4-4-4-12 lower-case digits.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// IsZero reports "none".
func (u UUID) IsZero() bool { return u == UUID{} }

// MarshalText implements encoding.TextMarshaler.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *UUID) UnmarshalText(b []byte) (err error) { *u, err = ParseUUID(string(b)); return err }
