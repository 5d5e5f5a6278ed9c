package ib_test

import (
	"testing"

	"portcullis/fabricsm/ib"
)

func TestPKeyRange(t *testing.T) {
	for _, tt := range []struct {
		text string
		want ib.PKeyRange
		ok   bool
	}{
		{"0x0100-0x01ff", ib.PKeyRange{First: 0x100, Last: 0x1FF}, true},
		{"0x7", ib.PKeyRange{First: 7, Last: 7}, true},
		{"0x1-0x7ffe", ib.PKeyRange{First: 1, Last: 0x7FFE}, true},
		{"0x0-0x10", ib.PKeyRange{}, false},
		{"0x10-0x7fff", ib.PKeyRange{}, false},
		{"0x8001-0x8010", ib.PKeyRange{}, false},
		{"0x1-0x8001", ib.PKeyRange{}, false},
		{"0x20-0x10", ib.PKeyRange{}, false},
		{"256-511", ib.PKeyRange{}, false},
		{"0x1-0x2-0x3", ib.PKeyRange{}, false},
		{"", ib.PKeyRange{}, false},
	} {
		got, err := ib.ParsePKeyRange(tt.text)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: %v, %v; want %v, ok %v", tt.text, got, err, tt.want, tt.ok)
		}
		if again, err := ib.ParsePKeyRange(got.String()); tt.ok && (err != nil || again != got) {
			t.Errorf("%q is written as %q, which reads as %v, %v", tt.text, got, again, err)
		}
	}
	r := ib.PKeyRange{First: 0x10, Last: 0x20}
	for k, want := range map[ib.PKey]bool{0xF: false, 0x10: true, 0x8020: true, 0x21: false, 0xFFFF: false} {
		if r.Contains(k) != want {
			t.Errorf("%v contains %v: %v", r, k, !want)
		}
	}
}
