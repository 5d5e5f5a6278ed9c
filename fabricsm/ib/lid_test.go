package ib

import "testing"

func TestParseLID(t *testing.T) {
	checkParse(t, ParseLID, []parseCase[LID]{
		{in: "1", want: 1},
		{in: "65535", want: PermissiveLID},
		{in: "0xc000", want: MinMulticastLID},
		{in: "65536", err: `LID "65536": value out of range`},
		{in: "0x10000", err: `LID "0x10000": value out of range`},
		{in: "-1", err: `LID "-1": want no sign, space or underscore`},
		{in: "", err: `LID "": want no sign, space or underscore`},
		{in: "c000", err: `LID "c000": want a decimal number, or 0x and hexadecimal digits`},
	})
}

func TestLIDRanges(t *testing.T) {
	tests := []struct {
		lid                LID
		unicast, multicast bool
	}{
		{0, false, false},
		{1, true, false},
		{0xBFFF, true, false},
		{0xC000, false, true},
		{0xFFFE, false, true},
		{0xFFFF, false, false},
	}
	for _, c := range tests {
		if c.lid.IsUnicast() != c.unicast || c.lid.IsMulticast() != c.multicast {
			t.Errorf("%v: unicast %v multicast %v", c.lid, c.lid.IsUnicast(), c.lid.IsMulticast())
		}
		checkText(t, c.lid)
	}
}

func FuzzParseLID(f *testing.F) { fuzzParse(f, ParseLID, "1", "0xffff", "1_0", " 1") }
