package mad

import (
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
)

// TestKeyClasses: the classes with keys on the wire, byte by byte.
func TestKeyClasses(t *testing.T) {
	for _, tt := range []struct {
		class   Class
		attr    AttrID
		value   any
		version uint8
		at      int    // of the first byte of the attribute
		want    []byte // its first bytes
		text    string // of its dissection
	}{
		{
			ClassCongestionControl, CCAttrCongestionKeyInfo, &CongestionKeyInfo{CCKey: ib.NewMKey(0x0102030405060708), CCKeyProtectBit: true, CCKeyLeasePeriod: 60, CCKeyViolations: 3},
			2, 64,
			[]byte{1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0, 0, 60, 0, 3},
			"CCKeyProtectBit",
		},
		{
			ClassVendorVS, VSAttrKeyInfo, &VSKeyInfo{VSKey: ib.NewMKey(0x0102030405060708), ProtectBit: true, LeasePeriod: 60, Violations: 3},
			1, 32,
			[]byte{1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0, 0, 60, 0, 3},
			"ProtectBit",
		},
		{
			ClassVendorN2N, N2NAttrKeyInfo, &N2NKeyInfo{ManagerKey: ib.NewMKey(0x0102030405060708), LeasePeriod: 60, NodeKeyViolations: 3},
			1, 32,
			[]byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 60, 0, 0, 0, 3},
			"NodeKeyViolations",
		},
		{
			ClassVendorN2N, N2NAttrNeighborsInfo, &N2NNeighborsInfo{Neighbor: [N2NNeighborsPerBlock]N2NNeighbor{{NodeType: ib.NodeSwitch, LID: 0x0304, Key: ib.NewMKey(5)}}},
			1, 32,
			[]byte{0x40, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5},
			"Neighbor[0].LID",
		},
		{
			ClassCongestionControl, AttrNotice, &NoticeKeyCC{NoticeHeader: NoticeHeader{IsGeneric: true, Type: NoticeSecurity}, SLID: 7, CCKey: ib.NewMKey(9)},
			2, 64,
			[]byte{0x82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7},
			"CCKey",
		},
		{
			ClassVendorVS, AttrNotice, &NoticeKeyVS{NoticeHeader: NoticeHeader{Type: NoticeSecurity, ProducerType: OUINVIDIA}, SLID: 7, Key: ib.NewMKey(9)},
			1, 32,
			[]byte{0x02, 0, 2, 0xC9, 0, 0, 0, 0, 0, 0, 0, 7},
			"TrapNumberInPayload",
		},
	} {
		k, ok := LookupKeyClass(tt.class)
		if !ok || k.Version != tt.version || k.Data != tt.at {
			t.Errorf("class %v: %+v, %v", tt.class, k, ok)
			continue
		}
		var m MAD
		m.SetHeader(Header{Class: tt.class, ClassVersion: k.Version, Method: MethodSet, Attr: tt.attr})
		l, ok := LookupLayout(tt.class, tt.attr)
		if tt.attr == AttrNotice {
			l = (&Notice{NoticeHeader: NoticeHeader{IsGeneric: tt.class == ClassCongestionControl}}).LayoutIn(tt.class)
		}
		if !ok {
			t.Errorf("class %v attribute 0x%04x has no layout", tt.class, uint16(tt.attr))
			continue
		}
		if err := l.Encode(k.Attribute(&m), tt.value); err != nil {
			t.Fatal(err)
		}
		if got := string(m[tt.at : tt.at+len(tt.want)]); got != string(tt.want) {
			t.Errorf("%s: bytes % x, want % x", l.Name(), got, tt.want)
		}
		var out strings.Builder
		if err := Explain(&out, m[:], DumpOptions{}); err != nil || !strings.Contains(out.String(), tt.text) {
			t.Errorf("%s: %v, want %q in\n%s", l.Name(), err, tt.text, out.String())
		}
	}
	if _, ok := LookupKeyClass(ClassPerf); ok {
		t.Error("performance management has a key")
	}
}

func TestGeneralInfoCapabilities(t *testing.T) {
	var g GeneralInfoCapabilities
	g.Set(CapCongestionControl)
	g.Set(CapFabricManagerInfo)
	var b [16]byte
	if err := Encode(b[:], &g); err != nil {
		t.Fatal(err)
	}
	if want := [16]byte{6: 0x10, 11: 0x10}; b != want {
		t.Errorf("bytes % x, want % x", b, want)
	}
	if !g.Has(CapCongestionControl) || g.Has(CapRouterLID) || g.Has(200) {
		t.Errorf("capabilities %v", g)
	}
}
