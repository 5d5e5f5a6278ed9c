package mad

import "portcullis/fabricsm/ib"

// N2NKeyInfo is the manager key of a port for the node to node class and how
// it protects (class 0x0C, attribute 0x000F KeyInfo). That it begins at byte 32
// of the MAD is [sim], see KeyClass.
type N2NKeyInfo struct {
	ManagerKey        ib.MKey  `mad:"0,64"`   // none: no key is checked
	ProtectBit        bool     `mad:"64,1"`   // false: any requester may read the key
	_                 reserved `mad:"65,15"`  //
	LeasePeriod       uint16   `mad:"80,16"`  // seconds until protection lapses after a violation; 0: never
	Violations        uint16   `mad:"96,16"`  // saturating count of wrong manager keys; that a Set to 0 clears it is [sim]
	NodeKeyViolations uint16   `mad:"112,16"` // saturating count of wrong node keys
}

// N2NNeighborsPerBlock is the number of records in a block of NeighborsInfo.
const N2NNeighborsPerBlock = 14

// N2NNeighbor is the node at one port of a switch.
type N2NNeighbor struct {
	NodeType ib.NodeType `mad:"0,3"`
	_        reserved    `mad:"3,13"`
	LID      ib.LID      `mad:"16,16"`
	_        reserved    `mad:"32,32"`
	Key      ib.MKey     `mad:"64,64"` // the neighbour's node key, which MADs to it carry
}

// N2NNeighborsInfo informs a switch of its neighbours (class 0x0C, attribute 0x0010). The modifier is the block, four bits.
// Entry i of block b is the node at port 14b+i; that numbers begin with port 0, whose record is the switch's own LID and
// node key, is [sim].
type N2NNeighborsInfo struct {
	Neighbor [N2NNeighborsPerBlock]N2NNeighbor `mad:"0,128"`
}
