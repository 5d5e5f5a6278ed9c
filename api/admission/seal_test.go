package admission

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// evidenced is awaiting with evidence of host-1 accepted and not sealed.
func evidenced(t *testing.T) (*lab, *attest.Session, *v1.AttestResult) {
	t.Helper()
	l := awaiting(t)
	s := l.open("host-1")
	r, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, l.answer("host-1", s))
	if err != nil {
		t.Fatal(err)
	}
	return l, s, r
}

// TestUnsealedHostGetsNothing: accepted evidence alone admits no host.
func TestUnsealedHostGetsNothing(t *testing.T) {
	l, s, r := evidenced(t)
	l.fabric.place(t, l.ports("host-1")...)
	l.settle()
	h := l.host("host-1")
	if h.Status.Phase != v1.PhaseVerified || h.Status.Guards[2].Met || !h.Status.Sealed.IsZero() {
		t.Errorf("host stands as %+v, want verified and not sealed", h.Status)
	}
	l.wantOwners("before the seal")
	sealed, err := l.seal("host-1", s, r)
	if err != nil || sealed.Phase != v1.PhaseGranting {
		t.Fatalf("seal: got %+v, %v, want granting", sealed, err)
	}
	l.wantOwners("after the seal", "host-1", "host-1")
	if h := l.host("host-1"); !h.Status.Sealed.Equal(l.clock) {
		t.Errorf("sealed at %v, want %v", h.Status.Sealed, l.clock)
	}
}

// TestSealIsRefused changes one thing between evidence and seal.
func TestSealIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(l *lab, s *attest.Session, r *v1.AttestResult)
		want attest.Reason
		open bool // the host's own seal is accepted afterwards
	}{
		{"of the next boot", func(l *lab, _ *attest.Session, _ *v1.AttestResult) { l.hosts["host-1"].Boot.Reset++ }, attest.ReasonSeal, false},
		{"of a restarted TPM", func(l *lab, _ *attest.Session, _ *v1.AttestResult) { l.hosts["host-1"].Boot.Restart++ }, attest.ReasonSeal, false},
		{"with another register changed", func(l *lab, _ *attest.Session, _ *v1.AttestResult) { l.hosts["host-1"].Extend(7, make([]byte, 32)) }, attest.ReasonSeal, false},
		{"with a clock that went back", func(l *lab, _ *attest.Session, _ *v1.AttestResult) { l.hosts["host-1"].Boot.Clock-- }, attest.ReasonClock, false},
		{"for another nonce", func(_ *lab, s *attest.Session, r *v1.AttestResult) { r.Seal = &attest.Seal{Nonce: s.Nonce} }, attest.ReasonNonce, true},
		{"by another key", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			h := l.hosts["host-1"]
			h.AK2 = l.hosts["host-2"].AK2
		}, attest.ReasonSignature, true},
		{"too late", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			l.clock = l.clock.Add(l.policy.SealLife + time.Second)
		}, attest.ReasonSession, false},
		{"after the release", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			l.must(l.svc.Release(l.ctx(), "alice", "host-1"))
		}, attest.ReasonSession, false},
		{"after a new assignment", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			l.must(l.svc.Assign(l.ctx(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
		}, attest.ReasonSession, false},
		{"after the inventory changed", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			l.importText("cables: [{guid: 0x0002c90300000101, switch: 0x10, port: 99}]", false)
		}, attestation.ReasonChanged, false},
		{"after newer evidence", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			s := l.open("host-1")
			if _, err := l.svc.SubmitEvidence(l.ctx(), s.ID, l.channel, l.answer("host-1", s)); err != nil {
				l.t.Fatal(err)
			}
		}, attest.ReasonSession, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, s, r := evidenced(t)
			good, ak2 := r.Seal, l.hosts["host-1"].AK2
			c.do(l, s, r)
			_, err := l.seal("host-1", s, r)
			wantRefusal(t, err, c.want)
			l.fabric.place(t, l.ports("host-1")...)
			l.settle()
			l.wantOwners("after a seal that was refused")
			l.hosts["host-1"].AK2 = ak2
			ev, err := l.hosts["host-1"].SealQuote(s, good, l.channel, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.svc.SubmitSeal(t.Context(), s.ID, l.channel, "192.0.2.1", ev)
			if c.open {
				l.must(nil, err)
			} else {
				wantRefusal(t, err, attest.ReasonSession) // used up, or over
			}
		})
	}
}

