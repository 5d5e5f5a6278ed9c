package mad

import "portcullis/fabricsm/ib"

// LIDsPerBlock is the number of LIDs in one block of a linear forwarding table.
const LIDsPerBlock = 64

// LinearForwardingTable is one block of the unicast routes of a switch
// (attribute 0x0019; IBTA volume 1, 14.2.5.10). Entry i of block b is the
// egress port of LID 64*b+i; ib.NoPort drops. The modifier is the block, 0 to
// 767.
type LinearForwardingTable struct {
	Port [LIDsPerBlock]ib.PortNum `mad:"0,8"`
}

// MLIDsPerBlock is the number of multicast LIDs in one block of a multicast
// forwarding table.
const MLIDsPerBlock = 32

// PortMask is a set of 16 ports of a switch: bit n is port 16*position+n, the
// position coming from the attribute modifier.
type PortMask uint16

// MulticastForwardingTable is one block of the multicast routes of a switch,
// for 16 of its ports (attribute 0x001B; IBTA volume 1, 14.2.5.12). Entry i of
// block b is for multicast LID 0xC000+32*b+i.
type MulticastForwardingTable struct {
	PortMask [MLIDsPerBlock]PortMask `mad:"0,16,hex"`
}

// MulticastForwardingMod is the attribute modifier of block block (0 to 511)
// for the ports from 16*position (0 to 15).
func MulticastForwardingMod(position uint8, block uint16) uint32 {
	return uint32(position&0xF)<<28 | uint32(block&0x1FF)
}
