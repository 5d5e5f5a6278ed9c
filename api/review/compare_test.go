package review

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func TestCompare(t *testing.T) {
	place := func(n ib.PortNum) ib.Place { return ib.Place{Switch: 9, Port: n} }
	wanted := []Wanted{
		{"both", 1, place(1), 0x8001},
		{"released", 2, place(2), 0x8001},
		{"form", 3, place(3), 0x0003},
		{"off", 4, place(4), 0x8001},
		{"kept while off", 5, place(5), 0x8001},
	}
	found := []Found{
		{Place: place(1), GUID: 1, PKeys: []ib.PKey{0x8001, 0x8002}},
		{Place: place(3), GUID: 3, PKeys: []ib.PKey{0x8003}},
		{Place: place(5), PKeys: []ib.PKey{0x8001}},
		{Place: place(6), GUID: 6, PKeys: []ib.PKey{0x8001}},
	}
	owner := func(g ib.GUID, _ ib.Place) string { return map[ib.GUID]string{1: "both"}[g] }
	seen := func(g ib.GUID, _ ib.Place) bool { return g < 4 }
	got, agreed := Compare(wanted, found, owner, seen)
	want := []Difference{
		{FabricOnly, "both", 1, place(1), 0x8002},
		{StateOnly, "released", 2, place(2), 0x8001},
		{OtherForm, "form", 3, place(3), 0x0003},
		{Unseen, "off", 4, place(4), 0x8001},
		{FabricOnly, "", 6, place(6), 0x8001},
	}
	if d := cmp.Diff(want, got); d != "" || agreed != 2 {
		t.Errorf("%d agreed, want 2 (-want +got):\n%s", agreed, d)
	}
}
