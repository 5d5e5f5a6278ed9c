package ib

import "testing"

func TestParseServiceID(t *testing.T) {
	checkParse(t, ParseServiceID, []parseCase[ServiceID]{
		{in: "0x1000000000000001", want: 0x1000000000000001},
		{in: "0x1", want: 1},
		{in: "", err: `ServiceID "": want 0x and hexadecimal digits`},
		{in: "12", err: `ServiceID "12": want 0x and hexadecimal digits`},
		{in: "0x10000000000000000", err: `ServiceID "0x10000000000000000": value out of range`},
	})
	for _, s := range []ServiceID{0, 1, ^ServiceID(0)} {
		checkText(t, s)
	}
}

func FuzzParseServiceID(f *testing.F) { fuzzParse(f, ParseServiceID, "0x1000000000000001", "0x") }
