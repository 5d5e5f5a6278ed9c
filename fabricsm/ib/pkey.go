package ib

import "fmt"

// PKey is a 16-bit partition key: a 15-bit base value and, in bit 15, the
// membership (1 full, 0 limited). Base 0 is invalid and marks an empty table
// entry (IBTA volume 1, 10.9).
type PKey uint16

const (
	// DefaultPKeyLimited and DefaultPKeyFull are the two memberships of the
	// default partition, which carries management traffic.
	DefaultPKeyLimited PKey = 0x7FFF
	DefaultPKeyFull    PKey = 0xFFFF

	fullMember PKey = 0x8000
)

// ParsePKey reads 0x and 1 to 4 hexadecimal digits.
func ParsePKey(s string) (PKey, error) {
	v, err := parseHex(s, 16)
	if err != nil {
		return 0, fmt.Errorf("P_Key %q: %w", s, err)
	}
	return PKey(v), nil
}

// String returns 0x and 4 digits.
func (k PKey) String() string {
	var text [6]byte
	writeHex(text[:], uint64(k))
	return string(text[:])
}

// Base is the 15-bit partition number without the membership bit.
func (k PKey) Base() PKey { return k &^ fullMember }

// IsFull reports whether it is a full membership.
func (k PKey) IsFull() bool { return k&fullMember != 0 }

// Full and Limited return the same partition with the named membership.
func (k PKey) Full() PKey    { return k | fullMember }
func (k PKey) Limited() PKey { return k &^ fullMember }

// Valid reports whether k names a partition (its base is not 0).
func (k PKey) Valid() bool { return k.Base() != 0 }

// Matches reports whether two ports that hold k and o can talk: the same
// base, and at least one of them a full member.
func (k PKey) Matches(o PKey) bool {
	return k.Valid() && k.Base() == o.Base() && (k.IsFull() || o.IsFull())
}

// MarshalText implements encoding.TextMarshaler.
func (k PKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *PKey) UnmarshalText(b []byte) (err error) { *k, err = ParsePKey(string(b)); return err }