func TestUnknownSeals(t *testing.T) {
	l, s, r := evidenced(t)
	ev, err := l.hosts["host-1"].Seal(s, r.Seal, l.channel)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "x", "../hosts/host-1", "00000000000000000000000000000000"} {
		_, err := l.svc.SubmitSeal(t.Context(), id, l.channel, "192.0.2.1", ev)
		wantRefusal(t, err, attest.ReasonSession)
	}
	// Over another connection than the evidence: its exporter value counts.
	elsewhere := make([]byte, attest.ExporterSize)
	elsewhere[5] = 7
	if ev, err = l.hosts["host-1"].SealQuote(s, r.Seal, elsewhere, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.svc.SubmitSeal(t.Context(), s.ID, elsewhere, "192.0.2.1", ev); err != nil {
		t.Errorf("seal over another connection: %v", err)
	}
}

// TestBootsOfATPM: a boot that was handed over is spent, and counts that went back need an operator who knows why.
func TestBootsOfATPM(t *testing.T) {
	l := awaiting(t)
	attestAs := func(reset, restart uint32, want attest.Reason) {
		t.Helper()
		h := l.hosts["host-1"]
		h.Boot.Reset, h.Boot.Restart = reset, restart
		_, err := l.attestInThisBoot("host-1")
		if want != "" {
			wantRefusal(t, err, want)
		} else if err != nil {
			t.Error(err)
		}
	}
	attestAs(9, 0, "")
	attestAs(9, 0, attest.ReasonReplayBoot)
	attestAs(9, 1, "") // a restart of the TPM empties the registers: a boot of its own
	attestAs(9, 0, attest.ReasonCleared)
	attestAs(0, 0, attest.ReasonCleared)
	for _, reason := range []string{"", "  "} {
		if _, err := l.svc.AcknowledgeClear(t.Context(), "bob", "host-1", v1.TPMCleared{Reason: reason}); !refusal.IsKind(err, refusal.Invalid) {
			t.Errorf("acknowledged for reason %q: %v", reason, err)
		}
	}
	l.must(l.svc.AcknowledgeClear(t.Context(), "bob", "host-1", v1.TPMCleared{Reason: "board returned from repair"}))
	attestAs(0, 0, "")
	attestAs(0, 0, attest.ReasonReplayBoot)
	l.must(l.svc.Release(t.Context(), "alice", "host-1"))
	l.must(l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
	attestAs(0, 0, attest.ReasonReplayBoot) // an assignment makes no boot
	if _, err := l.svc.AcknowledgeClear(t.Context(), "bob", "host-2", v1.TPMCleared{Reason: "x"}); !refusal.IsKind(err, refusal.Conflict) {
		t.Errorf("a TPM that was never seen: %v, want a conflict", err)
	}
	if _, err := l.svc.AcknowledgeClear(t.Context(), "bob", "nobody", v1.TPMCleared{Reason: "x"}); !refusal.IsKind(err, refusal.NotFound) {
		t.Errorf("a host that is not there: %v", err)
	}
	if n := l.audited("host.tpm-cleared"); n < 1 {
		t.Errorf("%d acknowledgements in the audit log", n)
	}
}

// audited counts the entries of an action in the audit log.
func (l *lab) audited(action string) (n int) {
	l.t.Helper()
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Value.Action == action {
			n++
		}
	}
	return n
}

// TestEKReplacedInInventory: evidence of the TPM that was there does not count,
// and one EK is one host's, also when two import at once.
func TestEKReplacedInInventory(t *testing.T) {
	l := awaiting(t)
	third, err := l.vendor.NewHost("host-3", 3)
	if err != nil {
		t.Fatal(err)
	}
	withEK := func(n int) string {
		id := fmt.Sprintf("host-%d", n)
		a := l.hosts[id].Statement.HCAs[0]
		return fmt.Sprintf("hosts:\n- id: %s\n  ek_sha256: %s\n  hcas:\n  - node_guid: %v\n    ports: [{port: 1, guid: %v, cable: 0x10/%d}, {port: 2, guid: %v, cable: 0x10/%d}]\n",
			id, third.EKDigest(), a.NodeGUID, a.Ports[0].GUID, 2*n-1, a.Ports[1].GUID, 2*n)
	}
	told := make([]string, 2)
	var wg sync.WaitGroup
	for i := range told {
		wg.Go(func() { told[i] = l.importText(withEK(i+1), false) })
	}
	wg.Wait()
	owner := ""
	for _, id := range []string{"host-1", "host-2"} {
		if l.host(id).EK == third.EKDigest() {
			owner += id
		}
	}
	if owner != "host-1" && owner != "host-2" {
		t.Fatalf("%q has the EK that both were given (%q), want one of them", owner, told)
	}
	_, err = l.svc.OpenSession(t.Context(), l.hosts[owner].Request(), "192.0.2.1")
	wantRefusal(t, err, attest.ReasonEKPin)
}
