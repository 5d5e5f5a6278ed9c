package ib

import "fmt"

// LID is a 16-bit local identifier. Zero means "not assigned".
type LID uint16

// Ranges of the LID space (IBTA volume 1, 4.1.3).
const (
	MinUnicastLID   LID = 0x0001
	MaxUnicastLID   LID = 0xBFFF
	MinMulticastLID LID = 0xC000
	MaxMulticastLID LID = 0xFFFE
	// PermissiveLID addresses the node at the other end of the link, and
	// marks a pure directed route.
	PermissiveLID LID = 0xFFFF
)

// ParseLID reads a decimal or 0x-hexadecimal LID, 0 to 65535.
func ParseLID(s string) (LID, error) {
	v, err := parseNumber(s, 16)
	if err != nil {
		return 0, fmt.Errorf("LID %q: %w", s, err)
	}
	return LID(v), nil
}

// String returns the decimal form, as infiniband-diags do.
func (l LID) String() string { return fmt.Sprintf("%d", uint16(l)) }

// IsUnicast reports whether l can be assigned to a port.
func (l LID) IsUnicast() bool { return l >= MinUnicastLID && l <= MaxUnicastLID }

// IsMulticast reports whether l names a multicast group.
func (l LID) IsMulticast() bool { return l >= MinMulticastLID && l <= MaxMulticastLID }

// MarshalText implements encoding.TextMarshaler.
func (l LID) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *LID) UnmarshalText(b []byte) (err error) { *l, err = ParseLID(string(b)); return err }

// LMC is a LID mask control: the port owns 2^LMC consecutive LIDs, 0 to 7.
type LMC uint8
