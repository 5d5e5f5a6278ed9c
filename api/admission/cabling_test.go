package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/ledger"
	"portcullis/api/inventory"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
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

// TestImportWarnsOfCables: an import with a doubtful cable is taken, and says so; so does the same import once more, and a
// dry run of it.
func TestImportWarnsOfCables(t *testing.T) {
	l := newLab(t, member.Open(t))
	var declared map[ib.GUID]int
	l.options = func(o *Options) {
		o.Declared = func(context.Context, store.Reader) (map[ib.GUID]int, error) { return declared, nil }
	}
	l.restart()
	files := []inventory.File{{Name: "hosts.yaml", Data: []byte(`hosts:
- id: right
  hcas: [{node_guid: 0xa0, ports: [{port: 1, guid: 0xa1, cable: 0x10/1}]}]
- id: wrong
  hcas:
  - {node_guid: 0xb0, ports: [{port: 1, guid: 0xb1}]}
  - {node_guid: 0xc0, ports: [{port: 1, guid: 0xc1, cable: 0x0011223344556677/200}]}
`)}, {Name: "cables.yaml", Data: []byte("cables:\n- {guid: 0xb1, switch: 0x10, port: 200}\n")}}
	imported := func(dry bool) []string {
		t.Helper()
		r, err := l.svc.ImportInventory(t.Context(), "alice", files, v1.RepairTicket{}, dry)
		if err != nil {
			t.Fatal(err)
		}
		return r.Warnings
	}
	if got := imported(true); len(got) != 0 {
		t.Errorf("before anything is seen: %q", got)
	}
	_, err := l.store.Update(t.Context(), func(tx *store.Tx) error {
		return ledger.Nodes().Put(tx, ib.GUID(0x10).String(), v1.Node{GUID: 0x10, Type: ib.NodeSwitch.String(), NumPorts: 36, Ports: []v1.Port{}})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cables.yaml:2: host wrong: the cable of port 0x00000000000000b1 leads to 0x0000000000000010/200, and the fabric in sight has that switch with 36 ports: correct the number of the port",
		"hosts.yaml:7: host wrong: the cable of port 0x00000000000000c1 leads to 0x0011223344556677/200, and the fabric in sight has no such switch, and no topology is declared: correct the GUID; if the switch is installed later, nothing is to be done, and the host is admitted once its port is seen there",
	}
	for _, dry := range []bool{true, false, false} {
		if d := cmp.Diff(want, imported(dry)); d != "" {
			t.Errorf("dry run %v (-want +got):\n%s", dry, d)
		}
	}
	if h := l.host("wrong"); h.HCAs[1].Ports[0].Cabled != (ib.Place{Switch: 0x0011223344556677, Port: 200}) {
		t.Errorf("the cable was not taken: %+v", h.HCAs[1])
	}
	declared = map[ib.GUID]int{0x0011223344556677: 254}
	if got := imported(false); len(got) != 1 || !strings.HasPrefix(got[0], "cables.yaml:2") {
		t.Errorf("with the other switch declared: %q", got)
	}
}
