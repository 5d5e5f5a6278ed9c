package hostca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/keyring"
	"portcullis/api/keyring/keyringtest"
	"portcullis/api/refusal"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
)

const domain = "fabric.example"

// site is a service over a store whose clock a test moves.
type site struct {
	*keyringtest.Site
	*Service
	t *testing.T
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, Site: keyringtest.NewSite()}
	s.Service = s.replica()
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// replica is another service over the same store.
func (s *site) replica(change ...func(*Options)) *Service {
	s.t.Helper()
	o := Options{Store: s.Store, Root: keyringtest.Root(s.t, "a"), Domain: domain, Log: storetest.Quiet(), Now: s.Now}
	for _, f := range change {
		f(&o)
	}
	r, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) issue() *x509.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := s.Issue(s.t.Context(), "h1", &key.PublicKey)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// wantStates requires the authorities that count to be in these states, in order.
func (s *site) wantStates(when string, want ...string) {
	s.t.Helper()
	all, err := s.Authorities(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, a := range all.Items {
		got = append(got, a.State)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%s: %v, want %v", when, got, want)
	}
}

// want requires a certificate to be believed, or refused.
func (s *site) want(believed bool, what string, c *x509.Certificate) {
	s.t.Helper()
	host, err := s.Identify(s.t.Context(), c)
	if believed && (err != nil || host != "h1") || !believed && !refusal.IsKind(err, refusal.Refused) {
		s.t.Errorf("%s: %q, %v, want it believed: %v", what, host, err, believed)
	}
}

// TestChangeOfAuthority goes through a change that no operator ordered: each issued certificate is believed until it ends.
func TestChangeOfAuthority(t *testing.T) {
	s := newSite(t)
	s.Service = s.replica(func(o *Options) { o.Life = MaxLife })
	begun := s.Clock
	s.Clock = begun.Add(s.o.Period - ahead)
	s.issue()
	s.wantStates("a day before", v1.AuthoritySigns, v1.AuthorityNext)
	s.Clock = begun.Add(s.o.Period - time.Second)
	last := s.issue()
	s.Clock = begun.Add(s.o.Period)
	next := s.issue()
	s.wantStates("when it signs", v1.AuthorityAccepted, v1.AuthoritySigns)
	if next.Issuer.String() == last.Issuer.String() {
		t.Error("the next authority does not sign")
	}
	s.Clock = last.NotAfter
	s.want(true, "the last certificate of the one before, when it ends", last)
	s.want(true, "a certificate of the next one", next)
	s.Clock = begun.Add(s.o.Period + MaxLife)
	s.wantStates("a day later", v1.AuthoritySigns)
	s.want(false, "a certificate of the one before", last)
}

// TestAuthorityOutlivesCertificates: whenever a host is handed over, the authority is in
// force for as long as the certificate, also after the service was off.
func TestAuthorityOutlivesCertificates(t *testing.T) {
	const period = 90 * 24 * time.Hour
	for _, off := range []time.Duration{period, 2*period - ahead, 2 * period, 4 * period} {
		s := newSite(t)
		s.Clock = s.Clock.Add(off)
		c := s.issue()
		s.Clock = c.NotAfter
		s.want(true, "a certificate after "+off.String(), c)
	}
}

func TestRotate(t *testing.T) {
	s := newSite(t)
	c := s.issue()
	if _, err := s.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "yearly"}); err != nil {
		t.Fatal(err)
	}
	s.wantStates("asked for", v1.AuthoritySigns, v1.AuthorityNext)
	s.want(true, "after a rotation", c)
	other := s.replica()
	all, err := other.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "stolen", AtOnce: true})
	if err != nil || len(all.Items) != 1 || all.Items[0].State != v1.AuthoritySigns || all.TrustDomain != domain || all.Life != 8*3600 {
		t.Fatalf("at once: %+v, %v", all, err)
	}
	if _, err := other.Identify(t.Context(), c); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("after a rotation at once, where it was done: %v, want it refused", err)
	}
	s.Clock = s.Clock.Add(keyring.Recently)
	s.want(false, "after a rotation at once elsewhere", c)
	s.want(true, "of the new one", s.issue())
}

// TestOtherTrustDomain: names change, and so the authority does.
func TestOtherTrustDomain(t *testing.T) {
	s := newSite(t)
	c := s.issue()
	s.Service = s.replica(func(o *Options) { o.Domain = "other.example" })
	fresh := s.issue()
	if got := fresh.URIs[0].String(); got != "spiffe://other.example/host/h1" {
		t.Errorf("name %s", got)
	}
	s.wantStates("of the new domain", v1.AuthoritySigns)
	s.want(true, "a name of the new domain", fresh)
	s.want(false, "a name of the domain before", c)
}

// TestLostRoot: without the root nothing is issued, issued certificates still count, and an operator can start over.
func TestLostRoot(t *testing.T) {
	s := newSite(t)
	c := s.issue()
	s.Service = s.replica(func(o *Options) { o.Root = keyringtest.Root(t, "b") })
	err := s.Prepare(t.Context())
	if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != "authority_locked" || !strings.Contains(e.Hint, "portcullis authority rotate --at-once --yes") {
		t.Fatalf("open: %v", err)
	}
	s.want(true, "a certificate of before", c)
	if _, err := s.Rotate(t.Context(), "olga", v1.AuthorityRotation{Reason: "root lost", AtOnce: true}); err != nil {
		t.Fatal(err)
	}
	s.issue()
}

func TestOptions(t *testing.T) {
	good := Options{Store: keyringtest.NewSite().Store, Root: keyringtest.Root(t, "a"), Domain: domain}
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
