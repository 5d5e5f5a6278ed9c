package keyimport

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

func TestKeyOfADevice(t *testing.T) {
	own, all := keys.New(0x1234567890ABCDEF), keys.New(0xFEDCBA0987654321)
	in := &Keys{Keys: map[ib.GUID]keys.Key{1: own, 2: {}}, Single: all}
	for _, tt := range []struct {
		name string
		in   *Keys
		guid ib.GUID
		want keys.Key
	}{
		{"named", in, 1, own},
		{"known to have none", in, 2, keys.Key{}},
		{"not named", in, 3, all},
		{"no key for all", &Keys{Keys: in.Keys}, 3, keys.Key{}},
		{"nothing is imported", nil, 1, keys.Key{}},
	} {
		if got, ok := tt.in.Key(tt.guid); got != tt.want || ok == tt.want.IsZero() {
			t.Errorf("%s: %v, %v", tt.name, got, ok)
		}
	}
	if in.IsKept(1, own) || !(&Keys{Keys: in.Keys, Keep: true}).IsKept(1, own) || (*Keys)(nil).IsKept(1, own) {
		t.Error("a device stays on its key if all are to be kept")
	}
}

func TestNeighbourFromEitherEnd(t *testing.T) {
	const adapter, near, far ib.GUID = 10, 5, 6
	from := &Keys{Behind: map[ib.Place]ib.GUID{{Switch: adapter, Port: 1}: near}}
	to := &Keys{Behind: map[ib.Place]ib.GUID{{Switch: far, Port: 3}: adapter, {Switch: near, Port: 7}: adapter}}
	if a, b := from.Neighbour(adapter, 1), to.Neighbour(adapter, 1); a != near || b != near {
		t.Errorf("neighbours %v and %v, want %v", a, b, near)
	}
	if a, b := (*Keys)(nil).Neighbour(adapter, 1), to.Neighbour(0, 1); a != 0 || b != 0 {
		t.Errorf("neighbours %v and %v, want none", a, b)
	}
	if got, ok := to.At(near, 7); got != adapter || !ok {
		t.Errorf("behind the switch is %v, %v", got, ok)
	}
}
