package admission

import (
	"errors"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// TestMoveCables: a switch was replaced. Its hosts keep their evidence; their grants at the old one are withdrawn, and they
// are admitted at the new one once they are seen there. No other host is changed.
func TestMoveCables(t *testing.T) {
	const from, to ib.GUID = 0x10, 0x99
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("c1")
	l.admit("host-1", "c1")
	before := l.ports("host-1")
	n, err := l.svc.MoveCables(l.ctx(), "bob", from, to, "rma T-8")
	if err != nil || n != 2 {
		t.Fatalf("%d hosts, %v", n, err)
	}
	for i, p := range l.ports("host-1") {
		if want := (ib.Place{Switch: to, Port: before[i].Cable.Port}); p.Cable != want {
			t.Errorf("port %v is cabled to %v, want %v", p.GUID, p.Cable, want)
		}
	}
	if p := l.host("host-1").Status.Phase; p == v1.PhaseAdmitted {
		t.Error("the host is admitted where nobody has seen it")
	}
	grants, _, err := records.Grants().List(l.ctx(), l.store, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if !g.Value.Withdrawn {
			t.Errorf("the grant %s stays", g.Key)
		}
	}
	l.fabric.place(t, l.ports("host-1")...)
	l.settle()
	l.fabric.program(t)
	l.settle()
	if p := l.host("host-1").Status.Phase; p != v1.PhaseAdmitted {
		t.Errorf("at the new switch the host is %s: %+v", p, l.host("host-1").Status)
	}
	if n, err := l.svc.MoveCables(l.ctx(), "bob", from, to, "again"); err != nil || n != 0 {
		t.Errorf("moved again: %d, %v", n, err)
	}
	if log := l.auditLog(); !strings.Contains(log, "bob inventory.recable inventory : 2 hosts from switch") {
		t.Errorf("the audit log does not tell:\n%s", log)
	}
}

// TestMoveCablesOntoAnother: a place that inventory has another host at is refused, and
// nothing is changed.
func TestMoveCablesOntoAnother(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	cable := "cables:\n- {guid: " + l.ports("host-2")[0].GUID.String() + ", switch: 0x99, port: 1}\n"
	if _, err := l.svc.ImportInventory(l.ctx(), "alice", []inventory.File{{Name: "c.yaml", Data: []byte(cable)}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	_, err := l.svc.MoveCables(l.ctx(), "bob", 0x10, 0x99, "rma T-8")
	if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != "place_taken" {
		t.Errorf("error %v, want place_taken", err)
	}
	if at := l.ports("host-1")[0].Cable.Switch; at != 0x10 {
		t.Errorf("host-1 is cabled to %v", at)
	}
}

// TestEvidence: a host's proof counts while admission counts it.
func TestEvidence(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(1)
	l.tenantWithClusters("c1")
	if p, err := l.svc.Evidence(l.ctx(), "host-1"); err != nil || !p.Verified.IsZero() {
		t.Errorf("before it attested: %+v, %v", p, err)
	}
	l.admit("host-1", "c1")
	p, err := l.svc.Evidence(l.ctx(), "host-1")
	hca := l.hosts["host-1"].Statement.HCAs[0]
	if err != nil || p.Host != "host-1" || p.Verified.IsZero() || len(p.HCAs) == 0 || p.HCAs[0] != (attestation.ProvenHCA{NodeGUID: hca.NodeGUID, PSID: hca.PSID}) {
		t.Errorf("%+v, %v", p, err)
	}
	l.clock = l.clock.Add(time.Minute)
	if _, err := l.svc.Release(l.ctx(), "alice", "host-1"); err != nil {
		t.Fatal(err)
	}
	if p, err := l.svc.Evidence(l.ctx(), "host-1"); err != nil || !p.Verified.IsZero() {
		t.Errorf("after its release: %+v, %v", p, err)
	}
	if p, err := l.svc.Evidence(l.ctx(), "nobody"); err != nil || !p.Verified.IsZero() {
		t.Errorf("of nobody: %+v, %v", p, err)
	}
}
