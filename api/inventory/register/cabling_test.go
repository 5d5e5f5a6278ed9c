package register

import (
	"fmt"
	"strings"
	"testing"

	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
)

func TestDoubtsAboutCables(t *testing.T) {
	for _, tt := range []struct {
		name           string
		seen, declared map[ib.GUID]int
		at             ib.Place
		want           string // in the warning; "": none
	}{
		{"a port that is seen", map[ib.GUID]int{0x10: 36}, nil, ib.Place{Switch: 0x10, Port: 36}, ""},
		{"a port beyond the last", map[ib.GUID]int{0x10: 36}, nil, ib.Place{Switch: 0x10, Port: 37}, "the fabric in sight has that switch with 36 ports: correct the number of the port"},
		{"a switch that is not there", map[ib.GUID]int{0x10: 36}, nil, ib.Place{Switch: 0x11, Port: 1}, "the fabric in sight has no such switch, and no topology is declared: correct the GUID"},
		{"neither there nor declared", map[ib.GUID]int{0x10: 36}, map[ib.GUID]int{0x12: 40}, ib.Place{Switch: 0x11, Port: 1}, "neither the fabric in sight nor the declared topology has such a switch"},
		{"not there, and declared", map[ib.GUID]int{0x10: 36}, map[ib.GUID]int{0x12: 40}, ib.Place{Switch: 0x12, Port: 40}, ""},
		{"declared with fewer ports", map[ib.GUID]int{0x10: 36}, map[ib.GUID]int{0x12: 40}, ib.Place{Switch: 0x12, Port: 41}, "the declared topology has that switch with 40 ports"},
		{"declared with more ports than are seen", map[ib.GUID]int{0x10: 36}, map[ib.GUID]int{0x10: 64}, ib.Place{Switch: 0x10, Port: 64}, ""},
		{"seen with more ports than are declared", map[ib.GUID]int{0x10: 64}, map[ib.GUID]int{0x10: 36}, ib.Place{Switch: 0x10, Port: 64}, ""},
		{"a switch whose ports are not known", map[ib.GUID]int{0x10: 0}, map[ib.GUID]int{0x10: 0}, ib.Place{Switch: 0x10, Port: 200}, ""},
		{"no switch seen, a topology declared", nil, map[ib.GUID]int{0x12: 40}, ib.Place{Switch: 0x11, Port: 1}, "and the declared topology has no such switch: correct the GUID"},
		{"no switch seen, an empty topology", nil, map[ib.GUID]int{}, ib.Place{Switch: 0x11, Port: 1}, "the declared topology has no such switch"},
		{"nothing is known", nil, nil, ib.Place{Switch: 0x11, Port: 200}, ""},
	} {
		k := switches{seen: tt.seen, declared: tt.declared}
		got := strings.Join(k.doubts([]inventory.Cable{{At: "hosts.yaml:7", Host: "h1", GUID: 0xa1, Place: tt.at}}), "")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q in it", tt.name, got, tt.want)
		}
		if got != "" && !strings.HasPrefix(got, fmt.Sprintf("hosts.yaml:7: host h1: the cable of port %v leads to %v, and ", ib.GUID(0xa1), tt.at)) {
			t.Errorf("%s: %q does not begin with the line and the cable", tt.name, got)
		}
	}
	many := make([]inventory.Cable, 250)
	for i := range many {
		many[i].Place = ib.Place{Switch: 0x11, Port: 1}
	}
	k := switches{seen: map[ib.GUID]int{0x10: 36}}
	if got := k.doubts(many); len(got) != maxWarnings || got[maxWarnings-1] != "and 151 more cables like these" {
		t.Errorf("%d warnings of 250, the last %q", len(got), got[len(got)-1])
	}
}
