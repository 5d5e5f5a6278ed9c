package mad

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// NoticeHeader is what every notice begins with (attribute 0x0002; IBTA volume
// 1, 13.4.8.2).
type NoticeHeader struct {
	IsGeneric    bool       `mad:"0,1"`      // true: the standard's numbers; false: a vendor's
	Type         NoticeType `mad:"1,7"`      // how bad it is
	ProducerType uint32     `mad:"8,24,hex"` // generic: a Producer; else the vendor's OUI
	TrapNumber   TrapNum    `mad:"32,16"`    // generic: what happened; else the vendor's device id
	IssuerLID    ib.LID     `mad:"48,16"`    // LID of the sender
	Toggle       bool       `mad:"64,1"`     // alternates with each notice
	Count        uint16     `mad:"65,15"`    // notices queued
}

// Notice is a notice whose details are not interpreted. Trap64 to Trap259 are
// views of the same 64 bytes that do: decode the one TrapNumber asks for.
type Notice struct {
	NoticeHeader
	DataDetails [54]byte `mad:"80,8,key"` // meaning depends on TrapNumber
}

// ReportNotice is the form that subnet administration forwards to subscribers,
// 80 bytes: the issuer's GID is appended.
type ReportNotice struct {
	Notice
	IssuerGID ib.GID `mad:"512,128"`
}

// NoticeType is the severity of a notice.
type NoticeType uint8

// Notice types.
const (
	NoticeFatal            NoticeType = 0
	NoticeUrgent           NoticeType = 1
	NoticeSecurity         NoticeType = 2
	NoticeSubnetManagement NoticeType = 3
	NoticeInformational    NoticeType = 4
	NoticeEmpty            NoticeType = 0x7F
)

// String names the type.
func (t NoticeType) String() string {
	switch t {
	case NoticeFatal:
		return "Fatal"
	case NoticeUrgent:
		return "Urgent"
	case NoticeSecurity:
		return "Security"
	case NoticeSubnetManagement:
		return "SubnetManagement"
	case NoticeInformational:
		return "Informational"
	case NoticeEmpty:
		return "Empty"
	default:
		return fmt.Sprintf("NoticeType(%d)", uint8(t))
	}
}

// Producers of generic notices (NoticeHeader.ProducerType). The first three
// equal ib.NodeType.
const (
	ProducerCA           = uint32(ib.NodeCA)
	ProducerSwitch       = uint32(ib.NodeSwitch)
	ProducerRouter       = uint32(ib.NodeRouter)
	ProducerClassManager = uint32(4)
)

// TrapNum is the number of a generic trap of the subnet management class.
type TrapNum uint16

// Trap numbers (IBTA volume 1, 14.2.5.1).
const (
	TrapGIDInService     TrapNum = 64
	TrapGIDOutOfService  TrapNum = 65
	TrapMulticastCreated TrapNum = 66
	TrapMulticastDeleted TrapNum = 67
	TrapUnPath           TrapNum = 68
	TrapRePath           TrapNum = 69
	TrapLinkStateChange  TrapNum = 128 // of a port of a switch
	TrapLinkIntegrity    TrapNum = 129 // local link integrity threshold reached
	TrapBufferOverrun    TrapNum = 130 // excessive buffer overrun threshold reached
	TrapFlowControl      TrapNum = 131 // flow control update watchdog expired
	TrapLocalChange      TrapNum = 144 // capability mask or another local change
	TrapSystemImageGUID  TrapNum = 145
	TrapBadMKey          TrapNum = 256
	TrapBadPKey          TrapNum = 257 // at an end port
	TrapBadQKey          TrapNum = 258
	TrapBadPKeySwitch    TrapNum = 259 // at an external port of a switch
)

// String returns the number and its meaning.
func (t TrapNum) String() string {
	if s := t.meaning(); s != "" {
		return fmt.Sprintf("%d (%s)", uint16(t), s)
	}
	return fmt.Sprintf("%d", uint16(t))
}

func (t TrapNum) meaning() string {
	switch t {
	case TrapGIDInService:
		return "GID in service"
	case TrapGIDOutOfService:
		return "GID out of service"
	case TrapMulticastCreated:
		return "multicast group created"
	case TrapMulticastDeleted:
		return "multicast group deleted"
	case TrapUnPath:
		return "UnPath"
	case TrapRePath:
		return "RePath"
	case TrapLinkStateChange:
		return "link state change"
	case TrapLinkIntegrity:
		return "local link integrity"
	case TrapBufferOverrun:
		return "excessive buffer overrun"
	case TrapFlowControl:
		return "flow control update watchdog"
	case TrapLocalChange:
		return "local change"
	case TrapSystemImageGUID:
		return "system image GUID change"
	case TrapBadMKey:
		return "bad M_Key"
	case TrapBadPKey:
		return "bad P_Key"
	case TrapBadQKey:
		return "bad Q_Key"
	case TrapBadPKeySwitch:
		return "bad P_Key at switch external port"
	default:
		return ""
	}
}
