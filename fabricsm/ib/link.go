package ib

import "fmt"

// SL is a service level, 0 to 15.
type SL uint8

// VL is a virtual lane, 0 to 15; 15 carries management only, and as the target
// of a mapping it means "drop".
type VL uint8

// Management and drop lane.
const VL15 VL = 15

// MTU is the standard's code for a maximum transfer unit, 1 (256 bytes) to 5
// (4096 bytes). Zero means "not given".
type MTU uint8

// MTU codes.
const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// Bytes gives the size in bytes, 0 for an unknown code.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

func (m MTU) String() string {
	if b := m.Bytes(); b != 0 {
		return fmt.Sprintf("%d", b)
	}
	return fmt.Sprintf("MTU(%d)", uint8(m))
}

// VLCap is the standard's code for a number of data VLs: 1: VL0, 2: VL0-1,
// 3: VL0-3, 4: VL0-7, 5: VL0-14. Zero means "no change" in a Set.
type VLCap uint8

// Count gives the number of data VLs, 0 for an unknown code.
func (c VLCap) Count() int {
	switch {
	case c >= 1 && c <= 4:
		return 1 << (c - 1)
	case c == 5:
		return 15
	default:
		return 0
	}
}

// LinkWidth is a bit mask of link widths: 1 1x, 2 4x, 4 8x, 8 12x, 16 2x. An
// active width has one bit.
type LinkWidth uint8

// LinkSpeed is a bit mask of the original link speeds: 1 SDR, 2 DDR, 4 QDR.
type LinkSpeed uint8

// LinkSpeedExt is a bit mask of extended link speeds: 1 FDR, 2 EDR, 4 HDR,
// 8 NDR.
type LinkSpeedExt uint8

// ExpTime is a duration coded as 4.096 us * 2^value, value 0 to 31; 20 and
// above mean "infinite" where a packet lifetime is meant.
type ExpTime uint8

// TID is a MAD transaction identifier. On Linux the kernel owns the upper 32
// bits, and ibsim the upper 16, so requests are told apart by the lower 32.
type TID uint64

func (t TID) String() string { return fmt.Sprintf("0x%016x", uint64(t)) }
