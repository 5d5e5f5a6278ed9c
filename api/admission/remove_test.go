package admission

import (
	"fmt"
	"strings"
	"testing"

	"portcullis/api/ifmatch"
	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
)

// TestRemovedHostFreesWhatItHeld removes a host that was admitted. It is refused until each P_Key is proven absent. Then
// another host gets the adapter; the id comes back with the same EK only, and with its count of assignments.
func TestRemovedHostFreesWhatItHeld(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("red")
	l.admit("host-1", "red")
	exported, err := l.svc.ExportInventory(l.ctx())
	if err != nil {
		t.Fatal(err)
	}
	remove := func(why string) error {
		return l.svc.RemoveHost(l.ctx(), "alice", "host-1", v1.HostRemoval{Reason: why})
	}
	refused := func(err error, want string) {
		t.Helper()
		if code(err) != want {
			t.Fatalf("%v, want code %q", err, want)
		}
	}
	refused(remove(" "), "reason_missing")
	refused(remove("scrapped"), "host_assigned")
	if _, err := l.svc.Release(l.ctx(), "alice", "host-1"); err != nil {
		t.Fatal(err)
	}
	err = remove("scrapped")
	refused(err, "host_granted")
	if !strings.Contains(err.Error(), "not proven absent from switch port") {
		t.Errorf("told %v", err)
	}
	l.fabric.program(t)
	l.settle()
	refused(l.svc.RemoveHost(ifmatch.With(l.ctx(), []string{"0"}), "alice", "host-1", v1.HostRemoval{Reason: "late"}), v1.CodeChanged)
	refused(remove("scrapped"), "")
	refused(remove("scrapped"), "host_unknown")
	if l.audited("host.remove") != 1 {
		t.Errorf("the audit log has %d removals", l.audited("host.remove"))
	}

	ek, take := l.hosts["host-1"].EKDigest(), l.hosts["host-1"].Statement.HCAs[0]
	file := func(id, ek string) error {
		var y strings.Builder
		fmt.Fprintf(&y, "hosts:\n- id: %s\n  ek_sha256: %s\n  hcas:\n  - node_guid: %v\n    ports:\n", id, ek, take.NodeGUID)
		for i, p := range take.Ports {
			fmt.Fprintf(&y, "    - {port: %d, guid: %v, cable: 0x10/%d}\n", p.Num, p.GUID, i+1)
		}
		_, err := l.svc.ImportInventory(l.ctx(), "alice", []inventory.File{{Name: "f.yaml", Data: []byte(y.String())}}, v1.RepairTicket{}, false)
		return err
	}
	refused(file("host-1", strings.Repeat("0a", 32)), "repair_needed")
	refused(file("spare", strings.Repeat("0b", 32)), "")
	refused(l.svc.RemoveHost(l.ctx(), "alice", "spare", v1.HostRemoval{Reason: "moved on"}), "")
	refused(file("host-1", ek), "")
	if h := l.host("host-1"); h.Epoch != 1 || h.Status.Phase != v1.PhaseQuarantined || !h.Status.Attested.IsZero() {
		t.Errorf("the host that came back is %+v", h)
	}
	again, err := l.svc.ExportInventory(l.ctx())
	if err != nil || string(again) != string(exported) {
		t.Errorf("exported (%v)\n%s\nwant\n%s", err, again, exported)
	}
}

// TestExportRoundTrips imports what was exported: nothing changes, and an empty service has the same inventory then.
func TestExportRoundTrips(t *testing.T) {
	l := newLab(t, member.Open(t))
	odd := `hosts:
- id: "007"
  rack: "row \"7\": #x\tü\u2028"
  class: gpu-node
  hcas:
  - node_guid: 0x0000000000000700
    system_image_guid: 0x0000000000000710
    ports:
    - {port: 1, guid: 0x0000000000000701, cable: 0x30/1, aliases: [0x0000000000000702, 0x0000000000000703]}
    - {port: 2, guid: 0x0000000000000704}
`
	load := func(data []byte, dryRun bool) *v1.ImportReport {
		t.Helper()
		r, err := l.svc.ImportInventory(l.ctx(), "alice", []inventory.File{{Name: "f.yaml", Data: data}}, v1.RepairTicket{}, dryRun)
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		return r
	}
	load([]byte(odd), false)
	l.addHosts(3)
	exported, err := l.svc.ExportInventory(l.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if r := load(exported, true); r.Unchanged != 4 || len(r.Added)+len(r.Changed)+len(r.NotInFile) > 0 {
		t.Fatalf("importing the export would do %+v", r)
	}
	if got := l.host("007").Rack; got != "row \"7\": #x\tü\u2028" {
		t.Errorf("rack %q", got)
	}
	l = newLab(t, member.Open(t))
	load(exported, false)
	if again, err := l.svc.ExportInventory(l.ctx()); err != nil || string(again) != string(exported) {
		t.Errorf("exported again (%v)\n%s\nwant\n%s", err, again, exported)
	}
}
