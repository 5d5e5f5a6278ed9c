package mad

import "portcullis/fabricsm/ib"

// Notice1300 is vendor notice 1300: a request to subnet administration had a
// wrong key.
type Notice1300 struct {
	NoticeHeader
	SLID                ib.LID   `mad:"80,16"` // requester LID
	AttributeID         AttrID   `mad:"96,16"` // what was asked
	Method              Method   `mad:"112,8"` // how it was asked
	_                   reserved `mad:"120,8"`
	SGID                ib.GID   `mad:"128,128"` // GID of the requester
	PhysPortGUID        ib.GUID  `mad:"256,64"`  // GUID of the physical port the request really came from
	SAKey               ib.SMKey `mad:"320,64"`  // the wrong key
	_                   reserved `mad:"384,112"`
	TrapNumberInPayload uint16   `mad:"496,16"` // which notice it is
}

// Notice1301 is vendor notice 1301: a request to subnet administration had
// another's source GID.
type Notice1301 struct {
	NoticeHeader
	SLID                ib.LID   `mad:"80,16"` // LID of the requester
	AttributeID         AttrID   `mad:"96,16"` // what was asked
	Method              Method   `mad:"112,8"` // how it was asked
	_                   reserved `mad:"120,8"`
	SpoofedSGID         ib.GID   `mad:"128,128"` // the GID that the requester claimed as its own
	PhysPortGUID        ib.GUID  `mad:"256,64"`  // physical port the request really came from
	_                   reserved `mad:"320,176"`
	TrapNumberInPayload uint16   `mad:"496,16"` // which notice it is
}

// Notice1302 is vendor notice 1302: a port asks subnet administration too
// often.
type Notice1302 struct {
	NoticeHeader
	_                   reserved `mad:"80,48"`
	SGID                ib.GID   `mad:"128,128"` // GID of the requester
	PhysPortGUID        ib.GUID  `mad:"256,64"`  // physical port the request really came from
	_                   reserved `mad:"320,176"`
	TrapNumberInPayload uint16   `mad:"496,16"` // which notice it is
}

// Notice1303 is vendor notices 1303 to 1305: a port has too many multicast,
// service or event registrations.
type Notice1303 struct {
	NoticeHeader
	_                   reserved `mad:"80,48"`
	SGID                ib.GID   `mad:"128,128"` // requester
	PhysPortGUID        ib.GUID  `mad:"256,64"`  // physical port the request really came from
	TargetGUID          ib.GUID  `mad:"320,64"`  // physical or virtual port whose limit was exceeded
	PhysTargetGUID      ib.GUID  `mad:"384,64"`  // physical port of TargetGUID
	_                   reserved `mad:"448,48"`
	TrapNumberInPayload uint16   `mad:"496,16"` // which notice it is
}
