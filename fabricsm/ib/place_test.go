package ib

import "testing"

func TestParsePlace(t *testing.T) {
	checkParse(t, ParsePlace, []parseCase[Place]{
		{in: "0x0010000100000001/7", want: Place{0x0010000100000001, 7}},
		{in: "0x1/0", want: Place{1, 0}},
		{in: "0x0010000100000001", err: `place "0x0010000100000001": want SWITCH-GUID/PORT`},
		{in: "leaf-1/7", err: `place "leaf-1/7": GUID "leaf-1": want 0x and hexadecimal digits`},
		{in: "0x1/255", err: `place "0x1/255": port "255": value out of range`},
		{in: "0x1/7/8", err: `place "0x1/7/8": port "7/8": want a decimal number, or 0x and hexadecimal digits`},
	})
}

func TestPlaceText(t *testing.T) {
	for _, p := range []Place{{}, {0x0010000100000001, 7}, {1, 254}} {
		checkText(t, p)
	}
	if !(Place{}).IsZero() || (Place{Port: 1}).IsZero() {
		t.Error("IsZero is wrong")
	}
}

func FuzzParsePlace(f *testing.F) { fuzzParse(f, ParsePlace, "0x1/7", "/", "0x1/255", "1:2:3:4/5") }
