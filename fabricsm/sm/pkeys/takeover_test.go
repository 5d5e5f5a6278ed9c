package pkeys

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
)

// Inherited notes what a port keeps.
func (*core) Inherited(*Inherited) {}

// TestUsable: a port can use of a partition what all its tables let it.
func TestUsable(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  ib.PKey
		in   []partition.Table
		want ib.PKey // 0: none
	}{
		{"full in both", 0x8001, []partition.Table{{0x7fff, 0x8001}, {0x8001}}, 0x8001},
		{"limited in one", 0x8001, []partition.Table{{0x8001}, {0x0001}}, 0x0001},
		{"limited in the other", 0x0001, []partition.Table{{0x0001}, {0x8001}}, 0x0001},
		{"in one alone", 0x8001, []partition.Table{{0x8001}, {0x8002}}, 0},
		{"both forms in one table", 0x0001, []partition.Table{{0x0001, 0x8001}}, 0x8001},
		{"the default partition", 0x7fff, []partition.Table{{0x7fff, 0xffff}}, 0},
		{"an empty entry", 0, []partition.Table{{0, 0x8001}}, 0},
		{"the invalid full form", 0x8000, []partition.Table{{0x8000}}, 0},
	} {
		if got, ok := usable(tt.key, tt.in); got != tt.want || ok != (tt.want != 0) {
			t.Errorf("%s: usable %v, %v, want %v", tt.name, got, ok, tt.want)
		}
	}
}
