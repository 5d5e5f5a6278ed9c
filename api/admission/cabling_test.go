package admission

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

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
		return records.Nodes().Put(tx, ib.GUID(0x10).String(), v1.Node{GUID: 0x10, Type: ib.NodeSwitch.String(), NumPorts: 36, Ports: []v1.Port{}})
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
