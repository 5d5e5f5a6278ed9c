package admission

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
)

var rma7 = v1.RepairTicket{Ticket: "RMA-7", Reason: "the board was replaced"}

// row is how a file declares host n, with an EK and its adapters as they are, or with
// GUIDs that are moved.
func (l *lab) row(n int, ek string, move int) string {
	id := fmt.Sprintf("host-%d", n)
	y := fmt.Sprintf("- id: %s\n  ek_sha256: %q\n  hcas:\n", id, ek)
	for _, a := range l.host(id).HCAs {
		y += fmt.Sprintf("  - node_guid: %#x\n    ports:\n", int(a.NodeGUID)+move)
		for _, p := range a.Ports {
			y += fmt.Sprintf("    - {port: %d, guid: %#x, cable: %v}\n", p.Num, int(p.GUID)+move, p.Cabled)
		}
	}
	return y
}

func (l *lab) importAs(actor, rows string, t v1.RepairTicket, dryRun bool) (*v1.ImportReport, error) {
	return l.svc.ImportInventory(l.ctx(), actor, []inventory.File{{Name: "hosts.yaml", Data: []byte("hosts:\n" + rows)}}, t, dryRun)
}

func (l *lab) wantCode(err error, code string) {
	l.t.Helper()
	if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != code {
		l.t.Errorf("got %v, want code %s", err, code)
	}
}

func (l *lab) wantEK(host, ek string) {
	l.t.Helper()
	if got := l.host(host).EK; got != ek {
		l.t.Errorf("%s has EK %.8s, want %.8s", host, got, ek)
	}
}

// known returns a site of two hosts of which the first was admitted and released, and a TPM
// that no host has yet.
func known(t *testing.T) (l *lab, spare *attesttest.Host) {
	t.Helper()
	l = awaiting(t)
	l.admit("host-1", "c1")
	l.must(l.svc.Release(t.Context(), "alice", "host-1"))
	l.fabric.program(t)
	l.settle()
	return l, l.tpm("host-1", 91)
}

// tpm returns a host with a TPM of its own and the adapters of the host that it is to be.
func (l *lab) tpm(id string, n int) *attesttest.Host {
	l.t.Helper()
	h, err := l.vendor.NewHost(id, n)
	if err != nil {
		l.t.Fatal(err)
	}
	h.Statement.HCAs = l.hosts[id].Statement.HCAs
	return h
}

func (l *lab) confirm(actor, host string) error {
	l.t.Helper()
	r, err := l.svc.Repair(l.ctx(), host)
	if err != nil {
		return err
	}
	_, err = l.svc.ConfirmRepair(l.ctx(), actor, host, v1.RepairConfirm{Digest: r.Digest})
	return err
}

