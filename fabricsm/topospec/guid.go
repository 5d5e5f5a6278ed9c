package topospec

import (
	"fmt"
	"math/bits"

	"portcullis/fabricsm/ib"
)

// ParseGUID reads a GUID of a specification: 0x and exactly 16 hexadecimal
// digits, of a value that a device may have. A shorter one is a typing error
// often enough not to be guessed at.
func ParseGUID(s string) (ib.GUID, error) {
	if len(s) != 18 {
		return 0, fmt.Errorf("GUID %.40q: want 0x and 16 hexadecimal digits", s)
	}
	g, err := ib.ParseGUID(s)
	if err != nil {
		return 0, fmt.Errorf("GUID %.40q: want 0x and 16 hexadecimal digits", s)
	}
	if why := Malformed(g); why != "" {
		return 0, fmt.Errorf("GUID %v %s: no device has it; read the label or firmware again", g, why)
	}
	return g, nil
}

// groupBit marks an EUI-64 that names a group of devices.
const groupBit = 1 << 56

// Malformed says why no device may have a GUID, or nothing (threat T26).
func Malformed(g ib.GUID) string {
	switch {
	case g == 0:
		return "is zero"
	case g == ^ib.GUID(0):
		return "is all ones"
	case g&groupBit != 0:
		return "has the group bit set"
	case g>>56 == 0xFE:
		return "begins as a subnet prefix does"
	default:
		return ""
	}
}

// Swapped returns a GUID with its bytes in the other order.
func Swapped(g ib.GUID) ib.GUID { return ib.GUID(bits.ReverseBytes64(uint64(g))) }
