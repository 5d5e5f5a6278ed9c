package admission

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// stranger asks for a session of host with the EK of another one, from n-th of
// many addresses.
func (l *lab) stranger(host string, n int) error {
	l.t.Helper()
	return l.ask(host, "host-2", n)
}

func (l *lab) ask(host, ek string, n int) error {
	l.t.Helper()
	req := l.hosts[ek].Request()
	req.Host = host
	_, err := l.svc.OpenSession(l.ctx(), req, fmt.Sprintf("203.0.113.%d", n))
	return err
}

func (l *lab) revision() int64 {
	l.t.Helper()
	snap, err := l.store.Snapshot(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	return snap.Revision
}

// refusals lists "ACTOR CODE" of every refusal in the audit log.
func (l *lab) refusals() []string {
	l.t.Helper()
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Value.Action == "evidence.refuse" {
			out = append(out, e.Value.Actor+" "+e.Value.Code)
		}
	}
	return out
}

func TestStrangersDoNotFillTheStore(t *testing.T) {
	l := awaiting(t)
	before := l.revision()
	for n := range 20 {
		wantRefusal(t, l.stranger("host-1", n), attest.ReasonEKPin)
	}
	if wrote := l.revision() - before; wrote != 1 {
		t.Errorf("20 requests wrote %d times, want once", wrote)
	}
	if d := l.host("host-1").Status.LastDenial; d == nil || d.Code != string(attest.ReasonEKPin) {
		t.Errorf("the operator sees %+v, want %s", d, attest.ReasonEKPin)
	}
	l.clock = l.clock.Add(time.Minute)
	l.stranger("host-1", 1)
	if wrote := l.revision() - before; wrote != 2 {
		t.Errorf("a minute later %d writes, want another one", wrote)
	}
	if got := l.refusals(); len(got) > 0 {
		t.Errorf("strangers wrote %v into the audit log", got)
	}
}

// However many hosts they name.
func TestStrangersShareABudget(t *testing.T) {
	l := awaiting(t)
	before := l.revision()
	for n := range 500 {
		l.stranger(fmt.Sprintf("host-%d", n+100), n%250)
	}
	if wrote := l.revision() - before; wrote == 0 || wrote > 120 {
		t.Errorf("500 requests wrote %d times, want 1 to 120", wrote)
	}
}

// TestStrangersSuppressNoAudit: strangers use up the refusals that the store takes of strangers. They suppress neither the
// refusals of senders that know an EK nor those of credentials used on another's objects.
func TestStrangersSuppressNoAudit(t *testing.T) {
	l := awaiting(t)
	l.must(l.svc.Release(t.Context(), "alice", "host-2"))
	before := l.revision()
	for n := range 250 {
		l.stranger(fmt.Sprintf("host-%d", n+100), n)
	}
	if wrote := l.revision() - before; wrote != 120 {
		t.Fatalf("strangers wrote %d times, want all of theirs: 120", wrote)
	}
	wantRefusal(t, l.ask("host-2", "host-2", 251), attestation.ReasonWindow)
	if got := l.refusals(); !slices.Equal(got, []string{"source:203.0.113.251 window"}) {
		t.Errorf("the audit log has %q of who knows the EK", got)
	}
	_, err := l.svc.Tenancy().CreateCluster(l.ctx(), "mallory", v1.NewCluster{Name: "x", Tenant: "acme", PKey: new(ib.PKey(0x200))})
	if code(err) != "p_key_out_of_scope" {
		t.Fatal(err)
	}
	if n := l.audited("cluster.create"); n == 0 || !l.auditHas("mallory", "p_key_out_of_scope") {
		t.Error("the audit log has nothing of a credential that reached for what is not its")
	}
}

