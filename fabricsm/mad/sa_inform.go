package mad

import "portcullis/fabricsm/ib"

// InformInfo subscribes to notices (attribute 0x0003; IBTA volume 1, 13.4.8.3).
type InformInfo struct {
	GID           ib.GID     `mad:"0,128"`      // who issues the notices; zero: the LID range counts
	LIDRangeBegin ib.LID     `mad:"128,16"`     // AllLIDs: all
	LIDRangeEnd   ib.LID     `mad:"144,16"`     // 0: only LIDRangeBegin
	_             reserved   `mad:"160,16"`     //
	IsGeneric     uint8      `mad:"176,8"`      // 1: the standard's notices; 0: a vendor's; others are wrong
	Subscribe     uint8      `mad:"184,8"`      // 1 subscribes, 0 ends it; others are wrong
	Type          uint16     `mad:"192,16"`     // a NoticeType, or AllTypes
	TrapNumber    TrapNum    `mad:"208,16"`     // generic: a trap, else a vendor's device id; AllTraps: any
	QPN           uint32     `mad:"224,24,hex"` // where reports go, of a record; in a request the QP it came from counts
	_             reserved   `mad:"248,3"`      //
	RespTimeValue ib.ExpTime `mad:"251,5"`      // longest time from a report to its answer
	_             reserved   `mad:"256,8"`      //
	ProducerType  uint32     `mad:"264,24,hex"` // generic: a Producer, else the vendor's OUI; AllProducers: any
}

// Wildcards of InformInfo.
const (
	AllLIDs      ib.LID  = 0xFFFF
	AllTypes     uint16  = 0xFFFF
	AllTraps     TrapNum = 0xFFFF
	AllProducers uint32  = 0xFFFFFF
)

// InformInfoRecord is a subscription (attribute 0x00F3; IBTA volume 1, 15.2.5.12).
type InformInfoRecord struct {
	SubscriberGID ib.GID   `mad:"0,128"`  // RID
	Enum          uint16   `mad:"128,16"` // RID; distinguishes the subscriptions of a port
	_             reserved `mad:"144,48"`
	InformInfo    `mad:"192,288"`
}
