package mad

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// VLArbEntry is the share of a virtual lane.
type VLArbEntry struct {
	_      reserved `mad:"0,4"`
	VL     ib.VL    `mad:"4,4"`
	Weight uint8    `mad:"8,8"` // in units of 64 bytes; 0 skips the entry
}

// VLArbitration is half of an arbitration table of a port (attribute 0x0018;
// IBTA volume 1, 14.2.5.9).
type VLArbitration struct {
	Entry [32]VLArbEntry `mad:"0,16"`
}

// VLArbHalf selects a half of a VL arbitration table.
type VLArbHalf uint8

// Halves of the tables.
const (
	VLArbLow0   VLArbHalf = 1 // low priority, entries 0 to 31
	VLArbLow32  VLArbHalf = 2 // low priority, entries 32 to 63
	VLArbHigh0  VLArbHalf = 3 // high priority, entries 0 to 31
	VLArbHigh32 VLArbHalf = 4 // high priority, entries 32 to 63
)

// VLArbitrationMod is the attribute modifier for output port port of a switch,
// or 0 for a CA or router.
func VLArbitrationMod(half VLArbHalf, port ib.PortNum) uint32 {
	return uint32(half)<<16 | uint32(port)
}

// String names the half.
func (h VLArbHalf) String() string {
	switch h {
	case VLArbLow0:
		return "low priority 0 to 31"
	case VLArbLow32:
		return "low priority 32 to 63"
	case VLArbHigh0:
		return "high priority 0 to 31"
	case VLArbHigh32:
		return "high priority 32 to 63"
	default:
		return fmt.Sprintf("VLArbHalf(%d)", uint8(h))
	}
}
