package ib

import "testing"

func TestParseGID(t *testing.T) {
	checkParse(t, ParseGID, []parseCase[GID]{
		{in: "fe80::2:c903:a1:b2c3", want: MakeGID(DefaultPrefix, 0x0002C90300A1B2C3)},
		{in: "::", want: GID{}},
		{in: "10.0.0.1", err: `GID "10.0.0.1": want IPv6 notation, for example fe80::2:c903:a1:b2c3`},
		{in: "fe80::1%ib0", err: `GID "fe80::1%ib0": want IPv6 notation, for example fe80::2:c903:a1:b2c3`},
		{in: "", err: `GID "": want IPv6 notation, for example fe80::2:c903:a1:b2c3`},
	})
}

func TestGIDParts(t *testing.T) {
	g := MakeGID(DefaultPrefix, 0x0002C90300A1B2C3)
	if g.Prefix() != DefaultPrefix || g.GUID() != 0x0002C90300A1B2C3 || g.IsMulticast() {
		t.Errorf("%v: prefix %v, GUID %v, multicast %v", g, g.Prefix(), g.GUID(), g.IsMulticast())
	}
	if m := (GID{0xFF, 0x12}); !m.IsMulticast() {
		t.Errorf("%v is no multicast GID", m)
	}
	if got, want := DefaultPrefix.String(), "0xfe80000000000000"; got != want {
		t.Errorf("prefix %s, want %s", got, want)
	}
	checkText(t, g)
	checkText(t, GID{})
}

func FuzzParseGID(f *testing.F) {
	fuzzParse(f, ParseGID, "fe80::1", "ff12:401b::", "::ffff:1.2.3.4", "fe80::1%x")
}
