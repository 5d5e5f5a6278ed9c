package mad

import "portcullis/fabricsm/ib"

// PKeysPerBlock is the number of entries in one block of a P_Key table.
const PKeysPerBlock = 32

// PKeyTable is one block of the partition keys of a port (attribute 0x0016
// P_KeyTable; IBTA volume 1, 14.2.5.7). An entry with base 0 is empty. A base
// may appear twice in a table only as one full and one limited entry.
type PKeyTable struct {
	PKey [PKeysPerBlock]ib.PKey `mad:"0,16"`
}

// PKeyTableMod is the attribute modifier of block block. port is the external
// port of a switch, and 0 for a CA, a router and switch port 0.
func PKeyTableMod(port ib.PortNum, block uint16) uint32 {
	return uint32(port)<<16 | uint32(block)
}
