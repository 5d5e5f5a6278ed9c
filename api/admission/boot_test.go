package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/eventlog"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/reference"
)

// assigned is a site with one host in a cluster.
func assigned(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, member.Open(t))
	l.addHosts(1)
	l.tenantWithClusters("train")
	l.assign("host-1", "train")
	return l
}

// assign opens a provisioning window.
func (l *lab) assign(id, cluster string) {
	l.t.Helper()
	if _, err := l.svc.Assign(l.ctx(), "alice", id, v1.Assignment{Cluster: cluster}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) refused(err error, want attest.Reason) {
	l.t.Helper()
	if no, ok := errors.AsType[*attest.Refusal](err); !ok || no.Code != want {
		l.t.Errorf("%v, want it refused with reason %s", err, want)
	}
}

// keptBoot is what is kept of a host's last boot, nil if nothing is.
func (l *lab) keptBoot(host string) *reference.Boot {
	l.t.Helper()
	rec, err := attestation.MeasuredBoots().Get(l.ctx(), l.store, host)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		l.t.Fatal(err)
	}
	b := rec.Value.Boot()
	return &b
}

func updated() eventlogtest.Machine {
	m := eventlogtest.Example()
	m.Firmware = "2.20.0"
	return m
}

// TestBootIsHeldAgainstReferences: a boot that no set has is refused and kept, a
// set that is learned from it lets the host in, and then it is not kept.
func TestBootIsHeldAgainstReferences(t *testing.T) {
	l := assigned(t)
	l.hosts["host-1"].PowerOn(updated())
	_, err := l.attest("host-1")
	l.refused(err, attest.ReasonReference)
	if d := l.host("host-1").Status.LastDenial; d == nil || d.Code != string(attest.ReasonReference) {
		t.Errorf("the operator sees %+v", d)
	}
	kept := l.keptBoot("host-1")
	if kept == nil {
		t.Fatal("nothing is kept to learn from")
	}
	registers, err := reference.Learn(nil, []reference.Boot{*kept})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(registers[0].Events, func(p reference.Position) bool { return p.Note == "EV_S_CRTM_VERSION Example 2.20.0" }); i < 0 {
		t.Errorf("events of PCR 0 are %v", registers[0].Events)
	}
	set := attesttest.References()[0]
	set.Version, set.Registers = 2, registers
	l.trust(set)
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	if v, err := hostrecord.Verdicts().Get(l.ctx(), l.store, "host-1"); err != nil || v.Value.Facts.Reference != "default/2" {
		t.Errorf("accepted by %q, %v", v.Value.Facts.Reference, err)
	}
	if l.keptBoot("host-1") != nil {
		t.Error("a boot that a set has is still kept")
	}
}

// TestRefusedBootIsKeptOnce: a boot that is refused again and again is written once, another one a few times, and without events of
// registers that prove nothing. One that is too large is not kept.
func TestRefusedBootIsKeptOnce(t *testing.T) {
	l := assigned(t)
	h := l.hosts["host-1"]
	modified := func() int64 {
		rec, err := attestation.MeasuredBoots().Get(l.ctx(), l.store, "host-1")
		if err != nil {
			t.Fatal(err)
		}
		return rec.Modified
	}
	refuse := func(m eventlogtest.Machine) {
		t.Helper()
		h.PowerOn(m)
		l.clock = l.clock.Add(7 * time.Second)
		_, err := l.attest("host-1")
		l.refused(err, attest.ReasonReference)
	}
	refuse(updated())
	first := modified()
	rec, err := attestation.MeasuredBoots().Get(l.ctx(), l.store, "host-1")
	if err != nil || len(rec.Value.Events) == 0 {
		t.Fatalf("%d events are kept, %v", len(rec.Value.Events), err)
	}
	for _, e := range rec.Value.Events {
		if !slices.ContainsFunc(rec.Value.Quoted, func(q eventlog.Quoted) bool { return q.PCR == e.PCR }) {
			t.Errorf("an event of PCR %d is kept, which was not quoted", e.PCR)
		}
	}
	for range 5 {
		refuse(updated())
	}
	if modified() != first {
		t.Error("the same boot was written again")
	}
	wrote, last := 0, first
	for n := range 8 {
		m := updated()
		m.Firmware = fmt.Sprintf("3.%d", n)
		refuse(m)
		if at := modified(); at != last {
			wrote, last = wrote+1, at
		}
	}
	if wrote == 0 || wrote > 4 {
		t.Errorf("%d of 8 other boots within a minute were written, want a few", wrote)
	}
}