// TestEKOfKnownHostNeedsTwo plays an attacker with one operator's credential, and then a repair as it should be.
func TestEKOfKnownHostNeedsTwo(t *testing.T) {
	l, spare := known(t)
	old, ek := l.hosts["host-1"].EKDigest(), spare.EKDigest()
	row := l.row(1, ek, 0)

	_, err := l.importAs("mallory", row, v1.RepairTicket{}, false)
	l.wantCode(err, "repair_needed")
	_, err = l.importAs("mallory", l.row(1, "", 0), v1.RepairTicket{}, false)
	l.wantCode(err, "repair_needed")
	_, err = l.importAs("mallory", l.row(1, ek, 0x1000), v1.RepairTicket{}, false) // GUIDs at once
	l.wantCode(err, "repair_needed")
	_, err = l.importAs("mallory", row, v1.RepairTicket{Ticket: "RMA-7"}, false)
	l.wantCode(err, "repair_needed")
	_, err = l.importAs("mallory", row, v1.RepairTicket{Ticket: "RMA 7", Reason: "x"}, false)
	l.wantCode(err, "ticket_invalid")
	report, err := l.importAs("mallory", row, v1.RepairTicket{}, true)
	if err != nil || len(report.Staged) != 1 || len(report.Changed) != 0 {
		t.Errorf("dry run: %+v, %v, want one row staged", report, err)
	}
	l.wantEK("host-1", old)
	if list, err := l.svc.Repairs(t.Context(), v1.PageQuery{}); err != nil || len(list.Items) != 0 {
		t.Fatalf("waiting after refusals: %+v, %v", list, err)
	}

	report, err = l.importAs("olga", row, rma7, false)
	if err != nil || len(report.Staged) != 1 || report.Staged[0].By != "olga" || len(report.Changed)+len(report.NotInFile) != 1 {
		t.Fatalf("staged: %+v, %v", report, err)
	}
	l.wantEK("host-1", old)
	// The same file again, from any operator, changes nothing.
	if report, err = l.importAs("mallory", row, v1.RepairTicket{}, false); err != nil || len(report.Staged) != 1 || report.Staged[0].By != "olga" {
		t.Errorf("the same file again: %+v, %v", report, err)
	}
	_, err = l.importAs("mallory", l.row(1, l.tpm("host-1", 92).EKDigest(), 0), v1.RepairTicket{Ticket: "X", Reason: "x"}, false)
	l.wantCode(err, "repair_open")

	r, err := l.svc.Repair(t.Context(), "host-1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.svc.ConfirmRepair(t.Context(), "olga", "host-1", v1.RepairConfirm{Digest: r.Digest})
	l.wantCode(err, "two_persons")
	for _, digest := range []string{"", r.Digest[:11], "0" + r.Digest[1:63] + "x", r.Digest + "0"} {
		_, err = l.svc.ConfirmRepair(t.Context(), "peter", "host-1", v1.RepairConfirm{Digest: digest})
		l.wantCode(err, "repair_changed")
	}
	_, err = l.svc.ConfirmRepair(t.Context(), "peter", "host-2", v1.RepairConfirm{Digest: r.Digest})
	l.wantCode(err, "repair_unknown")
	_, err = l.svc.ConfirmRepair(t.Context(), "peter", "../head", v1.RepairConfirm{Digest: r.Digest})
	l.wantCode(err, "repair_unknown")
	l.wantEK("host-1", old)
	if _, err = l.svc.ConfirmRepair(t.Context(), "peter", "host-1", v1.RepairConfirm{Digest: r.Digest[:12], Reason: "seen in rack 4"}); err != nil {
		t.Fatal(err)
	}
	l.wantEK("host-1", ek)
	l.wantCode(l.confirm("peter", "host-1"), "repair_unknown")
	for _, want := range []string{
		"olga inventory.repair.stage host/host-1 RMA-7", "peter inventory.repair.confirm host/host-1 RMA-7: staged by olga: ek_sha256: was " + old,
		"; confirmed: seen in rack 4",
	} {
		if log := l.auditLog(); !strings.Contains(log, want) {
			t.Errorf("the audit log does not have %q:\n%s", want, log)
		}
	}

	if denied, err := l.svc.DeniedEKs(t.Context(), v1.PageQuery{}); err != nil || len(denied.Items) != 1 || denied.Items[0].EK != old || denied.Items[0].Ticket != "RMA-7" || denied.Items[0].Host != "host-1" {
		t.Errorf("denied: %+v, %v, want the EK of before", denied, err)
	}

	// The TPM that was taken out opens no session; the new one attests.
	l.must(l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
	_, err = l.attest("host-1")
	wantRefusal(t, err, attest.ReasonEKRevoked)
	l.hosts["host-1"] = spare
	if _, err := l.attest("host-1"); err != nil {
		t.Errorf("the new TPM: %v", err)
	}
}

// TestUnknownHostIsCorrected: before anything of a host was accepted, its EK is a matter
// of registering it.
func TestUnknownHostIsCorrected(t *testing.T) {
	l := awaiting(t)
	ek := l.tpm("host-2", 92).EKDigest()
	report, err := l.importAs("olga", l.row(2, ek, 0), v1.RepairTicket{}, false)
	if err != nil || len(report.Changed) != 1 || len(report.Staged) != 0 {
		t.Fatalf("got %+v, %v", report, err)
	}
	l.wantEK("host-2", ek)
	if list, err := l.svc.DeniedEKs(t.Context(), v1.PageQuery{}); err != nil || len(list.Items) != 0 {
		t.Errorf("denied: %+v, %v, want nothing", list, err)
	}
}

// TestRepairVoidsAll: proofs of a host by its old TPM count for nothing, down to a session that is open and a ticket that
// it earned; nor do they while it holds a grant.
func TestRepairVoidsAll(t *testing.T) {
	l, spare := known(t)
	l.must(l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
	if _, err := l.importAs("olga", l.row(1, spare.EKDigest(), 0), rma7, false); err != nil {
		t.Fatal(err)
	}
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	l.fabric.program(t)
	l.settle()
	l.wantCode(l.confirm("peter", "host-1"), "host_locked")
	l.wantOwners("while the repair waits", "host-1", "host-1")
	l.must(l.svc.Release(t.Context(), "alice", "host-1"))
	l.fabric.program(t)
	l.settle()
	l.must(l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
	for _, p := range l.ports("host-1") { // so that evidence leads to no grant
		l.fabric.show(t, p.GUID, records.Port{})
	}
	result, ses := l.accepted("host-1")
	open := l.open("host-1")
	if err := l.confirm("peter", "host-1"); err != nil {
		t.Fatal(err)
	}
	_, err := l.svc.SubmitEvidence(t.Context(), open.ID, l.channel, l.answer("host-1", open))
	wantRefusal(t, err, attest.ReasonSession)
	if _, err := l.seal("host-1", ses, result); err == nil {
		t.Error("a hand-over with the old TPM is accepted")
	}
	if _, err := l.svc.HostStatusByToken(t.Context(), result.StatusToken); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("the token that the old TPM earned is good: %v", err)
	}
	h := l.host("host-1")
	if h.Status.Phase != v1.PhaseAwaiting || !h.Status.Attested.IsZero() || !strings.Contains(h.Status.Guards[1].Detail, "window is closed") {
		t.Errorf("host-1 stands as %+v, want nothing of before to count", h.Status)
	}
}

// accepted has evidence of a host accepted that is not handed over yet.
func (l *lab) accepted(host string) (*v1.AttestResult, *attest.Session) {
	l.t.Helper()
	l.hosts[host].Boot.Reset++
	empty(l.hosts[host])
	ses := l.open(host)
	r, err := l.svc.SubmitEvidence(l.ctx(), ses.ID, l.channel, l.answer(host, ses))
	if err != nil {
		l.t.Fatal(err)
	}
	return r, ses
}

// TestRegistrationsRace: many stage at once, and many confirm at once; there is one row,
// and it is confirmed once.
func TestRegistrationsRace(t *testing.T) {
	l, _ := known(t)
	rows := make([]string, 4)
	for i := range rows {
		rows[i] = l.row(1, l.tpm("host-1", 100+i).EKDigest(), 0)
	}
	count := func(do func(i int) error) (done int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range rows {
			wg.Go(func() {
				err := do(i)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					done++
				}
			})
		}
		wg.Wait()
		return done
	}
	if n := count(func(i int) error {
		_, err := l.importAs(fmt.Sprintf("op-%d", i), rows[i], v1.RepairTicket{Ticket: fmt.Sprintf("T-%d", i), Reason: "x"}, false)
		return err
	}); n != 1 {
		t.Errorf("%d of %d were staged at once, want one", n, len(rows))
	}
	list, err := l.svc.Repairs(t.Context(), v1.PageQuery{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v, want one row", list, err)
	}
	if n := count(func(int) error { return l.confirm("peter", "host-1") }); n != 1 {
		t.Errorf("confirmed %d times at once, want once", n)
	}
	l.wantEK("host-1", list.Items[0].EK)
	if denied, err := l.svc.DeniedEKs(t.Context(), v1.PageQuery{}); err != nil || len(denied.Items) != 1 || denied.Items[0].EK != l.hosts["host-1"].EKDigest() || denied.Items[0].By != "peter" {
		t.Errorf("denied: %+v, %v", denied, err)
	}
	if n := l.audited("inventory.repair.stage") + l.audited("inventory.repair.confirm"); n != 2 {
		t.Errorf("%d entries in the audit log, want one of each", n)
	}
}

// TestDeniedEKComesBack only by two persons, for whichever host, known or new.
func TestDeniedEKComesBack(t *testing.T) {
	l, spare := known(t)
	old := l.hosts["host-1"].EKDigest()
	if _, err := l.importAs("olga", l.row(1, spare.EKDigest(), 0), rma7, false); err != nil {
		t.Fatal(err)
	}
	if err := l.confirm("peter", "host-1"); err != nil {
		t.Fatal(err)
	}
	fresh := "- id: host-9\n  ek_sha256: " + old + "\n  hcas: [{node_guid: 0x900, ports: [{port: 1, guid: 0x901, cable: 0x10/60}]}]\n"
	for _, rows := range []string{l.row(2, old, 0), fresh} {
		_, err := l.importAs("mallory", rows, v1.RepairTicket{}, false)
		l.wantCode(err, "repair_needed")
		if !strings.Contains(fmt.Sprint(err), "deny list") {
			t.Errorf("%v does not say that it is on the deny list", err)
		}
	}
	report, err := l.importAs("olga", fresh, v1.RepairTicket{Ticket: "RMA-8", Reason: "repaired by the vendor"}, false)
	if err != nil || len(report.Staged) != 1 || !report.Staged[0].Denied || report.Staged[0].DeniedBy != "RMA-7" || len(report.Added) != 0 {
		t.Fatalf("got %+v, %v", report, err)
	}
	if _, err := l.svc.Host(t.Context(), "host-9"); !refusal.IsKind(err, refusal.NotFound) {
		t.Errorf("a new host with a denied EK is in inventory: %v", err)
	}
	if err := l.confirm("peter", "host-9"); err != nil {
		t.Fatal(err)
	}
	l.wantEK("host-9", old)
	if denied, err := l.svc.DeniedEKs(t.Context(), v1.PageQuery{}); err != nil || len(denied.Items) != 0 {
		t.Errorf("denied: %+v, %v, want nothing any more", denied, err)
	}
	// One EK is one host's: the row for another cannot be staged by now.
	_, err = l.importAs("olga", l.row(1, old, 0), v1.RepairTicket{Ticket: "RMA-9", Reason: "x"}, false)
	l.wantCode(err, "inventory_invalid")
}

// TestBulkImportStagesRows: of a file with many rows those that need two persons are
// staged, and the rest is taken, unless it needs what they have.
func TestBulkImportStagesRows(t *testing.T) {
	l, spare := known(t)
	third := "- id: host-3\n  ek_sha256: \"\"\n  hcas: [{node_guid: 0x900, ports: [{port: 1, guid: 0x901, cable: 0x10/60}]}]\n"
	report, err := l.importAs("olga", l.row(1, spare.EKDigest(), 0x1000)+l.row(2, l.hosts["host-2"].EKDigest(), 0)+third, rma7, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(report.Added, report.Unchanged, len(report.Changed), report.NotInFile, len(report.Staged), report.Staged[0].Host); got != "[host-3] 1 0 [] 1host-1" {
		t.Errorf("report %s", got)
	}
	if n := len(report.Staged[0].Fields); n < 7 {
		t.Errorf("the staged row tells of %d changes: %q, want EK and all GUIDs", n, report.Staged[0].Fields)
	}
	l.wantEK("host-1", l.hosts["host-1"].EKDigest())
	if err := l.confirm("peter", "host-1"); err != nil {
		t.Fatal(err)
	}
	if g := l.host("host-1").HCAs[0].NodeGUID; g != 0x0002_c903_0000_1100 {
		t.Errorf("node GUID %v after the repair", g)
	}

	// Another host is to have the switch port of one that is staged: not in one import.
	at := l.host("host-1").HCAs[0].Ports[0].Cabled
	moved := strings.ReplaceAll(l.row(1, l.tpm("host-1", 95).EKDigest(), 0), fmt.Sprint("cable: ", at), "cable: 0x10/61")
	taken := strings.ReplaceAll(third, "0x10/60", at.String())
	_, err = l.importAs("olga", moved+taken, v1.RepairTicket{Ticket: "RMA-8", Reason: "x"}, false)
	l.wantCode(err, "inventory_invalid")
	if list, err := l.svc.Repairs(t.Context(), v1.PageQuery{}); err != nil || len(list.Items) != 0 {
		t.Errorf("waiting after a refusal: %+v, %v", list, err)
	}
}

// TestRepairEnds: it goes stale with inventory, expires, and can be cancelled.
func TestRepairEnds(t *testing.T) {
	l, spare := known(t)
	stage := func() {
		t.Helper()
		if _, err := l.importAs("olga", l.row(1, spare.EKDigest(), 0), rma7, false); err != nil {
			t.Fatal(err)
		}
	}
	stage()
	if _, err := l.svc.MoveCables(t.Context(), "bob", 0x10, 0x99, "RMA-1"); err != nil {
		t.Fatal(err)
	}
	l.wantCode(l.confirm("peter", "host-1"), "repair_stale")
	_, err := l.svc.CancelRepair(t.Context(), "olga", "host-1", v1.RepairCancel{Reason: " "})
	l.wantCode(err, "reason_missing")
	if _, err := l.svc.CancelRepair(t.Context(), "olga", "host-1", v1.RepairCancel{Reason: "the switch was replaced"}); err != nil {
		t.Fatal(err)
	}
	_, err = l.svc.CancelRepair(t.Context(), "olga", "host-1", v1.RepairCancel{Reason: "again"})
	l.wantCode(err, "repair_unknown")
	stage()
	l.clock = l.clock.Add(7 * 24 * time.Hour)
	l.wantCode(l.confirm("peter", "host-1"), "repair_expired")
	l.wantEK("host-1", l.hosts["host-1"].EKDigest())
	stage() // again
	if err := l.confirm("peter", "host-1"); err != nil {
		t.Error(err)
	}
	if n := l.audited("inventory.repair.cancel"); n != 1 {
		t.Errorf("%d cancellations in the audit log", n)
	}
}

// TestAloneInALab: where the rule of two persons is off, one stages and confirms, in two
// steps.
func TestAloneInALab(t *testing.T) {
	l, spare := known(t)
	l.options = func(o *Options) { o.Approval.Alone = true }
	l.restart()
	if _, err := l.importAs("olga", l.row(1, spare.EKDigest(), 0), rma7, false); err != nil {
		t.Fatal(err)
	}
	l.wantEK("host-1", l.hosts["host-1"].EKDigest())
	if err := l.confirm("olga", "host-1"); err != nil {
		t.Error(err)
	}
	l.wantEK("host-1", spare.EKDigest())
}

// TestDeniedEKInInventory: an EK that got past the guards of inventory opens nothing all
// the same.
func TestDeniedEKInInventory(t *testing.T) {
	l := awaiting(t)
	ek := l.hosts["host-2"].EKDigest()
	if _, err := healthy(l.store).Update(t.Context(), func(tx *store.Tx) error {
		return inventory.DeniedEKs().Put(tx, ek, inventory.DeniedEK{Time: time.Unix(0, 0).UTC(), Host: "host-2", Ticket: "RMA-1", By: "peter"})
	}); err != nil {
		t.Fatal(err)
	}
	_, err := l.attest("host-2")
	wantRefusal(t, err, attest.ReasonEKRevoked)
	if _, err := l.attest("host-1"); err != nil {
		t.Errorf("another host: %v", err)
	}
}
