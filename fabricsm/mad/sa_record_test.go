package mad

import (
	"testing"

	"portcullis/fabricsm/ib"
)

// TestRecordSize: distances are what OpenSM 3.3.23 has in its answers.
func TestRecordSize(t *testing.T) {
	for a, want := range map[AttrID]int{
		AttrNodeRecord: 112, AttrPortInfoRecord: 72, AttrSLtoVLRecord: 16, AttrSwitchInfoRecord: 24,
		AttrLinearForwardingRecord: 72, AttrRandomForwardingRecord: 72, AttrMulticastForwardingRecord: 72,
		AttrSMInfoRecord: 32, AttrLinkRecord: 8, AttrGUIDInfoRecord: 72, AttrServiceRecord: 176, AttrPKeyTableRecord: 72,
		AttrPathRecord: 64, AttrVLArbitrationRecord: 72, AttrMCMemberRecord: 56, AttrTraceRecord: 48,
		AttrMultiPathRecord: 24, AttrInformInfoRecord: 64, AttrInformInfo: 40, AttrClassPortInfo: 72, 0x7777: 0,
	} {
		if got := RecordSize(a); got != want || int(AttributeOffset(a)) != want/8 {
			t.Errorf("attribute %#x: %d bytes, offset %d, want %d", uint16(a), got, AttributeOffset(a), want)
		}
	}
}

func TestMultiPath(t *testing.T) {
	want := MultiPathRecord{SGIDCount: 1, DGIDCount: 2, ServiceID8MSB: 0x01, ServiceID56LSB: 0x02030405060708}
	if got := want.ServiceID(); got != 0x0102030405060708 {
		t.Errorf("ServiceID %v", got)
	}
	p := make([]byte, 24+3*16)
	if err := Encode(p, &want); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p[24+16*i] = byte(0xA0 + i)
	}
	for n := range len(p) + 1 {
		for i := -1; i < 5; i++ {
			g, ok := MultiPathGID(p[:n], i)
			there := i >= 0 && n >= 24+16*(i+1)
			if ok != there || ok && g != (ib.GID{byte(0xA0 + i)}) {
				t.Errorf("GID %d of %d bytes: %v, %v", i, n, g, ok)
			}
		}
	}
}

func TestServiceName(t *testing.T) {
	r := ServiceRecord{}
	copy(r.ServiceName[:], "SHArP.AggregationManager\x00junk")
	if got := r.Name(); got != "SHArP.AggregationManager" {
		t.Errorf("name %q", got)
	}
}

func TestSelector(t *testing.T) {
	tests := []struct {
		s                Selector
		name             string
		less, same, more bool
	}{
		{SelectGreater, "greater than", false, false, true},
		{SelectLess, "less than", true, false, false},
		{SelectExactly, "exactly", false, true, false},
		{SelectBest, "best", true, true, true},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if c.s.String() != c.name {
				t.Errorf("name %q", c.s)
			}
			mtu := [3]bool{c.s.MTU(ib.MTU2048, ib.MTU1024), c.s.MTU(ib.MTU2048, ib.MTU2048), c.s.MTU(ib.MTU2048, ib.MTU4096)}
			// The codes are not in the order of the speeds: 5 Gb/s has a larger one than 10.
			rate := [3]bool{c.s.Rate(ib.Rate10, ib.Rate5), c.s.Rate(ib.Rate10, ib.Rate10), c.s.Rate(ib.Rate10, ib.Rate14)}
			life := [3]bool{c.s.PacketLifeTime(18, 17), c.s.PacketLifeTime(18, 18), c.s.PacketLifeTime(18, 19)}
			if want := [3]bool{c.less, c.same, c.more}; mtu != want || rate != want || life != want {
				t.Errorf("MTU %v, rate %v, lifetime %v, want %v", mtu, rate, life, want)
			}
		})
	}
}

// TestSAWords: attributes of subnet administration are named by class, and so are its codes.
func TestSAWords(t *testing.T) {
	for a, want := range map[AttrID]string{
		AttrClassPortInfo: "ClassPortInfo", AttrNotice: "Notice", AttrInformInfo: "InformInfo", AttrNodeRecord: "NodeRecord",
		AttrPortInfoRecord: "PortInfoRecord", AttrPKeyTableRecord: "P_KeyTableRecord", AttrSLtoVLRecord: "SLtoVLMappingTableRecord",
		AttrGUIDInfoRecord: "GUIDInfoRecord", AttrServiceAssociationRecord: "ServiceAssociationRecord", AttrInformInfoRecord: "InformInfoRecord",
		0x0050: "AttrID(0x0050)",
	} {
		if got := (Header{Class: ClassSubnAdm, Attr: a}).AttrName(); got != want {
			t.Errorf("%#x is %q, want %q", uint16(a), got, want)
		}
	}
	for s, want := range map[Status]string{
		StatusOK: "ok", StatusNoRecords: "ERR_NO_RECORDS", StatusInsufficientComponents: "ERR_REQ_INSUFFICIENT_COMPONENTS",
		StatusUnsupportedMethodAttr: "unsupported method and attribute combination", StatusDenied | StatusBusy: "busy, ERR_REQ_DENIED",
		0x7700: "class specific 0x77",
	} {
		if got := (Header{Class: ClassSubnAdm, Status: s}).StatusWords(); got != want {
			t.Errorf("%#x is %q, want %q", uint16(s), got, want)
		}
	}
	if got := (Header{Class: ClassSubn, Status: StatusNoRecords}).StatusWords(); got != "class specific 0x03" {
		t.Errorf("elsewhere %q", got)
	}
	for h, want := range map[Header]AttrID{
		{Method: MethodGetTrace, Attr: AttrTraceRecord}:         AttrPathRecord,
		{Method: MethodGetMultiResp, Attr: AttrMultiPathRecord}: AttrPathRecord,
		{Method: MethodGetTableResp, Attr: AttrTraceRecord}:     AttrTraceRecord,
		{Method: MethodGetMulti, Attr: AttrMultiPathRecord}:     AttrMultiPathRecord,
	} {
		if got := h.RecordAttr(); got != want {
			t.Errorf("%v of %#x carries %#x, want %#x", h.Method, uint16(h.Attr), uint16(got), uint16(want))
		}
	}
}
