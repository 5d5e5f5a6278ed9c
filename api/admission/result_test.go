package admission

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/reference"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
)

// signer keeps the claims that it was to sign, as text that is decoded again, as others read them.
type signer struct {
	t    *testing.T
	now  func() time.Time
	fail error
	last *result.Claims
}

func (s *signer) Sign(_ context.Context, c *result.Claims, until time.Time) (string, error) {
	if s.fail != nil {
		return "", s.fail
	}
	now := s.now()
	c.Issuer, c.ID, c.IssuedAt, c.NotBefore, c.Expires = "lab", "1", now.Unix(), now.Unix(), until.Unix()
	b, err := c.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	if s.last, err = result.Decode(b); err != nil {
		s.t.Fatal(err)
	}
	if err := s.last.Check(result.Expect{Now: now}); err != nil {
		s.t.Errorf("a result that does not stand by itself: %v\n%s", err, b)
	}
	return string(b), nil
}

// newResultLab has one assigned host whose adapter is locked under epoch 1.
func newResultLab(t *testing.T, edit ...func(*lab)) (*lab, *signer, *keeper) {
	t.Helper()
	l := newLab(t, member.Open(t))
	s, k := &signer{t: t, now: func() time.Time { return l.clock }}, &keeper{epoch: 1}
	l.options = func(o *Options) { o.Locks, o.Results = k, s }
	for _, e := range edit {
		e(l)
	}
	l.restart()
	l.addHosts(2)
	l.tenantWithClusters("c1")
	l.assign("host-1", "c1")
	return l, s, k
}

