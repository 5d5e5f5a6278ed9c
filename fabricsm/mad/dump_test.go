package mad

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func TestDump(t *testing.T) {
	d := MakeNodeDescription("host \x1b[31m7")
	tests := []struct {
		name string
		dump func(*strings.Builder, DumpOptions) error
		opts DumpOptions
		want string
	}{
		{"key redacted", func(b *strings.Builder, o DumpOptions) error {
			return Dump(b, &SMInfo{GUID: 0x10, SMKey: ib.NewSMKey(0xABC), ActCount: 3, Priority: 15, SMState: ib.SMMaster}, o)
		}, DumpOptions{}, "GUID: 0x0000000000000010\nSMKey: [secret]\nActCount: 3\nPriority: 15\nSMState: Master\n"},
		{"key asked for", func(b *strings.Builder, o DumpOptions) error {
			return Dump(b, &SMInfo{SMKey: ib.NewSMKey(0xABC)}, o)
		}, DumpOptions{Secrets: true, Indent: "> "}, "> GUID: 0x0000000000000000\n> SMKey: 0x0000000000000abc\n> ActCount: 0\n> Priority: 0\n> SMState: NotActive\n"},
		{"runs", func(b *strings.Builder, o DumpOptions) error {
			return Dump(b, &PKeyTable{PKey: [32]ib.PKey{0x7FFF, 0x8123, 0x8123}}, o)
		}, DumpOptions{}, "PKey[0]: 0x7fff\nPKey[1..2]: 0x8123\nPKey[3..31]: 0x0000\n"},
		{
			"text cannot reach the terminal", func(b *strings.Builder, o DumpOptions) error { return Dump(b, &d, o) },
			DumpOptions{},
			"NodeString: \"host \uFFFD[31m7\"\n",
		},
		{"details that nobody knows", func(b *strings.Builder, o DumpOptions) error {
			return Dump(b, &Notice{NoticeHeader: NoticeHeader{Type: NoticeEmpty, IssuerLID: 7}, DataDetails: [54]byte{1}}, o)
		}, DumpOptions{}, "IsGeneric: false\nType: Empty\nProducerType: 0x000000\nTrapNumber: 0\nIssuerLID: 7\nToggle: false\nCount: 0\nDataDetails: [secret]\n"},
		{"hex and times", func(b *strings.Builder, o DumpOptions) error {
			return Dump(b, &MulticastForwardingTable{PortMask: [32]PortMask{0x8001}}, o)
		}, DumpOptions{}, "PortMask[0]: 0x8001\nPortMask[1..31]: 0x0000\n"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			if err := c.dump(&b, c.opts); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, b.String()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	a := PortInfo{LID: 1, MKey: ib.NewMKey(1), LMC: 2, PortState: ib.PortActive}
	b := PortInfo{LID: 9, MKey: ib.NewMKey(2), LMC: 2, PortState: ib.PortInit}
	want := []Difference{{"MKey", "[secret]", "[secret]"}, {"LID", "1", "9"}, {"PortState", "Active", "Init"}}
	if d := cmp.Diff(want, Diff(&a, &b)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := Diff(&a, &a); d != nil {
		t.Errorf("a value differs from itself: %v", d)
	}
	x, y := PKeyTable{PKey: [32]ib.PKey{3: 0x8001}}, PKeyTable{}
	if d := cmp.Diff([]Difference{{"PKey[3]", "0x8001", "0x0000"}}, Diff(&x, &y)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	n, m := MakeNodeDescription("a"), MakeNodeDescription("b")
	if d := cmp.Diff([]Difference{{"NodeString", `"a"`, `"b"`}}, Diff(&n, &m)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestJSON(t *testing.T) {
	got, err := LayoutOf[SMInfo]().JSON(&SMInfo{GUID: 0x10, SMKey: ib.NewSMKey(5), Priority: 3, SMState: ib.SMStandby})
	if want := `{"GUID":"0x0000000000000010","SMKey":"[secret]","ActCount":0,"Priority":3,"SMState":"Standby"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	d := MakeNodeDescription("leaf <1>")
	if got, err := LayoutOf[NodeDescription]().JSON(&d); err != nil || string(got) != `{"NodeString":"leaf \u003c1\u003e"}` {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := LayoutOf[LinearForwardingTable]().JSON(&LinearForwardingTable{Port: [64]ib.PortNum{5, 255}}); err != nil || !strings.HasPrefix(string(got), `{"Port":[5,255,0,`) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestMakeNodeDescription(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"host-7 HCA-1", "host-7 HCA-1"},
		{strings.Repeat("a", 70), strings.Repeat("a", 64)},
		{strings.Repeat("a", 63) + "ü", strings.Repeat("a", 63)},
		{"a\x00b", "a"},
	} {
		if got := MakeNodeDescription(c.in).String(); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCapabilityWords(t *testing.T) {
	c := IsSM | IsTrapSupported | 1
	if got, want := c.String(), "0x0000000b (bit 0, IsSM, IsTrapSupported)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !c.Has(IsSM) || c.Has(IsSM|IsNoticeSupported) || CapabilityMask(0).String() != "0x00000000" {
		t.Error("Has or String is wrong")
	}
	for i := 1; i < 32; i++ {
		if s := (CapabilityMask(1) << i).String(); !strings.Contains(s, "(Is") {
			t.Errorf("bit %d has no name: %s", i, s)
		}
	}
	if got, want := (IsLinkSpeedXDRSupported | 1<<6).String(), "0x1040 (bit 6, IsLinkSpeedXDRSupported)"; got != want || !IsVirtualizationSupported.Has(4) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestModifiers(t *testing.T) {
	tests := []struct {
		name      string
		got, want uint32
	}{
		{"PortInfo", PortInfoMod(7, 0), 7},
		{"PortInfo with extended speeds", PortInfoMod(7, PortInfoExtSpeeds), 0x80000007},
		{"P_KeyTable", PKeyTableMod(7, 2), 0x00070002},
		{"SLtoVL", SLtoVLMod(3, 9), 0x00000309},
		{"VLArbitration", VLArbitrationMod(VLArbHigh32, 5), 0x00040005},
		{"multicast", MulticastForwardingMod(2, 511), 0x200001FF},
	}
	for _, c := range tests {
		if c.got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, c.got, c.want)
		}
	}
}
