package mad

import (
	"bytes"
	"encoding/binary"
	"testing"

	"portcullis/fabricsm/ib"
)

// marked is a key that is easy to find.
const marked = 0x5EC2E75EC2E75EC2

func holds(b []byte) bool {
	return bytes.Contains(b, binary.BigEndian.AppendUint64(nil, marked))
}

// put encodes an attribute into a MAD of a class at an offset.
func put[T any](t testing.TB, c Class, a AttrID, at int, v T) MAD {
	t.Helper()
	var m MAD
	m.SetHeader(Header{Class: c, ClassVersion: 1, Method: MethodGetResp, Attr: a, TID: 7})
	if err := Encode(m[at:], &v); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRedact(t *testing.T) {
	key, smKey := ib.NewMKey(marked), ib.NewSMKey(marked)
	var route MAD
	r := MakeRoute(1, 2, 3)
	NewSMP(&route, Header{Method: MethodGet, Attr: AttrNodeInfo}, &r, key)
	path := put(t, ClassSubnAdm, AttrPathRecord, offSAData, PathRecord{DLID: 7})
	path.SetSAKey(ib.NewSAKey(marked))
	trap := NoticeHeader{IsGeneric: true, TrapNumber: TrapBadMKey, IssuerLID: 9}
	unknown := put(t, ClassSubn, 0xFF77, offData, GUIDInfo{GUID: [8]ib.GUID{marked}})
	manager := put(t, ClassDevAdm, AttrNodeInfo, 100, GUIDInfo{GUID: [8]ib.GUID{marked}})
	for _, tt := range []struct {
		name string
		mad  MAD
		kept []byte // what must still be there
	}{
		{"M_Key of a header", route, []byte{1, 2, 3}},
		{"PortInfo", put(t, ClassSubnDR, AttrPortInfo, offData, PortInfo{MKey: key, LID: 0x1234}), []byte{0x12, 0x34}},
		{"SMInfo", put(t, ClassSubn, AttrSMInfo, offData, SMInfo{GUID: 0xABCD, SMKey: smKey}), []byte{0xAB, 0xCD}},
		{"trap of a wrong M_Key", put(t, ClassSubn, AttrNotice, offData, Trap256{NoticeHeader: trap, LID: 0x1234, MKey: key}), []byte{0x12, 0x34}},
		{"an attribute that is not known", unknown, []byte{0xFF, 0x77}},
		{"SA_Key", path, []byte{0, 7}},
		{"PortInfoRecord", put(t, ClassSubnAdm, AttrPortInfoRecord, offSAData, PortInfoRecord{EndportLID: 0x1234, PortInfo: PortInfo{MKey: key}}), []byte{0x12, 0x34}},
		{"SMInfoRecord", put(t, ClassSubnAdm, AttrSMInfoRecord, offSAData, SMInfoRecord{LID: 0x1234, SMInfo: SMInfo{SMKey: smKey}}), []byte{0x12, 0x34}},
		{
			"ServiceRecord",
			put(t, ClassSubnAdm, AttrServiceRecord, offSAData, ServiceRecord{ServiceID: 0x1234, ServiceKey: ib.NewServiceKey([16]byte(bytes.Repeat(binary.BigEndian.AppendUint64(nil, marked), 2)))}),
			[]byte{0x12, 0x34},
		},
		{"key of congestion control", put(t, ClassCongestionControl, CCAttrCongestionKeyInfo, 64, CongestionKeyInfo{CCKey: key, CCKeyLeasePeriod: 0x1234}), []byte{0x12, 0x34}},
		{"keys of neighbours", put(t, ClassVendorN2N, N2NAttrNeighborsInfo, 32, N2NNeighborsInfo{Neighbor: [14]N2NNeighbor{{LID: 0x1234, Key: key}, {Key: key}}}), []byte{0x12, 0x34}},
		{"trap of a wrong class key", put(t, ClassVendorVS, AttrNotice, 32, NoticeKeyVS{SLID: 0x1234, Key: key}), []byte{0x12, 0x34}},
		{"a class that is not known", manager, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !holds(tt.mad[:]) {
				t.Fatal("there is no key in it")
			}
			got := tt.mad
			Redact(&got)
			if holds(got[:]) || bytes.Contains(got[:], []byte{0x5E, 0xC2}) {
				t.Errorf("a key is left:\n% x", got)
			}
			if !bytes.Equal(got[:HeaderSize], tt.mad[:HeaderSize]) || !bytes.Contains(got[16:], tt.kept) {
				t.Errorf("more than keys is gone:\n% x", got)
			}
		})
	}
	counters := put(t, ClassPerf, 0x12, offData, GUIDInfo{GUID: [8]ib.GUID{marked}})
	if got := counters; true {
		Redact(&got)
		if got != counters {
			t.Error("counters are changed")
		}
	}
}