func (l *lab) result(host string) *result.Claims {
	l.t.Helper()
	r, err := l.svc.AttestationResult(l.ctx(), host, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := result.Decode([]byte(r.Result))
	if err != nil {
		l.t.Fatal(err)
	}
	if c.Status.String() != r.Status || string(c.Host.State) != r.State || c.Subject != host || r.Host != host || !r.Expires.Equal(time.Unix(c.Expires, 0)) {
		l.t.Errorf("answered %+v, the claims are %+v", r, c)
	}
	return c
}

// want checks state and overall status, and that each weakness has a word of weak.
func want(t *testing.T, c *result.Claims, state result.State, tier result.Tier, weak ...string) {
	t.Helper()
	if c.Host.State != state || c.Status != tier {
		t.Errorf("state %s and status %v, want %s and %v; weaknesses %q, reason %q", c.Host.State, c.Status, state, tier, c.Host.Weaknesses, c.Host.Reason)
	}
	if len(weak) != len(c.Host.Weaknesses) {
		t.Errorf("weaknesses %q, want %q", c.Host.Weaknesses, weak)
	}
	for _, w := range weak {
		if !slices.ContainsFunc(c.Host.Weaknesses, func(s string) bool { return strings.Contains(s, w) }) {
			t.Errorf("weaknesses %q, want one about %q", c.Host.Weaknesses, w)
		}
	}
}

func adapterOfHost1(c *result.Claims) result.Appraisal { return c.Submods["hca-0x0002c90300000100"] }

// A result names the last entry of the audit log as of when it was made; a host's own names its hash alone.
func TestResultNamesTheAuditLog(t *testing.T) {
	l, s, _ := newResultLab(t)
	head, err := audit.Latest(l.ctx(), l.store)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.result("host-1").Audit; got == nil || *got != (result.Audit{Hash: head.Hash, Seq: head.Seq, Branch: head.Branch}) {
		t.Errorf("audit log %+v, want %+v", got, head)
	}
	if _, err := l.attested("host-1"); err != nil {
		t.Fatal(err)
	}
	if head, err = audit.Latest(l.ctx(), l.store); err != nil {
		t.Fatal(err)
	}
	if got := s.last.Audit; got == nil || *got != (result.Audit{Hash: head.Hash}) {
		t.Errorf("a host is told %+v, want hash %s alone", got, head.Hash)
	}
}

// TestResultFollowsAHost asks for the result at each step of a host's life.
func TestResultFollowsAHost(t *testing.T) {
	l, s, _ := newResultLab(t)
	want(t, l.result("host-2"), result.StateUnattested, result.None)
	c := l.result("host-1")
	want(t, c, result.StateUnattested, result.None)
	if a := adapterOfHost1(c); a.Status != result.None || a.Adapter == nil || len(a.Adapter.Ports) != 2 || a.Adapter.Firmware != nil {
		t.Errorf("an adapter of which nothing is known is %+v", a)
	}

	r, err := l.attested("host-1")
	if err != nil {
		t.Fatal(err)
	}
	// The evidence answer: verified, and not sealed, which is never affirmed.
	told, err := result.Decode([]byte(r.Result))
	if err != nil {
		t.Fatal(err)
	}
	if told.Host.State != result.StateVerified || told.Host.Sealed || told.Status != result.Warning {
		t.Errorf("the host is told %+v, want verified, not sealed, with a warning", told)
	}
	if told.Host.Reference != "" || told.Host.Weaknesses != nil {
		t.Errorf("the host is told by what it was accepted: %+v", told.Host)
	}
	want(t, l.result("host-1"), result.StateVerified, result.Warning, "not handed over")

	seal, err := l.attest("host-1")
	if err != nil {
		t.Fatal(err)
	}
	if told, err = result.Decode([]byte(seal.Result)); err != nil || told.Host.State != result.StateSealed || told.Status != result.Affirming || told.Host.Reference != "" {
		t.Errorf("with its seal the host is told %+v, %v", told, err)
	}
	c = l.result("host-1")
	want(t, c, result.StateSealed, result.Affirming)
	rec, err := hostrecord.Records().Get(l.ctx(), l.store, "host-1")
	if err != nil {
		t.Fatal(err)
	}
	v, err := hostrecord.Verdicts().Get(l.ctx(), l.store, "host-1")
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Submods[result.Platform]; p.Vector != (result.Vector{Identity: 2, Executables: 3, Hardware: 2}) ||
		!bytes.Equal(p.Nonce, rec.Value.Evidence.Nonce) || len(p.Nonce) != 32 || !slices.Equal(p.Policies, []string{"urn:portcullis:attestation-policy:default"}) {
		t.Errorf("platform: %+v", p)
	}
	a := adapterOfHost1(c)
	if a.Vector != (result.Vector{Configuration: 2, Hardware: 2}) || a.Adapter.Lock.Epoch != 1 || a.Adapter.Firmware.Assurance != attest.G1 ||
		a.Adapter.Firmware.Version == "" || a.Adapter.Lock.Method != attest.LockSignedFile || len(a.Adapter.Ports) != 2 {
		t.Errorf("adapter: %+v, %+v", a, a.Adapter)
	}
	if h := c.Host; h.Epoch != 1 || h.Statement != v.Value.Facts.StatementDigest || h.Reference != "default/1" || h.Policy != "default" || h.EK != l.hosts["host-1"].EKDigest() ||
		!h.Sealed || h.Session == "" || h.AttestedAt != l.clock.Unix() || h.SealedAt != l.clock.Unix() {
		t.Errorf("host: %+v", h)
	}
	for _, none := range [][]byte{nil, {}} {
		if _, err := l.svc.AttestationResult(l.ctx(), "host-1", none); err != nil || !bytes.Equal(s.last.Nonce, rec.Value.Evidence.Nonce) {
			t.Errorf("without a nonce of the relying party the result answers %x (%v), want the session's", s.last.Nonce, err)
		}
	}
	nonce := []byte("12345678")
	if _, err := l.svc.AttestationResult(l.ctx(), "host-1", nonce); err != nil || !bytes.Equal(s.last.Nonce, nonce) {
		t.Errorf("asked with a nonce: %q, %v", s.last.Nonce, err)
	}

	// Handed out: of what its tenant runs nothing is said.
	l.fabric.place(t, l.ports("host-1")...)
	l.settle()
	l.fabric.program(t)
	l.settle()
	l.clock = l.clock.Add(30 * 24 * time.Hour)
	c = l.result("host-1")
	want(t, c, result.StateAdmitted, result.Affirming)
	if c.Submods[result.Platform].Vector.Executables != 0 || c.Host.Phase != string(v1.PhaseAdmitted) || c.Expires != l.clock.Add(result.MaxLife).Unix() {
		t.Errorf("handed out: %+v", c)
	}

	// Released: all of it is spent.
	l.must(l.svc.Release(t.Context(), "alice", "host-1"))
	c = l.result("host-1")
	want(t, c, result.StateUnattested, result.None)
	if c.Host.Statement != "" || c.Host.AttestedAt != 0 || c.Nonce != nil {
		t.Errorf("released: %+v", c)
	}
}

// TestResultOfAHostThatLostItsPlace: the host was admitted, and its grants have been withdrawn since. So its ports are in
// no partition, although it was reported admitted.
func TestResultOfAHostThatLostItsPlace(t *testing.T) {
	l, _, _ := newResultLab(t)
	l.admit("host-1", "c1")
	want(t, l.result("host-1"), result.StateAdmitted, result.Affirming)
	p := l.ports("host-1")[0]
	l.fabric.show(t, p.GUID, records.Port{Place: ib.Place{Switch: 0x10, Port: 40}})
	l.settle()
	c := l.result("host-1")
	want(t, c, result.StateSealed, result.Affirming)
	if c.Host.Phase == string(v1.PhaseAdmitted) || c.Submods[result.Platform].Vector.Executables != 0 {
		t.Errorf("of a host that was its tenant's: %+v, %+v", c.Host, c.Submods[result.Platform].Vector)
	}
}

// TestResultOfExpiredEvidence: a result never outlives what it stands on.
func TestResultOfExpiredEvidence(t *testing.T) {
	l, _, _ := newResultLab(t)
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	end := l.clock.Add(time.Hour)
	l.clock = end.Add(-time.Minute)
	if c := l.result("host-1"); c.Expires != end.Unix() || c.Host.State != result.StateSealed {
		t.Errorf("a minute before its evidence expires the result says %s until %d, want sealed until %d", c.Host.State, c.Expires, end.Unix())
	}
	for _, past := range []time.Duration{0, time.Minute} {
		l.clock = end.Add(past)
		c := l.result("host-1")
		want(t, c, result.StateExpired, result.None)
		if c.Host.Reason == "" || c.Submods[result.Platform].Vector != (result.Vector{}) {
			t.Errorf("expired: %+v", c)
		}
	}
}

func TestResultOfVoidedEvidence(t *testing.T) {
	l, _, _ := newResultLab(t)
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	l.trust(reference.Set{Class: "other", Version: 1, State: reference.Approved, Waiver: true, Owner: "a", Reason: "r", Made: l.clock, Expires: l.clock.Add(time.Hour)})
	_, err := l.store.Update(l.ctx(), func(tx *store.Tx) error { return l.svc.voidEvidence(l.ctx(), tx, "host-1") })
	if err != nil {
		t.Fatal(err)
	}
	want(t, l.result("host-1"), result.StateUnattested, result.None)

	// A verdict of other evidence than the one that counts affirms nothing.
	l.assign("host-1", "c1")
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	_, err = l.store.Update(l.ctx(), func(tx *store.Tx) error {
		v, err := hostrecord.Verdicts().Get(l.ctx(), tx, "host-1")
		v.Value.Facts.Session = strings.Repeat("0", 32)
		return errors.Join(err, hostrecord.Verdicts().Put(tx, "host-1", v.Value))
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, l.result("host-1"), result.StateUnattested, result.None)
}

// TestResultOfHeldHosts: two hosts claim one GUID. One that was admitted stays so, with a warning: no host's claim makes a
// neighbour contraindicated.
func TestResultOfHeldHosts(t *testing.T) {
	l, _, _ := newResultLab(t)
	l.assign("host-2", "c1")
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	l.hosts["host-2"].Statement.HCAs = l.hosts["host-1"].Statement.HCAs
	_, err := l.attest("host-2")
	wantRefusal(t, err, attestation.ReasonConflict)
	for _, id := range []string{"host-1", "host-2"} {
		c := l.result(id)
		want(t, c, result.StateHeld, result.Contraindicated)
		for label, a := range c.Submods {
			if a.Status != result.Contraindicated {
				t.Errorf("%s of a held host is %v", label, a.Status)
			}
		}
		other := map[string]string{"host-1": "host-2", "host-2": "host-1"}[id]
		if strings.Contains(c.Host.Reason, other) {
			t.Errorf("the result of %s names its neighbour: %q", id, c.Host.Reason)
		}
	}
	l.resolve("host-1")
	l.must(l.svc.Release(t.Context(), "alice", "host-1"))
	l.admit("host-1", "c1")
	_, err = l.attest("host-2")
	wantRefusal(t, err, attestation.ReasonConflict)
	want(t, l.result("host-1"), result.StateAdmitted, result.Warning, "another host claims")
}

// TestWeaknessesAreNeverAffirmed: a weakness that the policy overlooks, or that ended since, lowers the status, although
// the host is admitted with it.
func TestWeaknessesAreNeverAffirmed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy func(*attest.Policy)
		host   func(*lab)
		after  func(*lab, *keeper)
		weak   string
		vector result.Vector // of the adapter
		boot   result.Claim  // executables of the platform
	}{
		{
			name: "assurance: none", policy: func(p *attest.Policy) { p.Assurance = attest.AssuranceNone },
			weak: "assurance: none", vector: result.Vector{Configuration: 2}, boot: 3,
		},
		{
			name: "assurance: G0", policy: func(p *attest.Policy) { p.Assurance = attest.G0 },
			host: func(l *lab) { l.hosts["host-1"].Statement.HCAs[0].Firmware.Assurance = attest.G0 },
			weak: "its own word", vector: result.Vector{Configuration: 2}, boot: 3,
		},
		{
			name: "require_lock: false, unlocked", policy: func(p *attest.Policy) { p.RequireLock = false }, host: func(l *lab) { unlocked(l.hosts["host-1"]) },
			weak: "require_lock: false", vector: result.Vector{Configuration: 32, Hardware: 2}, boot: 3,
		},
		{
			name: "require_lock: false, locked nobody knows how", policy: func(p *attest.Policy) { p.RequireLock = false },
			weak: "require_lock: false", vector: result.Vector{Hardware: 2}, boot: 3,
		},
		{
			name: "require_lock: false, unread", policy: func(p *attest.Policy) { p.RequireLock = false },
			host: func(l *lab) { l.hosts["host-1"].Statement.HCAs[0].Lock.MLOCK = attest.MLOCKUnknown },
			weak: "require_lock: false", vector: result.Vector{Configuration: 36, Hardware: 2}, boot: 3,
		},
		{
			name: "accept_dpu, no DPU", policy: func(p *attest.Policy) { p.AcceptDPU = true },
			weak: "accept_dpu: true", vector: result.Vector{Configuration: 2, Hardware: 2}, boot: 3,
		},
		{
			name: "accept_dpu, DPU", policy: func(p *attest.Policy) { p.AcceptDPU = true },
			host: func(l *lab) { l.hosts["host-1"].Statement.HCAs[0].DeviceID = 0xA2DC },
			weak: "accept_dpu: true", vector: result.Vector{Configuration: 2, Hardware: 2, Executables: 33}, boot: 3,
		},
		{
			name: "boot waived",
			host: func(l *lab) {
				l.trust(reference.Set{Class: reference.DefaultClass, Version: 2, State: reference.Approved, Waiver: true, Owner: "ann", Reason: "INC-7", Made: l.clock, Expires: l.clock.Add(time.Hour)})
				l.hosts["host-1"].PowerOn(updated())
			},
			weak: "waiver default/2", vector: result.Vector{Configuration: 2, Hardware: 2}, boot: 33,
		},
		{
			name: "reference values ended since",
			after: func(l *lab, _ *keeper) {
				_, err := l.store.Update(l.ctx(), func(tx *store.Tx) error {
					r, err := attestation.References().Get(l.ctx(), tx, attestation.ReferenceKey(reference.DefaultClass, 1))
					r.Value.State = reference.Ended
					return errors.Join(err, attestation.References().Put(tx, r.Key, r.Value))
				})
				if err != nil {
					l.t.Fatal(err)
				}
			},
			weak: "not in force any more", vector: result.Vector{Configuration: 2, Hardware: 2}, boot: 33,
		},
		{
			name: "lock given out again since", after: func(_ *lab, k *keeper) { k.epoch = 2 },
			weak: "epoch 2 was given out since", vector: result.Vector{Configuration: 36, Hardware: 2}, boot: 3,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _, k := newResultLab(t, func(l *lab) {
				if tt.policy != nil {
					tt.policy(l.policy)
				}
			})
			if tt.host != nil {
				tt.host(l)
			}
			if _, err := l.attest("host-1"); err != nil {
				t.Fatal(err)
			}
			if tt.after != nil {
				tt.after(l, k)
			}
			c := l.result("host-1")
			want(t, c, result.StateSealed, result.Warning, tt.weak)
			if a := adapterOfHost1(c); a.Status != result.Warning || a.Vector != tt.vector {
				t.Errorf("adapter is %v with %+v, want a warning with %+v", a.Status, a.Vector, tt.vector)
			}
			if p := c.Submods[result.Platform]; p.Vector.Executables != tt.boot {
				t.Errorf("executables of the platform %d, want %d", p.Vector.Executables, tt.boot)
			}
		})
	}
}