// TestRefusedAttestationsFloodNoLog: of strangers' refusals 120 lines are in the log, then one a second. They take no line
// of a sender who knows the EK.
func TestRefusedAttestationsFloodNoLog(t *testing.T) {
	l := awaiting(t)
	l.must(l.svc.Release(t.Context(), "alice", "host-2"))
	var log strings.Builder
	l.options = func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) }
	l.restart()
	lines := func() int { return strings.Count(log.String(), "attestation refused") }
	for n := range 500 {
		l.stranger("host-1", n%250)
	}
	if got := lines(); got != 120 {
		t.Errorf("%d lines of 500 refusals, want 120", got)
	}
	l.clock = l.clock.Add(time.Second)
	for n := range 10 {
		l.stranger("host-1", n)
	}
	if got := lines(); got != 121 {
		t.Errorf("%d lines a second later, want one more", got)
	}
	wantRefusal(t, l.ask("host-2", "host-2", 251), attestation.ReasonWindow)
	if got := lines(); got != 122 {
		t.Errorf("%d lines with that of the sender who knows the EK, want 122", got)
	}
}

// TestAuditLogGrowsSlowly: the audit log, which is never cut, takes a share of refusals. The host's record has the last one
// all the same.
func TestAuditLogGrowsSlowly(t *testing.T) {
	const day, entry, most = 24 * 60 * 60, 1 << 10, 4 << 20 // seconds, bytes, bytes
	rate := attestation.AuditRate()
	if perDay := entry * (float64(rate.Burst) + rate.PerSecond*day); perDay > most {
		t.Errorf("refusals add %.0f bytes a day, want %d at most", perDay, most)
	}
	l := awaiting(t)
	l.must(l.svc.Release(t.Context(), "alice", "host-2"))
	l.options = func(o *Options) { o.AuditRate = limit.Rate{PerSecond: rate.PerSecond / 10, Burst: 3} }
	l.restart()
	for n := range 20 {
		wantRefusal(t, l.ask("host-2", "host-2", n), attestation.ReasonWindow)
		l.clock = l.clock.Add(time.Minute)
	}
	if got := len(l.refusals()); got < 3 || got > 3+3 {
		t.Errorf("%d entries of 20 refusals in 20 minutes, want 3 and one each 10 minutes", got)
	}
	if d := l.host("host-2").Status.LastDenial; d == nil || !d.Time.Equal(l.clock.Add(-time.Minute)) {
		t.Errorf("the host shows %+v, want the last refusal", d)
	}
}

func (l *lab) auditHas(actor, code string) bool {
	l.t.Helper()
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	return slices.ContainsFunc(entries, func(e store.Record[audit.Entry]) bool { return e.Value.Actor == actor && e.Value.Code == code })
}

// TestStrangersHideNoDenial: an operator sees why the host itself was refused, whatever
// strangers are refused for in its name. They are shown where nothing else is, or nothing
// newer.
func TestStrangersHideNoDenial(t *testing.T) {
	l := awaiting(t)
	s := l.open("host-1")
	if _, err := l.svc.SubmitEvidence(t.Context(), s.ID, slices.Repeat([]byte{9}, attest.ExporterSize), l.answer("host-1", s)); err == nil {
		t.Fatal("evidence over another connection was accepted")
	}
	shown := func(want attest.Reason) {
		t.Helper()
		if d := l.host("host-1").Status.LastDenial; d == nil || d.Code != string(want) {
			t.Errorf("the operator sees %+v, want %s", d, want)
		}
	}
	l.clock = l.clock.Add(time.Minute)
	wantRefusal(t, l.stranger("host-1", 1), attest.ReasonEKPin)
	shown(attest.ReasonNonce)
	l.clock = l.clock.Add(l.svc.o.Window)
	l.stranger("host-1", 1)
	shown(attestation.ReasonWindow)
}

