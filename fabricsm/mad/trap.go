package mad

import "portcullis/fabricsm/ib"

// Trap64 is the notice of traps 64 to 67: a port or a multicast group came or
// went (class manager only).
type Trap64 struct {
	NoticeHeader
	_   reserved `mad:"80,48"`
	GID ib.GID   `mad:"128,128"` // port GID (64, 65) or multicast GID (66, 67)
	_   reserved `mad:"256,256"`
}

// Trap128 is the notice of trap 128: a port of a switch changed link state.
type Trap128 struct {
	NoticeHeader
	SwitchLID ib.LID   `mad:"80,16"` // the switch
	_         reserved `mad:"96,416"`
}

// Trap129 is the notice of traps 129 to 131: a threshold of a port was
// reached.
type Trap129 struct {
	NoticeHeader
	_       reserved   `mad:"80,16"`
	LID     ib.LID     `mad:"96,16"`
	PortNum ib.PortNum `mad:"112,8"`
	_       reserved   `mad:"120,392"`
}

// ChangeFlags says which local things changed (trap 144).
type ChangeFlags uint16

// Bits of ChangeFlags.
const (
	NodeDescriptionChanged     ChangeFlags = 0x0001
	LinkWidthEnabledChanged    ChangeFlags = 0x0002
	LinkSpeedEnabledChanged    ChangeFlags = 0x0004
	SMPriorityChanged          ChangeFlags = 0x0008
	HierarchyInfoChanged       ChangeFlags = 0x0010
	LinkSpeedExtEnabledChanged ChangeFlags = 0x0020
)

// Trap144 is the notice of trap 144: the capability mask or another local
// thing changed.
type Trap144 struct {
	NoticeHeader
	_                  reserved        `mad:"80,16"`
	LID                ib.LID          `mad:"96,16"`
	_                  reserved        `mad:"112,15"`
	OtherLocalChanges  bool            `mad:"127,1"`  // ChangeFlags means something
	NewCapabilityMask  CapabilityMask  `mad:"128,32"` // after the change
	ChangeFlags        ChangeFlags     `mad:"160,16,hex"`
	NewCapabilityMask2 CapabilityMask2 `mad:"176,16"`
	_                  reserved        `mad:"192,320"`
}

// Trap145 is the notice of trap 145: the system image GUID changed.
type Trap145 struct {
	NoticeHeader
	_                  reserved `mad:"80,16"`
	LID                ib.LID   `mad:"96,16"`
	_                  reserved `mad:"112,16"`
	NewSystemImageGUID ib.GUID  `mad:"128,64"`
	_                  reserved `mad:"192,320"`
}

// Trap256 is the notice of trap 256: an SMP came with a wrong M_Key.
type Trap256 struct {
	NoticeHeader
	_                 reserved       `mad:"80,16"`
	LID               ib.LID         `mad:"96,16"`  // source LID of the offending SMP
	DrSLID            ib.LID         `mad:"112,16"` // of a directed-route offender, else 0
	Method            Method         `mad:"128,8"`
	_                 reserved       `mad:"136,8"`
	AttributeID       AttrID         `mad:"144,16"`
	AttributeModifier uint32         `mad:"160,32,hex"`
	MKey              ib.MKey        `mad:"192,64"` // the wrong key; it may be another device's right one
	_                 reserved       `mad:"256,8"`
	DRNotice          bool           `mad:"264,1"` // the offender was directed route
	DRPathTruncated   bool           `mad:"265,1"` // the path below is shortened
	DRHopCount        uint8          `mad:"266,6"`
	DRReturnPath      [30]ib.PortNum `mad:"272,8"` // the offender's return path
}

// Trap257 is the notice of traps 257 and 258: a packet came to an end port
// with a wrong P_Key or Q_Key.
type Trap257 struct {
	NoticeHeader
	_        reserved `mad:"80,16"`
	LIDADDR1 ib.LID   `mad:"96,16"`      // source
	LIDADDR2 ib.LID   `mad:"112,16"`     // destination
	Key      uint32   `mad:"128,32,hex"` // 257: P_Key in the low 16 bits; 258: Q_Key
	SL       ib.SL    `mad:"160,4"`
	_        reserved `mad:"164,4"`
	QP1      uint32   `mad:"168,24,hex"` // source queue pair
	_        reserved `mad:"192,8"`
	QP2      uint32   `mad:"200,24,hex"` // destination queue pair
	GIDADDR1 ib.GID   `mad:"224,128"`    // source, if the packet had a global header
	GIDADDR2 ib.GID   `mad:"352,128"`    // destination, likewise
	_        reserved `mad:"480,32"`
}

// Trap259 is the notice of trap 259: a switch dropped a packet with a wrong
// P_Key at an external port.
type Trap259 struct {
	NoticeHeader
	DataValid uint16     `mad:"80,16,hex"` // which fields below are valid; the bits are not public
	LIDADDR1  ib.LID     `mad:"96,16"`     // source
	LIDADDR2  ib.LID     `mad:"112,16"`    // destination
	PKey      ib.PKey    `mad:"128,16"`
	SL        ib.SL      `mad:"144,4"`
	_         reserved   `mad:"148,4"`
	QP1       uint32     `mad:"152,24,hex"` // source queue pair
	_         reserved   `mad:"176,8"`
	QP2       uint32     `mad:"184,24,hex"` // destination queue pair
	GIDADDR1  ib.GID     `mad:"208,128"`    // source, if the packet had a global header
	GIDADDR2  ib.GID     `mad:"336,128"`    // destination, likewise
	SwitchLID ib.LID     `mad:"464,16"`     // the switch that dropped the packet
	PortNum   ib.PortNum `mad:"480,8"`      // its external port
	_         reserved   `mad:"488,24"`
}
