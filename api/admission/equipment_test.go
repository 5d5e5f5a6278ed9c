package admission

import (
	"strings"
	"testing"

	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
)

const equipped = `racks: [{id: r1, units: 42}]
switches:
- {id: leaf-1, guid: 0x10, model: MQM9700, serial: S1, rack: r1, unit: 20}
- {id: spine-1, guid: 0x20, model: MQM9700}
- {id: cold, guid: 0x11, model: MQM9790, serial: S2, spare: true, rack: r1, unit: 1}
hosts: [{id: h1, rack: r1, unit: 3, hcas: [{node_guid: 0xa0, ports: [{port: 1, guid: 0xa1, cable: leaf-1/7}]}]}]
cables: [{a: leaf-1/33, b: spine-1/1, label: T-1}]
`

// importSite imports a file, and returns the report.
func (l *lab) importSite(text string, dryRun bool) (*v1.ImportReport, error) {
	l.t.Helper()
	return l.svc.ImportInventory(l.t.Context(), "alice", []inventory.File{{Name: "site.yaml", Data: []byte(text)}}, v1.RepairTicket{}, dryRun)
}

// TestEquipment imports racks, switches and cables, all or nothing, and exports them.
func TestEquipment(t *testing.T) {
	t.Parallel()
	l := newLab(t, member.Open(t))
	if r, err := l.importSite(equipped, true); err != nil || len(r.Equipment) != 5 || r.Revision != 0 {
		t.Fatalf("dry run: %+v, %v", r, err)
	}
	if w, err := l.svc.Layout().Switches(t.Context(), v1.SwitchQuery{}); err != nil || len(w.Items) != 0 {
		t.Fatalf("after a dry run: %+v, %v", w, err)
	}
	if r, err := l.importSite(equipped, false); err != nil || r.Revision == 0 || r.Equipment[4].Object != "rack r1 U20 leaf-1 port 33 (17/1) ↔ spine-1 port 1 (1/1)" {
		t.Fatalf("import: %+v, %v", r, err)
	}
	file, err := l.svc.ExportInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.importSite(string(file), false)
	if err != nil || len(r.Equipment)+len(r.Added)+len(r.Changed) != 0 || r.Unchanged != 1 {
		t.Errorf("an export changes something: %+v, %v\n%s", r, err, file)
	}
	if _, err := l.importSite(equipped+"- {a: leaf-1/7, b: spine-1/2}\n", false); err == nil || !strings.Contains(err.Error(), "nothing was imported") {
		t.Errorf("a switch port with two cables: %v", err)
	}
	r, err = l.importSite("cables: [{guid: 0xa1, switch: leaf-1, port: 8}]", true)
	if err != nil || len(r.Changed) != 1 || r.Changed[0].Where != "rack r1 U3 h1" || !strings.Contains(r.Changed[0].Fields[0], "now 0x0000000000000010/8 (rack r1 U20 leaf-1 port 8 (4/2))") {
		t.Errorf("a cable in physical terms: %+v, %v", r, err)
	}
}

// TestReplacedSwitchIsInInventory: a switch that replaces another stands in its place, with its cables, and leaves stock.
func TestReplacedSwitchIsInInventory(t *testing.T) {
	t.Parallel()
	l := newLab(t, member.Open(t))
	if _, err := l.importSite(equipped, false); err != nil {
		t.Fatal(err)
	}
	if _, err := l.svc.MoveCables(t.Context(), "alice", 0x10, 0x20, "RMA-1"); err == nil || !strings.Contains(err.Error(), "switch spine-1 with GUID 0x0000000000000020 is in use") {
		t.Errorf("a switch in use replaces another: %v", err)
	}
	if n, err := l.svc.MoveCables(t.Context(), "alice", 0x10, 0x11, "RMA-1"); err != nil || n != 1 {
		t.Fatalf("%d hosts, %v", n, err)
	}
	w, err := l.svc.Layout().Switch(t.Context(), "leaf-1")
	if err != nil || w.GUID != 0x11 || w.Serial != "S2" || w.Model != "MQM9790" || w.Where != "rack r1 U20 leaf-1" || w.Cables != 2 {
		t.Errorf("got %+v, %v", w, err)
	}
	if spares, err := l.svc.Layout().Spares(t.Context(), v1.PageQuery{}); err != nil || len(spares.Items) != 0 {
		t.Errorf("in stock: %+v, %v", spares, err)
	}
	file, err := l.svc.ExportInventory(t.Context())
	if err != nil || !strings.Contains(string(file), `{a: "leaf-1/33", b: "spine-1/1", label: "T-1"}`) || strings.Contains(string(file), "0x0000000000000010") {
		t.Errorf("%v\n%s", err, file)
	}
}