func TestActorOfRefusals(t *testing.T) {
	l := awaiting(t)
	l.must(l.svc.Release(t.Context(), "alice", "host-2"))
	l.ask("host-2", "host-2", 1) // its EK is right, its window closed
	l.ask("host-2", "host-2", 2)
	bad := func(spoil func(*attest.Evidence), channel []byte) {
		t.Helper()
		s := l.open("host-1")
		ev := l.answer("host-1", s)
		spoil(ev)
		if _, err := l.svc.SubmitEvidence(t.Context(), s.ID, channel, ev); err == nil {
			t.Error("bad evidence was accepted")
		}
	}
	elsewhere := slices.Repeat([]byte{9}, attest.ExporterSize)
	for range 2 {
		bad(func(ev *attest.Evidence) { ev.Proof[0] ^= 1 }, l.channel)
		bad(func(*attest.Evidence) {}, elsewhere)
	}
	want := []string{
		"source:203.0.113.1 window", // once a minute
		"source:192.0.2.1 proof",
		"agent:host-1 nonce", "agent:host-1 nonce", // each time: the TPM had answered
	}
	if got := l.refusals(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A stranger learns nothing about which hosts exist: neither from the answers,
// nor from how often something is written, which takes time.
func TestUnknownHostsLookLikeKnownOnes(t *testing.T) {
	kinds := map[string]func(*attest.SessionRequest){
		"another EK":     func(*attest.SessionRequest) {},
		"no certificate": func(r *attest.SessionRequest) { r.EK.Certificates = nil },
		"no kind of EK":  func(r *attest.SessionRequest) { r.EK.Kind = "x" },
	}
	seen := func(host string) string {
		l := awaiting(t)
		l.must(l.svc.Release(t.Context(), "alice", "host-2"))
		h, err := l.vendor.NewHost("stranger", 9)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, name := range []string{"another EK", "no certificate", "no kind of EK", "another EK"} {
			for range 4 {
				req := h.Request()
				req.Host = host
				kinds[name](req)
				before := l.revision()
				_, err := l.svc.OpenSession(t.Context(), req, "203.0.113.9")
				var no *attest.Refusal
				fmt.Fprintf(&out, "%s: refused %v, limited %v, wrote %d\n", name, errors.As(err, &no), refusal.IsKind(err, refusal.Limited), l.revision()-before)
			}
		}
		return out.String()
	}
	unknown := seen("host-77")
	if !strings.Contains(unknown, "limited true") || !strings.Contains(unknown, "wrote 1") {
		t.Errorf("the attempts of a stranger do not reach the limits:\n%s", unknown)
	}
	for _, host := range []string{"host-1", "host-2"} {
		if known := seen(host); known != unknown {
			t.Errorf("%s looks like\n%sand an unknown host like\n%s", host, known, unknown)
		}
	}
}

func TestOthersDoNotUseUpAHostsAttempts(t *testing.T) {
	l := awaiting(t)
	for n := range 20 {
		for range 12 {
			l.stranger("host-1", n)
		}
	}
	l.open("host-1")
}

// TestHostwideLimit: one host may have a bounded amount judged over all addresses. A sender that knows only its EK
// certificate uses up nothing of it.
func TestHostwideLimit(t *testing.T) {
	l := awaiting(t)
	l.options = func(o *Options) { o.HostRate = limit.Rate{PerSecond: 1, Burst: 3} }
	l.restart()
	for n := range 30 {
		if err := l.ask("host-1", "host-1", n); err != nil {
			t.Errorf("session %d of host-1: %v", n+1, err)
		}
	}
	for n := range 6 {
		l.hosts["host-1"].Boot.Reset++
		if _, err := l.attestInThisBoot("host-1"); refusal.IsKind(err, refusal.Limited) != (n >= 3) {
			t.Errorf("evidence %d of host-1: %v", n+1, err)
		}
	}
	if _, err := l.attest("host-2"); err != nil {
		t.Errorf("host-2: %v", err)
	}
}

// A refusal is shown until evidence that came after it was accepted; a later one is shown again.
func TestRefusalIsShownUntilEvidenceIsAccepted(t *testing.T) {
	l := awaiting(t)
	refuse := func() {
		t.Helper()
		mine, other := l.open("host-1"), l.open("host-2")
		_, err := l.svc.SubmitEvidence(t.Context(), other.ID, l.channel, l.answer("host-1", mine))
		wantRefusal(t, err, attest.ReasonProof)
		if l.host("host-2").Status.LastDenial == nil {
			t.Fatal("a refusal is not shown")
		}
	}
	refuse()
	l.clock = l.clock.Add(time.Minute)
	if _, err := l.attested("host-2"); err != nil {
		t.Fatal(err)
	}
	if d := l.host("host-2").Status.LastDenial; d != nil {
		t.Errorf("after evidence was accepted: %+v", d)
	}
	l.clock = l.clock.Add(time.Minute)
	refuse()
}