// TestNoReferences: without reference values no host is admitted, whatever it shows.
func TestNoReferences(t *testing.T) {
	l := assigned(t)
	if _, err := l.store.Update(l.ctx(), func(tx *store.Tx) error {
		attestation.References().Delete(tx, attestation.ReferenceKey(reference.DefaultClass, 1))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err := l.attest("host-1")
	l.refused(err, attest.ReasonReference)
}

// TestClassOfInventory: the host's class says which sets count, and nothing
// that the host says.
func TestClassOfInventory(t *testing.T) {
	l := assigned(t)
	hca := l.hosts["host-1"].Statement.HCAs[0]
	if said := l.importText(fmt.Sprintf("hosts:\n- id: host-1\n  class: gpu-node\n  ek_sha256: %s\n  hcas:\n  - node_guid: %v\n    ports:\n    - {port: 1, guid: %v}\n    - {port: 2, guid: %v}\n",
		l.hosts["host-1"].EKDigest(), hca.NodeGUID, hca.Ports[0].GUID, hca.Ports[1].GUID), false); !strings.Contains(said, "class: was not set, now gpu-node") {
		t.Errorf("import: %s", said)
	}
	_, err := l.attest("host-1")
	l.refused(err, attest.ReasonReference)
	set := attesttest.References()[0]
	set.Class = "gpu-node"
	l.trust(set)
	if _, err := l.attest("host-1"); err != nil {
		t.Error(err)
	}
	if got := l.host("host-1").Class; got != "gpu-node" {
		t.Errorf("shown with class %q", got)
	}
}

// TestWaiverIsSeen, T106: a host admitted by a waiver has it in its verdict and in the audit log, and its boot is kept.
// After the waiver's end no host is admitted by it.
func TestWaiverIsSeen(t *testing.T) {
	l := assigned(t)
	l.trust(reference.Set{
		Class: reference.DefaultClass, Version: 2, State: reference.Approved, Waiver: true, Owner: "ann", Reason: "INC-7",
		Made: l.clock, Expires: l.clock.Add(time.Hour),
	})
	l.hosts["host-1"].PowerOn(updated())
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	v, err := hostrecord.Verdicts().Get(l.ctx(), l.store, "host-1")
	if err != nil || v.Value.Facts.Reference != "default/2" || !slices.ContainsFunc(v.Value.Facts.Waived, func(s string) bool { return s == "the boot is not compared with reference values (waiver default/2)" }) {
		t.Errorf("facts: %q, %q, %v", v.Value.Facts.Reference, v.Value.Facts.Waived, err)
	}
	if l.keptBoot("host-1") == nil {
		t.Error("the boot is not kept to learn from")
	}
	if st := l.host("host-1").Status; st.Reference != "default/2" || !slices.Equal(st.Waived, v.Value.Facts.Waived) {
		t.Errorf("shown with reference %q and waived %q", st.Reference, st.Waived)
	}
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil || !slices.ContainsFunc(entries, func(e store.Record[audit.Entry]) bool {
		return e.Value.Action == "evidence.accept" && strings.Contains(e.Value.Detail, "reference default/2")
	}) {
		t.Errorf("the audit log does not name the waiver, %v", err)
	}
	if _, err := l.svc.Release(l.ctx(), "alice", "host-1"); err != nil {
		t.Fatal(err)
	}
	l.settle()
	l.clock = l.clock.Add(time.Hour)
	l.assign("host-1", "train")
	_, err = l.attest("host-1")
	l.refused(err, attest.ReasonReference)
}
