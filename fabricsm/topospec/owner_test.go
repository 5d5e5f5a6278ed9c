package topospec_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec/topospectest"
)

// TestOther attributes port GUIDs, with and without names in the specification.
func TestOther(t *testing.T) {
	r := topospectest.Revision(t, topospectest.Small())
	one, two, leaf := topospectest.Device(t, r, "host-0001 mlx5_1"), topospectest.Device(t, r, "host-0002 mlx5_1"), topospectest.Device(t, r, "leaf-1")
	named := topospectest.Device(t, r, "host-0003 mlx5_1")
	named.PortGUIDs = []ib.GUID{0x00aa000000000007}
	s := topospectest.Spec(t, r)
	for _, tt := range []struct {
		name string
		own  ib.GUID
		port ib.GUID
		want ib.GUID // 0: none
	}{
		{"its node GUID", one.GUID, one.GUID, 0},
		{"the next", one.GUID, one.GUID + 1, 0},
		{"one port, far above", one.GUID, one.GUID + 3, 0},
		{"nobody's", one.GUID, 0x00bb000000000001, 0},
		{"another's node GUID", one.GUID, two.GUID, two.GUID},
		{"what follows another", one.GUID, two.GUID + 1, two.GUID},
		{"a switch's", one.GUID, leaf.GUID, leaf.GUID},
		{"what follows a switch", one.GUID, leaf.GUID + 1, 0},
		{"a named one", one.GUID, 0x00aa000000000007, named.GUID},
		{"its named one", named.GUID, 0x00aa000000000007, 0},
		{"what follows who names his", one.GUID, named.GUID + 1, 0},
		{"of a stranger", 0x00cc000000000001, two.GUID + 1, two.GUID},
		{"below all", one.GUID, 1, 0},
		{"zero", one.GUID, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := s.Other(s.DeviceByGUID(tt.own), tt.port)
			if want := s.DeviceByGUID(tt.want); got != want {
				t.Errorf("it belongs to device %d, want %d", got, want)
			}
		})
	}
}