// TestResultOfADeniedEK: the policy learned since that this TPM is not to be trusted.
func TestResultOfADeniedEK(t *testing.T) {
	l, _, _ := newResultLab(t)
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	l.policy.Denied = map[string]bool{l.hosts["host-1"].EKDigest(): true}
	l.policy.Version = "later"
	l.restart()
	c := l.result("host-1")
	want(t, c, result.StateSealed, result.Contraindicated, "endorsement key")
	if p := c.Submods[result.Platform]; p.Vector.Identity != 96 || p.Vector.Hardware != 0 {
		t.Errorf("platform: %+v", p.Vector)
	}
	if a := adapterOfHost1(c); a.Status != result.Contraindicated {
		t.Errorf("an adapter is %v on the word of a TPM that is denied", a.Status)
	}
}

func TestResultIsRefused(t *testing.T) {
	l, s, _ := newResultLab(t)
	for _, n := range []int{1, result.MinNonce - 1, result.MaxNonce + 1} {
		if _, err := l.svc.AttestationResult(l.ctx(), "host-1", make([]byte, n)); !refusal.IsKind(err, refusal.Invalid) {
			t.Errorf("nonce of %d bytes: %v", n, err)
		}
	}
	for _, id := range []string{"host-9", "../x", ""} {
		if _, err := l.svc.AttestationResult(l.ctx(), id, nil); !refusal.IsKind(err, refusal.NotFound) {
			t.Errorf("host %q: %v", id, err)
		}
	}
	// There is no signer: accepted evidence is accepted all the same, and the answer says so.
	s.fail = refusal.New(refusal.Unavailable, "result_keys_locked", "", "the keys do not open")
	r, err := l.attested("host-1")
	if err != nil || r.Result != "" || r.Seal == nil {
		t.Errorf("evidence while nobody can sign: %+v, %v", r, err)
	}
	if _, err := l.svc.AttestationResult(l.ctx(), "host-1", nil); !refusal.IsKind(err, refusal.Unavailable) {
		t.Errorf("asked while nobody can sign: %v", err)
	}
	l.options = nil
	l.restart()
	if _, err := l.svc.AttestationResult(l.ctx(), "host-1", nil); !refusal.IsKind(err, refusal.Unavailable) {
		t.Errorf("a service without keys for it: %v", err)
	}
}
