package mad

import "portcullis/fabricsm/ib"

// Vendor notices say IsGeneric false and have NVIDIA's OUI as ProducerType and
// a device id where generic ones have the trap number; the number of the
// notice is in the last two bytes of the details. Those from 1300 on are raised
// by the vendor's subnet manager and reach subscribers of subnet
// administration only.

// OUINVIDIA is the vendor of these notices and attributes.
const OUINVIDIA = 0x0002C9

// Notice1144 is vendor notice 1144: something of a virtual port changed; a
// device sends it.
type Notice1144 struct {
	NoticeHeader
	_                   reserved `mad:"80,16"`
	LID                 ib.LID   `mad:"96,16"` // LID where the change occurred
	_                   reserved `mad:"112,8"`
	_                   reserved `mad:"120,7"`
	LocalChanges        bool     `mad:"127,1"`      // ChangeFlags means something
	VPortCapabilityMask uint16   `mad:"128,16,hex"` // after the change
	_                   reserved `mad:"144,10"`
	ChangeFlags         uint8    `mad:"154,6,hex"` // 0x0001 VNodeDescription, 0x0008 SM priority, 0x0010 hierarchy info
	_                   reserved `mad:"160,16"`
	VPortIndex          uint16   `mad:"176,16"` // the virtual port
	_                   reserved `mad:"192,304"`
	TrapNumberInPayload uint16   `mad:"496,16"` // which notice it is
}

// Notice1257 is vendor notices 1257 and 1258: a packet came to a virtual port
// with a wrong P_Key or Q_Key; a device sends it.
type Notice1257 struct {
	NoticeHeader
	_                   reserved `mad:"80,16"`
	LID1                ib.LID   `mad:"96,16"`      // source
	LID2                ib.LID   `mad:"112,16"`     // destination
	Key                 uint32   `mad:"128,32,hex"` // 1257: P_Key in the low 16 bits; 1258: Q_Key
	SL                  ib.SL    `mad:"160,4"`      // service level of the packet
	_                   reserved `mad:"164,4"`
	QP1                 uint32   `mad:"168,24,hex"` // source queue pair
	_                   reserved `mad:"192,8"`
	QP2                 uint32   `mad:"200,24,hex"` // destination queue pair
	GID1                ib.GID   `mad:"224,128"`    // source, if the packet had a global header
	GID2                ib.GID   `mad:"352,128"`    // destination, likewise
	VPortIndex          uint16   `mad:"480,16"`     // the virtual port
	TrapNumberInPayload uint16   `mad:"496,16"`     // which notice it is
}

// Notice1318 is vendor notice 1318: packets that were not authorised; a device
// sends it.
type Notice1318 struct {
	NoticeHeader
	DataValid           uint16     `mad:"80,16,hex"` // 0x0001 LID1, 0x0002 LID2, 0x0004 Reason, 0x0010 QP1, 0x0020 QP2, 0x0040 DR path
	LID1                ib.LID     `mad:"96,16"`     // source
	LID2                ib.LID     `mad:"112,16"`    // destination
	_                   reserved   `mad:"128,16"`
	_                   reserved   `mad:"144,8"`
	_                   reserved   `mad:"152,4"`
	Reason              uint8      `mad:"156,4"` // values not public
	_                   reserved   `mad:"160,8"`
	QP1                 uint32     `mad:"168,24,hex"` // source queue pair
	HopCount            uint8      `mad:"192,8"`      // length of DRPath
	QP2                 uint32     `mad:"200,24,hex"` // destination queue pair
	DRPath              [16]uint16 `mad:"224,16"`     // path of the packet
	_                   reserved   `mad:"480,16"`
	TrapNumberInPayload uint16     `mad:"496,16"` // which notice it is
}