// TestRedactSegments: records of a table straddle segments; a key is found in each part.
func TestRedactSegments(t *testing.T) {
	const records = 40
	each := RecordSize(AttrPortInfoRecord)
	table := make([]byte, records*each)
	for i := range records {
		r := PortInfoRecord{EndportLID: ib.LID(i + 1), PortInfo: PortInfo{MKey: ib.NewMKey(marked), LID: 0x7777}}
		if err := Encode(table[i*each:], &r); err != nil {
			t.Fatal(err)
		}
	}
	var back []byte
	for at := 0; at < len(table); at += SADataSize {
		var m MAD
		m.SetHeader(Header{Class: ClassSubnAdm, ClassVersion: SAClassVersion, Method: MethodGetTableResp, Attr: AttrPortInfoRecord})
		m.SetRMPPHeader(RMPPHeader{Version: RMPPVersion, Type: RMPPData, Flags: RMPPActive, Data1: uint32(at/SADataSize + 1)})
		m.SetAttributeOffset(AttributeOffset(AttrPortInfoRecord))
		copy(m.SAData(), table[at:])
		Redact(&m)
		back = append(back, m.SAData()...)
	}
	for i := range records {
		var got PortInfoRecord
		if err := Decode(back[i*each:], &got); err != nil || !got.MKey.IsZero() || got.EndportLID != ib.LID(i+1) || got.LID != 0x7777 {
			t.Errorf("record %d: %v, LIDs %v and %v, has a key: %v", i, err, got.EndportLID, got.LID, !got.MKey.IsZero())
		}
	}
	if bytes.Contains(back, []byte{0x5E, 0xC2}) {
		t.Error("a part of a key is left")
	}
}

// TestRedactWithoutOffset: where records cannot be found in a segment, all of it goes.
func TestRedactWithoutOffset(t *testing.T) {
	for _, h := range []RMPPHeader{
		{Version: RMPPVersion, Type: RMPPData, Flags: RMPPActive, Data1: 1},
		{Version: RMPPVersion, Type: RMPPAck, Flags: RMPPActive, Data1: 1},
		{Version: RMPPVersion, Type: RMPPData, Flags: RMPPActive, Data1: 0},
		{Version: RMPPVersion, Type: RMPPData, Flags: RMPPActive, Data1: 0xFFFFFFFF},
	} {
		m := put(t, ClassSubnAdm, AttrPortInfoRecord, offSAData, PortInfoRecord{PortInfo: PortInfo{MKey: ib.NewMKey(marked)}})
		m.SetRMPPHeader(h)
		if h.Data1 != 1 {
			m.SetAttributeOffset(AttributeOffset(AttrPortInfoRecord))
		}
		if Redact(&m); !allZero(m.SAData()) {
			t.Errorf("%+v: data is left", h)
		}
	}
}

func FuzzRedact(f *testing.F) {
	m := put(f, ClassSubnAdm, AttrPortInfoRecord, offSAData, PortInfoRecord{PortInfo: PortInfo{MKey: ib.NewMKey(marked)}})
	f.Add(m[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var m MAD
		copy(m[:], b)
		once := m
		Redact(&once)
		twice := once
		Redact(&twice)
		if once != twice || !bytes.Equal(m[:HeaderSize], once[:HeaderSize]) {
			t.Error("redacting again changes more, or the header is changed")
		}
		if m.IsSMP() && !once.MKey().IsZero() || m.Class() == ClassSubnAdm && once.SAKeyBits() != 0 {
			t.Error("the key of the header is left")
		}
	})
}
