package mad

import "portcullis/fabricsm/ib"

// GUIDsPerBlock is the number of entries in one block of GUIDInfo.
const GUIDsPerBlock = 8

// GUIDInfo is one block of the GUIDs of an end port (attribute 0x0014; IBTA
// volume 1, 14.2.5.5). Entry 0 of block 0 is the port GUID and read only; the
// others are alias GUIDs, 0 meaning unused. The modifier is the block.
type GUIDInfo struct {
	GUID [GUIDsPerBlock]ib.GUID `mad:"0,64"`
}
