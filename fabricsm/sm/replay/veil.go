package replay

import (
	"crypto/sha256"
	"encoding/binary"

	"portcullis/fabricsm/mad"
)

// veil replaces keys by other numbers: M_Keys and SM_Keys, ours or another subnet manager's, keys of classes, and wrong
// keys that a host showed. The same key is the same number throughout a record, and different keys differ. A core only
// compares keys, so the replay has the same results. The numbers follow from the order in which keys come, so they reveal
// nothing about them. A nil veil leaves everything as it is.
type veil struct {
	known map[uint64]uint64
	taken map[uint64]bool
}

// maxVeiled bounds the keys that are distinguished: any host can show new ones without end.
const maxVeiled = 1 << 18

const (
	// standIn is written in place of our SM_Key, tooMany in place of those that there
	// are too many of.
	standIn = 0x7265636F7264_0001
	tooMany = 0x7265636F7264_0002
)

func newVeil(smKey uint64) *veil {
	v := &veil{known: make(map[uint64]uint64), taken: map[uint64]bool{0: true, ^uint64(0): true, standIn: true, tooMany: true}}
	if smKey != 0 {
		v.known[smKey] = standIn
	}
	return v
}

// of returns the number for a key; no key stays no key.
func (v *veil) of(key uint64) uint64 {
	if v == nil || key == 0 {
		return key
	}
	if n, ok := v.known[key]; ok {
		return n
	}
	if len(v.known) >= maxVeiled {
		return tooMany
	}
	n := uint64(0)
	for i := uint64(len(v.known)); v.taken[n]; i += maxVeiled {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("portcullis record key "), i))
		n = binary.BigEndian.Uint64(sum[:])
	}
	v.known[key], v.taken[n] = n, true
	return n
}

// Where keys stand: in the header, in attributes, and in notices of wrong ones.
const (
	headerKeyAt   = mad.HeaderSize
	smKeyAt       = 8 // of SMInfo
	noticeKeyAt   = 24
	noticeCCKeyAt = 26
)

// mad veils all keys in a MAD. Parts that no core reads are cleared: they may hold keys of other classes.
func (v *veil) mad(m *mad.MAD) {
	if v == nil {
		return
	}
	class, keyed := mad.LookupKeyClass(m.Class())
	if !m.IsSMP() && !keyed {
		clear(m[headerKeyAt:])
		return
	}
	v.at(m[headerKeyAt:])
	switch {
	case m.IsSMP():
		v.smp(m)
	case m.Attr() != mad.AttrNotice:
		clear(class.Attribute(m))
	case class.Class == mad.ClassCongestionControl:
		v.at(class.Attribute(m)[noticeCCKeyAt:])
	default:
		v.at(class.Attribute(m)[noticeKeyAt:])
	}
}

func (v *veil) smp(m *mad.MAD) {
	switch m.Attr() {
	case mad.AttrPortInfo:
		v.at(m.Data())
	case mad.AttrSMInfo:
		v.at(m.Data()[smKeyAt:])
	case mad.AttrNotice:
		var n mad.NoticeHeader
		if mad.Decode(m.Data(), &n) == nil && n.IsGeneric && n.TrapNumber == mad.TrapBadMKey {
			v.at(m.Data()[noticeKeyAt:])
		}
	default:
	}
}

// at veils the key that a field holds.
func (v *veil) at(field []byte) {
	binary.BigEndian.PutUint64(field, v.of(binary.BigEndian.Uint64(field)))
}
