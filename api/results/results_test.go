package results

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/keyring/keyringtest"
	"portcullis/api/refusal"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
)

// site is one store with as many services over it as a test wants.
type site struct {
	*keyringtest.Site
	t *testing.T
}

func newSite(t *testing.T) *site { return &site{keyringtest.NewSite(), t} }

func (s *site) service(edit ...func(*Options)) *Service {
	s.t.Helper()
	o := Options{
		Store: s.Store, Root: keyringtest.Root(s.t, "a"), Issuer: "https://portcullis.example", Build: "v1", Period: 30 * 24 * time.Hour,
		Log: storetest.Quiet(), Now: s.Now,
	}
	for _, e := range edit {
		e(&o)
	}
	svc, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return svc
}

func claims() *result.Claims {
	c := &result.Claims{Subject: "compute-01", Submods: map[string]result.Appraisal{result.Platform: {Status: result.Affirming, Vector: result.Vector{Identity: 2}}}}
	c.Conclude()
	return c
}

func (s *site) sign(svc *Service) string {
	s.t.Helper()
	signed, err := svc.Sign(s.t.Context(), claims(), s.Clock.Add(time.Hour))
	if err != nil {
		s.t.Fatal(err)
	}
	return signed
}

func (s *site) keys(svc *Service) *token.Keys {
	s.t.Helper()
	set, err := svc.JWKS(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	k, err := token.ParseKeys(set)
	if err != nil {
		s.t.Fatalf("%s: %v", set, err)
	}
	return k
}

// verify returns the claims of a token, and which key signed it.
func (s *site) verify(signed string, keys *token.Keys) (*result.Claims, string, error) {
	s.t.Helper()
	b, kid, err := token.Verify(signed, keys)
	if err != nil {
		return nil, "", err
	}
	c, err := result.Decode(b)
	if err == nil {
		err = c.Check(result.Expect{Now: s.Clock})
	}
	return c, kid, err
}

func TestSign(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	signed := s.sign(svc)
	c, kid, err := s.verify(signed, s.keys(svc))
	if err != nil {
		t.Fatal(err)
	}
	if c.Issuer != "https://portcullis.example" || c.Profile != result.Profile || c.Verifier != (result.Verifier{Developer: "Portcullis", Build: "v1"}) ||
		c.Expires-c.IssuedAt != 600 || c.NotBefore != c.IssuedAt || c.ID == "" {
		t.Errorf("signed %+v", c)
	}
	again, _, err := s.verify(s.sign(svc), s.keys(svc))
	if err != nil || again.ID == c.ID {
		t.Errorf("two results have the id %q, %v", c.ID, err)
	}
	if svc.Signed(result.Affirming) != 2 || svc.Signed(result.Warning) != 0 {
		t.Errorf("counted %d and %d", svc.Signed(result.Affirming), svc.Signed(result.Warning))
	}
	keys, err := svc.Keys(t.Context())
	if err != nil || len(keys.Keys) != 1 || keys.Keys[0].ID != kid || !keys.Keys[0].Until.IsZero() || keys.Issuer != c.Issuer {
		t.Errorf("shown as %+v, %v", keys, err)
	}
	// A claim that counts for a moment more gets a life of a moment; one that is over gets none.
	signed, err = svc.Sign(t.Context(), claims(), s.Clock.Add(90*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if c, _, err := s.verify(signed, s.keys(svc)); err != nil || c.Expires-c.IssuedAt != 90 {
		t.Errorf("signed %+v, %v", c, err)
	}
	if _, err := svc.Sign(t.Context(), claims(), s.Clock); !refusal.IsKind(err, refusal.Unavailable) {
		t.Errorf("signed what is over: %v", err)
	}
}

// TestRotation: a verifier that kept the published keys for as long as it may verifies what is signed; and a token is good
// for as long as it says.
func TestRotation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	begun := s.Clock
	s.sign(svc)
	s.Clock = begun.Add(svc.o.Period - publishAhead)
	_, first, err := s.verify(s.sign(svc), s.keys(svc))
	published := s.keys(svc)
	if ids := published.IDs(); err != nil || len(ids) != 2 || ids[1] != first {
		t.Fatalf("signed by %s, published %q, %v; want the one before, and the next one published", first, ids, err)
	}
	s.Clock = begun.Add(svc.o.Period - MaxAge)
	kept := s.keys(svc)
	s.Clock = begun.Add(svc.o.Period - time.Second)
	last := s.sign(svc)
	s.Clock = begun.Add(svc.o.Period)
	if _, kid, err := s.verify(s.sign(svc), kept); err != nil || kid != published.IDs()[0] {
		t.Errorf("signed by %s, %v; want the next one, which was published before", kid, err)
	}
	keys, err := svc.Keys(t.Context())
	if err != nil || len(keys.Keys) != 2 || keys.Keys[0].ID != first || !keys.Keys[0].Until.Equal(s.Clock.Add(publishAfter)) || !keys.Keys[1].Until.IsZero() ||
		!keys.Keys[1].Signs.Equal(s.Clock) || !keys.Keys[1].Created.Equal(s.Clock.Add(-publishAhead)) {
		t.Errorf("shown as %+v, %v", keys, err)
	}
	s.Clock = s.Clock.Add(result.MaxLife - 2*time.Second)
	if _, kid, err := s.verify(last, s.keys(svc)); err != nil || kid != first {
		t.Errorf("the last token of the first key: signed by %s, %v", kid, err)
	}
	s.Clock = begun.Add(svc.o.Period + publishAfter)
	if got := s.keys(svc).IDs(); !slices.Equal(got, published.IDs()[:1]) {
		t.Errorf("published %q, want the newest alone", got)
	}
}

// TestDrop: signatures by stolen keys verify nowhere where keys are fetched again.
func TestDrop(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	signed := s.sign(svc)
	if _, err := svc.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "every spring"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.verify(signed, s.keys(svc)); err != nil {
		t.Errorf("a token of before a rotation: %v", err)
	}
	if _, err := svc.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "stolen", Drop: true}); err != nil {
		t.Fatal(err)
	}
	var e *token.Error
	if _, _, err := s.verify(signed, s.keys(svc)); !errors.As(err, &e) || e.Code != token.UnknownKey {
		t.Errorf("a token of a key that was given up: %v", err)
	}
	if _, _, err := s.verify(s.sign(svc), s.keys(s.service())); err != nil || len(s.keys(svc).IDs()) != 1 {
		t.Errorf("after that: %v, published %q", err, s.keys(svc).IDs())
	}
}

