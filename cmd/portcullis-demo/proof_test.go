package main

import (
	"testing"

	"portcullis/fabricsm/ib"
)

func TestProofFailsOnAnyDifference(t *testing.T) {
	for _, c := range []struct {
		name  string
		found []ib.PKey
		ok    bool
	}{
		{"exact", []ib.PKey{0x7fff, 0x8001}, true},
		{"other order", []ib.PKey{0x8001, 0x7fff}, true},
		{"tenant key missing", []ib.PKey{0x7fff}, false},
		{"foreign key", []ib.PKey{0x7fff, 0x8001, 0x8002}, false},
		{"full member of the default partition", []ib.PKey{0xffff, 0x8001}, false},
		{"limited member of the tenant's", []ib.PKey{0x7fff, 0x0001}, false},
		{"empty", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := proof{found: c.found, want: wantedKeys(0x0001)}
			if got := p.ok(); got != c.ok {
				t.Errorf("got %v, want %v", got, c.ok)
			}
		})
	}
}
