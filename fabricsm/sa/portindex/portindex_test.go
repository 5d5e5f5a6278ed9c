package portindex_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
)

func TestCommonNeedsAFullMember(t *testing.T) {
	port := func(keys ...ib.PKey) *portindex.EndPort { return &portindex.EndPort{PKeys: keys} }
	for _, c := range []struct {
		name string
		x, y *portindex.EndPort
		want ib.PKey
	}{
		{"both full", port(0x8001), port(0x8001), 0x8001},
		{"source limited", port(0x0001), port(0x8001), 0x0001},
		{"both limited", port(0x0001), port(0x0001), 0},
		{"own partition first", port(0x8001, 0x7fff), port(0x8001, 0xffff), 0x8001},
		{"only the default", port(0x8001, 0x7fff), port(0x8002, 0xffff), 0x7fff},
		{"nothing", port(0x8001), port(0x8002), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := portindex.Common(c.x, c.y); got != c.want || ok != (c.want != 0) {
				t.Errorf("Common = %v, %v, want %v", got, ok, c.want)
			}
		})
	}
}
