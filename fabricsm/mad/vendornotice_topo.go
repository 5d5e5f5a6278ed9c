package mad

import "portcullis/fabricsm/ib"

// Notice1315 is vendor notice 1315: the static topology file is in error.
type Notice1315 struct {
	NoticeHeader
	ErrorType           uint8    `mad:"80,8"` // 0 cannot open file, 1 bad syntax, 2 validation failed
	_                   reserved `mad:"88,408"`
	TrapNumberInPayload uint16   `mad:"496,16"` // which notice it is
}

// Notice1316 is vendor notice 1316: a link is not as the static topology file
// says.
type Notice1316 struct {
	NoticeHeader
	NodeGUID                 ib.GUID     `mad:"80,64"`  // the node
	NeighborNodeGUID         ib.GUID     `mad:"144,64"` // found
	ExpectedNeighborNodeGUID ib.GUID     `mad:"208,64"` // from the file
	Port                     ib.PortNum  `mad:"272,8"`  // port of NodeGUID
	NeighborPort             ib.PortNum  `mad:"280,8"`  // found
	NeighborNodeType         ib.NodeType `mad:"288,8"`  // found
	ExpectedNeighborPort     ib.PortNum  `mad:"296,8"`  // from the file
	ExpectedNeighborNodeType ib.NodeType `mad:"304,8"`  // from the file
	_                        reserved    `mad:"312,184"`
	TrapNumberInPayload      uint16      `mad:"496,16"` // which notice it is
}

// Notice1601 is vendor notice 1601: a tenant went beyond its group.
type Notice1601 struct {
	NoticeHeader
	PhysicalGroupID     uint64   `mad:"80,64,hex"`  // group of the physical port
	PhysicalGUID        ib.GUID  `mad:"144,64"`     // the physical port
	VirtualGroupID      uint64   `mad:"208,64,hex"` // group of the virtual port
	VirtualGUID         ib.GUID  `mad:"272,64"`     // the virtual port
	VPortIndex          uint16   `mad:"336,16"`     // the virtual port
	TenantNoticeType    uint8    `mad:"352,8"`      // 0 GUID deviation, 1 multicast group violation
	_                   reserved `mad:"360,136"`
	TrapNumberInPayload uint16   `mad:"496,16"` // which notice it is
}