// TestAnotherRoot: without the root nothing is signed, and public keys stay public.
func TestAnotherRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	signed := s.sign(s.service())
	other := s.service(func(o *Options) { o.Root = keyringtest.Root(t, "b") })
	_, err := other.Sign(t.Context(), claims(), s.Clock.Add(time.Minute))
	for _, err := range []error{err, other.Prepare(t.Context())} {
		if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != "result_keys_locked" || !strings.Contains(e.Hint, "portcullis result rotate --drop") {
			t.Errorf("under another root: %v", err)
		}
	}
	if _, _, err := s.verify(signed, s.keys(other)); err != nil {
		t.Error(err)
	}
}

func TestHalvesOfTwoKeys(t *testing.T) {
	t.Parallel()
	a, errA := makeKey(time.Time{}, time.Time{})
	b, errB := makeKey(time.Time{}, time.Time{})
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	for name, halves := range map[string][2][]byte{"of two": {b.Public, a.Secret}, "no public one": {nil, a.Secret}, "cut short": {a.Public, a.Secret[1:]}} {
		if _, err := openKey(halves[0], halves[1]); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{Issuer: "x"}); err == nil {
		t.Error("made without a root")
	}
	if _, err := New(Options{Root: keyringtest.Root(t, "a")}); err == nil {
		t.Error("made without an issuer")
	}
}
