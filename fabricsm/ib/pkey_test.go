package ib

import "testing"

func TestParsePKey(t *testing.T) {
	checkParse(t, ParsePKey, []parseCase[PKey]{
		{in: "0x7fff", want: DefaultPKeyLimited},
		{in: "0xFFFF", want: DefaultPKeyFull},
		{in: "0x1", want: 1},
		{in: "32767", err: `P_Key "32767": want 0x and hexadecimal digits`},
		{in: "0x10000", err: `P_Key "0x10000": value out of range`},
		{in: "0x08001", err: `P_Key "0x08001": value out of range`},
	})
}

func TestPKeyMembership(t *testing.T) {
	k := PKey(0x8123)
	if !k.IsFull() || k.Base() != 0x0123 || k.Limited() != 0x0123 || k.Limited().Full() != k {
		t.Errorf("%v: full %v, base %v, limited %v", k, k.IsFull(), k.Base(), k.Limited())
	}
	for _, c := range []PKey{0, 0x8000} {
		if c.Valid() {
			t.Errorf("%v is valid, its base is 0", c)
		}
	}
	checkText(t, k)
	checkText(t, PKey(0))
}

func TestPKeyMatches(t *testing.T) {
	tests := []struct {
		name string
		a, b PKey
		want bool
	}{
		{"full and full", 0x8001, 0x8001, true},
		{"full and limited", 0x8001, 0x0001, true},
		{"limited and limited", 0x0001, 0x0001, false},
		{"other partition", 0x8001, 0x8002, false},
		{"empty entries", 0x0000, 0x0000, false},
		{"base 0 full", 0x8000, 0x8000, false},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if c.a.Matches(c.b) != c.want || c.b.Matches(c.a) != c.want {
				t.Errorf("%v and %v: %v and %v, want %v", c.a, c.b, c.a.Matches(c.b), c.b.Matches(c.a), c.want)
			}
		})
	}
}

func FuzzParsePKey(f *testing.F) { fuzzParse(f, ParsePKey, "0x7fff", "0x0", "0xg") }
