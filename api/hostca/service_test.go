package hostca

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/admission"
	"portcullis/api/audit"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/vault"
)

const domain = "fabric.example"

func testRoot(t *testing.T, text string) vault.Root {
	t.Helper()
	secret := sha256.Sum256([]byte(text))
	r, err := vault.NewRoot(text, secret[:])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// site is a service over a store whose clock a test moves.
type site struct {
	*Service
	t     *testing.T
	store *store.Store
	clock time.Time
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, store: store.New(memory.New(time.Now), ""), clock: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)}
	s.Service = s.replica()
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// replica is another service over the same store.
func (s *site) replica(change ...func(*Options)) *Service {
	s.t.Helper()
	o := Options{Store: s.store, Root: testRoot(s.t, "of tests"), Domain: domain, Now: func() time.Time { return s.clock }}
	for _, f := range change {
		f(&o)
	}
	r, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) issue(from *Service) *x509.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := from.Issue(s.t.Context(), "h1", &key.PublicKey)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// states lists the authorities that count, in order.
func (s *site) states() []string {
	s.t.Helper()
	all, err := s.Authorities(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, a := range all.Items {
		out = append(out, a.State)
	}
	return out
}

func (s *site) wantStates(when string, want ...string) {
	s.t.Helper()
	if got := s.states(); !slices.Equal(got, want) {
		s.t.Errorf("%s: %v, want %v", when, got, want)
	}
}

func wantRefused(t *testing.T, what string, err error) {
	t.Helper()
	if !admission.IsKind(err, admission.Refused) {
		t.Errorf("%s: %v, want it refused", what, err)
	}
}

// TestReplicasShareTheAuthority: whichever issues, each knows it; and when all begin at
// once there is one authority.
func TestReplicasShareTheAuthority(t *testing.T) {
	s := &site{t: t, store: store.New(memory.New(time.Now), ""), clock: time.Now().UTC()}
	replicas := []*Service{s.replica(), s.replica(), s.replica()}
	var wg sync.WaitGroup
	for _, r := range replicas {
		wg.Go(func() {
			if err := r.Open(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.Service = replicas[0]
	s.wantStates("after all began", v1.AuthoritySigns)
	c := s.issue(replicas[1])
	for i, r := range replicas {
		if host, err := r.Identify(t.Context(), c); err != nil || host != "h1" {
			t.Errorf("replica %d: %q, %v", i, host, err)
		}
	}
	if _, err := replicas[2].Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "stolen", AtOnce: true}); err != nil {
		t.Fatal(err)
	}
	_, err := replicas[0].Identify(t.Context(), c)
	wantRefused(t, "after a rotation at once elsewhere", err)
	if fresh := s.issue(replicas[1]); fresh.Issuer.String() == c.Issuer.String() {
		t.Error("a replica signs with the authority that ended")
	}
}

// TestRotationCutsNobodyOff goes through a change of authority that nobody asked for.
func TestRotationCutsNobodyOff(t *testing.T) {
	s := newSite(t)
	begun := s.clock
	s.clock = begun.Add(s.o.Period - ahead - time.Second)
	s.issue(s.Service)
	s.wantStates("before it is due", v1.AuthoritySigns)
	s.clock = begun.Add(s.o.Period - ahead)
	first := s.issue(s.Service)
	s.wantStates("a day before", v1.AuthoritySigns, v1.AuthorityNext)
	s.clock = begun.Add(s.o.Period - time.Second)
	last := s.issue(s.Service)
	if last.Issuer.String() != first.Issuer.String() {
		t.Error("the next authority signs before its time")
	}
	s.clock = begun.Add(s.o.Period)
	next := s.issue(s.Service)
	s.wantStates("when it signs", v1.AuthorityAccepted, v1.AuthoritySigns)
	if next.Issuer.String() == first.Issuer.String() {
		t.Error("the next authority does not sign")
	}
	for name, c := range map[string]*x509.Certificate{"last of the old one": last, "of the next one": next} {
		if _, err := s.Identify(t.Context(), c); err != nil {
			t.Errorf("certificate %s: %v", name, err)
		}
	}
	s.clock = begun.Add(s.o.Period + MaxLife)
	s.wantStates("a day later", v1.AuthoritySigns)
	_, err := s.Identify(t.Context(), last)
	wantRefused(t, "a certificate of the authority before", err)
}

// TestLongOff: a service that was off for a year has an authority that signs.
func TestLongOff(t *testing.T) {
	s := newSite(t)
	old := s.issue(s.Service)
	s.clock = s.clock.AddDate(1, 0, 0)
	c := s.issue(s.Service)
	if _, err := s.Identify(t.Context(), c); err != nil || c.Issuer.String() == old.Issuer.String() {
		t.Errorf("certificate of %v: %v", c.Issuer, err)
	}
	if !c.NotAfter.After(s.clock) {
		t.Errorf("it ended %v", c.NotAfter)
	}
}

func TestRotate(t *testing.T) {
	s := newSite(t)
	c := s.issue(s.Service)
	if _, err := s.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "yearly"}); err != nil {
		t.Fatal(err)
	}
	s.wantStates("asked for", v1.AuthoritySigns, v1.AuthorityNext)
	if _, err := s.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "again"}); !admission.IsKind(err, admission.Conflict) {
		t.Errorf("a second one: %v, want a conflict", err)
	}
	if _, err := s.Identify(t.Context(), c); err != nil {
		t.Errorf("after a rotation: %v", err)
	}
	all, err := s.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "stolen", AtOnce: true})
	if err != nil || len(all.Items) != 1 || all.Items[0].State != v1.AuthoritySigns {
		t.Fatalf("at once: %+v, %v", all, err)
	}
	_, err = s.Identify(t.Context(), c)
	wantRefused(t, "after a rotation at once", err)

	entries, _, err := audit.Entries().List(t.Context(), s.store, "")
	if err != nil || len(entries) != 3 {
		t.Fatalf("%d entries of the audit log, %v, want 3", len(entries), err)
	}
	if last := entries[2].Value; last.Actor != "olga" || last.Action != "host-authority.rotate" || !strings.Contains(last.Detail, "stolen") {
		t.Errorf("audit: %+v", last)
	}
}

