package mad

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
)

// Attributes of subnet administration, class 0x03 (IBTA volume 1, 15.2.5). Beside
// these it has ClassPortInfo and Notice. Their numbers mean other things in other
// classes.
const (
	AttrInformInfo                AttrID = 0x0003 // not a record
	AttrNodeRecord                AttrID = 0x0011
	AttrPortInfoRecord            AttrID = 0x0012
	AttrSLtoVLRecord              AttrID = 0x0013
	AttrSwitchInfoRecord          AttrID = 0x0014
	AttrLinearForwardingRecord    AttrID = 0x0015
	AttrRandomForwardingRecord    AttrID = 0x0016 // obsolete
	AttrMulticastForwardingRecord AttrID = 0x0017
	AttrSMInfoRecord              AttrID = 0x0018
	AttrLinkRecord                AttrID = 0x0020
	AttrGUIDInfoRecord            AttrID = 0x0030
	AttrServiceRecord             AttrID = 0x0031
	AttrPKeyTableRecord           AttrID = 0x0033
	AttrPathRecord                AttrID = 0x0035
	AttrVLArbitrationRecord       AttrID = 0x0036
	AttrMCMemberRecord            AttrID = 0x0038
	AttrTraceRecord               AttrID = 0x0039
	AttrMultiPathRecord           AttrID = 0x003A
	AttrServiceAssociationRecord  AttrID = 0x003B
	AttrInformInfoRecord          AttrID = 0x00F3
)

// Status codes of subnet administration (IBTA volume 1, 15.2.2).
const (
	StatusNoResources            Status = 0x0100
	StatusInvalidRequest         Status = 0x0200
	StatusNoRecords              Status = 0x0300
	StatusTooManyRecords         Status = 0x0400
	StatusInvalidGID             Status = 0x0500
	StatusInsufficientComponents Status = 0x0600
	StatusDenied                 Status = 0x0700
	StatusPrioritySuggested      Status = 0x0800
)

const (
	// SAClassVersion is the version of class 0x03.
	SAClassVersion = 2
	// SADataSize is the length of the data of one SA MAD in bytes. A record that
	// does not fit goes on in the next segment.
	SADataSize = 200
	// WellKnownQKey is the Q_Key of QP1 of every port.
	WellKnownQKey uint32 = 0x80010000

	offSMKey    = 36
	offAttrOff  = 44
	offCompMask = 48
	offSAData   = 56
)

// ComponentMask is the mask of an SA MAD.
func (m *MAD) ComponentMask() ComponentMask {
	return ComponentMask(binary.BigEndian.Uint64(m[offCompMask:]))
}

// SetComponentMask writes the mask of an SA MAD.
func (m *MAD) SetComponentMask(c ComponentMask) {
	binary.BigEndian.PutUint64(m[offCompMask:], uint64(c))
}

// AttributeOffset is the distance from one record to the next in an answer, in
// units of 8 bytes; 0 in one without records.
func (m *MAD) AttributeOffset() uint16 { return binary.BigEndian.Uint16(m[offAttrOff:]) }

// SetAttributeOffset writes the distance between records, in units of 8 bytes.
func (m *MAD) SetAttributeOffset(v uint16) { binary.BigEndian.PutUint16(m[offAttrOff:], v) }

// SAData is the data of an SA MAD: SADataSize bytes of it, shared.
func (m *MAD) SAData() []byte { return m[offSAData:] }

// SAKeyBits is the field SM_Key of an SA MAD: 0 in an untrusted request and in every
// answer. It may be a secret: compare it with SAKeyIs, and keep it nowhere.
func (m *MAD) SAKeyBits() uint64 { return binary.BigEndian.Uint64(m[offSMKey:]) }

// SAKeyIs reports whether an SA MAD carries a key, in a time that does not depend on
// where they differ.
func (m *MAD) SAKeyIs(k ib.SAKey) bool { return m.SAKeyBits()^k.Reveal() == 0 }

// SetSAKey writes the field SM_Key of an SA MAD.
func (m *MAD) SetSAKey(k ib.SAKey) { binary.BigEndian.PutUint64(m[offSMKey:], k.Reveal()) }
