package mad

import "portcullis/fabricsm/ib"

// Notice1306 is vendor notices 1306 and 1307: an SM on a GUID that is not
// allowed, or an SMInfo Set from one.
type Notice1306 struct {
	NoticeHeader
	_                   reserved       `mad:"80,16"`
	LID                 ib.LID         `mad:"96,16"` // of the offender
	_                   reserved       `mad:"112,32"`
	UnauthorizedSMGUID  ib.GUID        `mad:"144,64"` // port GUID of the foreign SM
	_                   reserved       `mad:"208,24"`
	DRNoticeHopCount    uint8          `mad:"232,8,hex"` // as byte 33 of trap 256: DR flag, truncated flag, 6-bit hop count
	DRInitialPath       [24]ib.PortNum `mad:"240,8"`     // path to the offender
	_                   reserved       `mad:"432,64"`
	TrapNumberInPayload uint16         `mad:"496,16"` // which notice it is
}

// Notice1308 is vendor notice 1308: an answer showed an M_Key violation.
type Notice1308 struct {
	NoticeHeader
	_                   reserved       `mad:"80,16"`
	LID                 ib.LID         `mad:"96,16"`  // of the offender
	AttributeID         AttrID         `mad:"112,16"` // what was asked
	_                   reserved       `mad:"128,8"`
	Method              Method         `mad:"136,8"`  // how it was asked
	PhysPortGUID        ib.GUID        `mad:"144,64"` // physical port of the offender
	_                   reserved       `mad:"208,24"`
	DRNoticeHopCount    uint8          `mad:"232,8,hex"` // as in Notice1306
	DRInitialPath       [24]ib.PortNum `mad:"240,8"`     // path to the offender
	MKey                ib.MKey        `mad:"432,64"`    // the key of the answer
	TrapNumberInPayload uint16         `mad:"496,16"`    // which notice it is
}

// Notice1309 is vendor notice 1309: a foreign SM came with a wrong SM_Key.
type Notice1309 struct {
	NoticeHeader
	_                   reserved       `mad:"80,16"`
	LID                 ib.LID         `mad:"96,16"` // of the offender
	_                   reserved       `mad:"112,32"`
	PhysPortGUID        ib.GUID        `mad:"144,64"` // physical port of the offender
	_                   reserved       `mad:"208,24"`
	DRNoticeHopCount    uint8          `mad:"232,8,hex"` // as in Notice1306
	DRInitialPath       [24]ib.PortNum `mad:"240,8"`     // path to the offender
	SMKey               ib.SMKey       `mad:"432,64"`    // the key the foreign SM presented
	TrapNumberInPayload uint16         `mad:"496,16"`    // which notice it is
}

// Notice1310 is vendor notice 1310: a node GUID was seen twice.
type Notice1310 struct {
	NoticeHeader
	_                   reserved   `mad:"80,16"`
	NodeGUID            ib.GUID    `mad:"96,64"`  // the doubled node GUID
	PeerNodeGUID1       ib.GUID    `mad:"160,64"` // neighbour of the first
	PeerNodeGUID2       ib.GUID    `mad:"224,64"` // neighbour of the second
	PeerPort1           ib.PortNum `mad:"288,8"`  // port of the first neighbour
	PeerPort2           ib.PortNum `mad:"296,8"`  // port of the second neighbour
	_                   reserved   `mad:"304,192"`
	TrapNumberInPayload uint16     `mad:"496,16"` // which notice it is
}

// Notice1311 is vendor notice 1311: a port GUID was seen twice.
type Notice1311 struct {
	NoticeHeader
	_                   reserved   `mad:"80,16"`
	PortGUID            ib.GUID    `mad:"96,64"`  // the doubled port GUID
	NodeGUID1           ib.GUID    `mad:"160,64"` // first node that has it
	NodeGUID2           ib.GUID    `mad:"224,64"` // second node that has it
	Port1               ib.PortNum `mad:"288,8"`  // port of the first node
	Port2               ib.PortNum `mad:"296,8"`  // port of the second node
	VPortIndex1         uint16     `mad:"304,16"` // virtual port of the first node
	VPortIndex2         uint16     `mad:"320,16"` // virtual port of the second node
	_                   reserved   `mad:"336,160"`
	TrapNumberInPayload uint16     `mad:"496,16"` // which notice it is
}