// TestOtherTrustDomain: names change, and so the authority does.
func TestOtherTrustDomain(t *testing.T) {
	s := newSite(t)
	c := s.issue(s.Service)
	s.Service = s.replica(func(o *Options) { o.Domain = "other.example" })
	fresh := s.issue(s.Service)
	if got := fresh.URIs[0].String(); got != "spiffe://other.example/host/h1" {
		t.Errorf("name %s", got)
	}
	s.wantStates("of the new domain", v1.AuthoritySigns)
	_, err := s.Identify(t.Context(), c)
	wantRefused(t, "a name of the domain before", err)
}

// TestLostRoot: without the root nothing is issued, what was issued counts on, and an
// operator can begin anew.
func TestLostRoot(t *testing.T) {
	s := newSite(t)
	c := s.issue(s.Service)
	s.Service = s.replica(func(o *Options) { o.Root = testRoot(t, "another") })
	err := s.Open(t.Context())
	if e, ok := errors.AsType[*admission.Error](err); !ok || e.Code != "authority_locked" || !strings.Contains(e.Hint, "--at-once") {
		t.Fatalf("open: %v", err)
	}
	if _, err := s.Identify(t.Context(), c); err != nil {
		t.Errorf("a certificate of before: %v", err)
	}
	if _, err := s.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "root lost"}); err == nil {
		t.Error("the next authority was sealed beside one that does not open")
	}
	if _, err := s.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "root lost", AtOnce: true}); err != nil {
		t.Fatal(err)
	}
	s.issue(s.Service)
}

// TestKeyIsSealed looks for the key in the store.
func TestKeyIsSealed(t *testing.T) {
	s := newSite(t)
	rec, err := s.read(t.Context(), s.store)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := s.open(&rec, 0)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signer.KeyDER()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(rec.Authorities[0].Key, ".")
	sealed, err := base64.RawURLEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(sealed) < len(key) {
		t.Fatalf("sealed key of %d bytes, %v", len(sealed), err)
	}
	secret := key[36:68] // of PKCS #8 for P-256
	for what, b := range map[string][]byte{"key": sealed, "certificate": rec.Authorities[0].Certificate, "vault": rec.Vault} {
		if bytes.Contains(b, secret[:8]) || bytes.Contains(b, secret[24:]) {
			t.Errorf("%s has the key in the clear", what)
		}
	}
	// One authority's sealed key does not open as another's.
	rec.Authorities[0].ID = "1"
	if _, err := s.open(&rec, 0); err == nil {
		t.Error("a key was opened under another name")
	}
}

func TestOptions(t *testing.T) {
	good := Options{Store: store.New(memory.New(time.Now), ""), Root: testRoot(t, "of tests"), Domain: domain}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no root":         func(o *Options) { o.Root = nil },
		"no domain":       func(o *Options) { o.Domain = "" },
		"life too short":  func(o *Options) { o.Life = MinLife - 1 },
		"life too long":   func(o *Options) { o.Life = MaxLife + 1 },
		"period too long": func(o *Options) { o.Period = MaxPeriod + 1 },
		"period short":    func(o *Options) { o.Period = MinPeriod - 1 },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
