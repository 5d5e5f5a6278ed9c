package record

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Bits of ClassPortInfo.CapabilityMask and CapabilityMask2 of subnet administration
// (IBTA volume 1, 15.2.5.1).
const (
	isGetSetNotice       = 1 << 1  // takes and ends subscriptions
	isUDMulticast        = 1 << 9  // groups are made and joined
	isMultiPath          = 1 << 10 // MultiPathRecord
	isPortInfoMaskMatch  = 1 << 13 // PortInfoRecord: modifier bit 31, see mad.MatchPortInfo
	isQoS                = 1 << 1  // paths by ServiceID and QoSClass
	isMulticastTop       = 1 << 3  // SwitchInfoRecord shows MulticastFDBTop
	isAliasGUIDs         = 1 << 5  // GUIDInfoRecord is set and deleted
	isFullPortInfoRecord = 1 << 6  // PortInfoRecord.Options, see mad.PortInfoRecordFull
	isExtendedSpeeds     = 1 << 7  // rates of FDR and above
	isPortInfoMask2Match = 1 << 10 // modifier bit 31 is for CapabilityMask2, too
	isSendOnlyFullMember = 1 << 12 // IPoIB asks for this one
	isLinkWidth2x        = 1 << 13
	isLinkSpeedHDR       = 1 << 15
	isLinkSpeedNDR       = 1 << 17
)

// Capabilities are the optional functions of subnet administration. Answers for records of the fabric are always included.
type Capabilities struct {
	Subscriptions bool // InformInfo
	Multicast     bool // MCMemberRecord, send-only full members too
	MultiPath     bool // MultiPathRecord
	QoS           bool // a policy decides about paths
	Aliases       bool // GUIDInfoRecord is set and deleted

	// RespTimeValue is the longest time from a request to its answer.
	RespTimeValue ib.ExpTime
}

// ClassPortInfo returns the description of subnet administration. It redirects no client, but clients still read the queue
// pair and Q_Key.
func ClassPortInfo(c Capabilities) mad.ClassPortInfo {
	i := mad.ClassPortInfo{
		BaseVersion: 1, ClassVersion: mad.SAClassVersion, RespTimeValue: c.RespTimeValue,
		RedirectQP: 1, RedirectQKey: mad.WellKnownQKey, TrapQKey: mad.WellKnownQKey,
		CapabilityMask: isPortInfoMaskMatch,
		CapabilityMask2: isMulticastTop | isFullPortInfoRecord | isPortInfoMask2Match | isExtendedSpeeds | isLinkWidth2x |
			isLinkSpeedHDR | isLinkSpeedNDR,
	}
	for _, b := range []struct {
		can         bool
		mask, mask2 uint32
	}{
		{c.Subscriptions, isGetSetNotice, 0},
		{c.Multicast, isUDMulticast, isSendOnlyFullMember},
		{c.MultiPath, isMultiPath, 0},
		{c.QoS, 0, isQoS},
		{c.Aliases, 0, isAliasGUIDs},
	} {
		if b.can {
			i.CapabilityMask |= uint16(b.mask)
			i.CapabilityMask2 |= b.mask2
		}
	}
	return i
}
