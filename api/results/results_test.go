package results

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/admission"
	"portcullis/api/audit"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
	"portcullis/fabricsm/vault"
)

// site is one store with as many services over it as a test wants.
type site struct {
	t     *testing.T
	store *store.Store
	clock time.Time
	root  vault.Root
}

func newSite(t *testing.T) *site {
	s := &site{t: t, clock: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), root: rootOf(t, "a")}
	s.store = store.New(memory.New(func() time.Time { return s.clock }), "")
	return s
}

func rootOf(t *testing.T, name string) vault.Root {
	t.Helper()
	secret := sha256.Sum256([]byte("root of tests " + name))
	r, err := vault.NewRoot(name, secret[:])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *site) service(edit ...func(*Options)) *Service {
	s.t.Helper()
	o := Options{
		Store: s.store, Root: s.root, Issuer: "https://portcullis.example", Build: "v1", Rotation: 30 * 24 * time.Hour, Log: storetest.Quiet(),
		Now: func() time.Time { return s.clock },
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
	signed, err := svc.Sign(s.t.Context(), claims(), s.clock.Add(time.Hour))
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

// verify gives the claims of a token, and which key signed it.
func (s *site) verify(signed string, keys *token.Keys) (*result.Claims, string, error) {
	s.t.Helper()
	b, kid, err := token.Verify(signed, keys)
	if err != nil {
		return nil, "", err
	}
	c, err := result.Decode(b)
	if err == nil {
		err = c.Check(result.Expect{Now: s.clock})
	}
	return c, kid, err
}

func (s *site) audited() (out []string) {
	s.t.Helper()
	list, _, err := audit.Entries().List(s.t.Context(), s.store, "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range list {
		out = append(out, e.Value.Actor+" "+e.Value.Action)
	}
	return out
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
	// What counts for a moment more gets a life of a moment; what is over gets none.
	signed, err = svc.Sign(t.Context(), claims(), s.clock.Add(90*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if c, _, err := s.verify(signed, s.keys(svc)); err != nil || c.Expires-c.IssuedAt != 90 {
		t.Errorf("signed %+v, %v", c, err)
	}
	if _, err := svc.Sign(t.Context(), claims(), s.clock); !admission.IsKind(err, admission.Unavailable) {
		t.Errorf("signed what is over: %v", err)
	}
}

// TestReplicas: services over one store sign by the same keys, whoever comes first.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.service(), s.service()
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, svc := range []*Service{a, b} {
		wg.Go(func() { errs[i] = svc.Prepare(t.Context()) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := s.audited(); !slices.Equal(got, []string{"service results.rotate"}) {
		t.Fatalf("audit log: %q, want one key made", got)
	}
	fromA, fromB := s.sign(a), s.sign(b)
	_, kidA, errA := s.verify(fromA, s.keys(b))
	_, kidB, errB := s.verify(fromB, s.keys(a))
	if err := errors.Join(errA, errB); err != nil || kidA != kidB {
		t.Errorf("signed by %s and %s, %v", kidA, kidB, err)
	}
	// One rotates, the other follows.
	if _, err := a.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	s.clock = s.clock.Add(publishAhead)
	_, kid, err := s.verify(s.sign(b), s.keys(a))
	if err != nil || kid == kidB {
		t.Errorf("after the rotation signed by %s, %v", kid, err)
	}
}

// TestRotation follows the keys by age: published before it signs, and until its last
// token is over.
func TestRotation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	_, first, err := s.verify(s.sign(svc), s.keys(svc))
	if err != nil {
		t.Fatal(err)
	}
	s.clock = s.clock.Add(30*24*time.Hour - time.Second)
	if _, kid, err := s.verify(s.sign(svc), s.keys(svc)); err != nil || kid != first || len(s.keys(svc).IDs()) != 1 {
		t.Errorf("before its time: signed by %s, %v", kid, err)
	}
	s.clock = s.clock.Add(time.Second)
	_, kid, err := s.verify(s.sign(svc), s.keys(svc))
	published := s.keys(svc).IDs()
	if err != nil || kid != first || len(published) != 2 || published[1] != first {
		t.Errorf("at its time: signed by %s, published %q, %v; want the one before, and the next one published", kid, published, err)
	}
	cached := s.keys(svc)
	s.clock = s.clock.Add(publishAhead)
	last := s.sign(svc) // by the next one
	if _, kid, err := s.verify(last, cached); err != nil || kid != published[0] {
		t.Errorf("signed by %s, %v; want the next one, which was published before", kid, err)
	}
	s.clock = s.clock.Add(publishAfter - time.Second)
	if got := s.keys(svc).IDs(); len(got) != 2 {
		t.Errorf("published %q while a token of the first key may count", got)
	}
	s.clock = s.clock.Add(time.Second)
	if got := s.keys(svc).IDs(); !slices.Equal(got, published[:1]) {
		t.Errorf("published %q, want the newest alone", got)
	}
	if publishAfter < result.MaxLife {
		t.Error("keys are taken away while tokens of theirs count")
	}
	if got := s.audited(); !slices.Equal(got, []string{"service results.rotate", "service results.rotate"}) {
		t.Errorf("audit log: %q", got)
	}
}

func TestOperatorRotates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	signed := s.sign(svc)
	before := s.keys(svc)
	keys, err := svc.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "every spring"})
	if err != nil || len(keys.Keys) != 2 || !keys.Keys[1].Signs.Equal(s.clock.Add(publishAhead)) || keys.Keys[0].Until.IsZero() {
		t.Fatalf("%+v, %v", keys, err)
	}
	if _, _, err := s.verify(signed, s.keys(svc)); err != nil {
		t.Errorf("a token of before: %v", err)
	}
	// Stolen: nothing of before verifies where the keys are asked for anew.
	if _, err := svc.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "stolen", Drop: true}); err != nil {
		t.Fatal(err)
	}
	var e *token.Error
	if _, _, err := s.verify(signed, s.keys(svc)); !errors.As(err, &e) || e.Code != token.UnknownKey {
		t.Errorf("a token of a key that was given up: %v", err)
	}
	if _, _, err := s.verify(s.sign(svc), s.keys(svc)); err != nil {
		t.Errorf("after that: %v", err)
	}
	if slices.ContainsFunc(s.keys(svc).IDs(), func(kid string) bool { return slices.Contains(before.IDs(), kid) }) {
		t.Error("a key that was given up is still published")
	}
	if got := s.audited(); !slices.Equal(got[1:], []string{"olga results.rotate", "olga results.rotate"}) {
		t.Errorf("audit log: %q", got)
	}
	// Who rotates without end is stopped before relying parties refuse the set.
	for range 2 * maxKeys {
		_, err = svc.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "again"})
	}
	if !admission.IsKind(err, admission.Conflict) || len(s.keys(svc).IDs()) != maxKeys {
		t.Errorf("%d keys are published, %v", len(s.keys(svc).IDs()), err)
	}
}

// TestAnotherRoot: without the root nothing is signed, and nobody makes other keys behind
// the back of relying parties. An operator may.
func TestAnotherRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.service()
	signed := s.sign(first)
	other := s.service(func(o *Options) { o.Root = rootOf(t, "b") })
	for range 2 {
		_, err := other.Sign(t.Context(), claims(), s.clock.Add(time.Minute))
		if !admission.IsKind(err, admission.Unavailable) || !strings.Contains(err.Error(), "do not open") {
			t.Fatalf("signed under another root: %v", err)
		}
		if err := other.Prepare(t.Context()); err == nil {
			t.Fatal("prepared under another root")
		}
	}
	if _, err := other.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "r"}); err == nil {
		t.Error("rotated under another root, and the vault is two's")
	}
	s.clock = s.clock.Add(31 * 24 * time.Hour) // its key is old by now, too
	if _, err := other.Sign(t.Context(), claims(), s.clock.Add(time.Minute)); err == nil {
		t.Error("an old key was replaced under another root")
	}
	s.clock = s.clock.Add(-31 * 24 * time.Hour)
	if _, _, err := s.verify(signed, s.keys(other)); err != nil {
		t.Errorf("what is public needs no root: %v", err)
	}
	if _, err := other.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "lost", Drop: true}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.verify(s.sign(other), s.keys(first)); err != nil {
		t.Error(err)
	}
}

// TestStoredKeysAreSealed: what stands in the store shows no private key, and one that was
// changed or put in another's place signs nothing.
func TestStoredKeysAreSealed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	s.sign(svc)
	if _, err := svc.Rotate(t.Context(), "olga", v1.ResultRotation{Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	rec, err := rings().Get(t.Context(), s.store, keyring)
	if err != nil {
		t.Fatal(err)
	}
	r := rec.Value
	private, err := svc.open(&r, &r.Keys[0])
	if err != nil {
		t.Fatal(err)
	}
	scalar, err := private.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.store.Backend().Read(t.Context(), "", true, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range items.Items {
		for what, b := range map[string][]byte{"its bytes": scalar, "hex": fmt.Appendf(nil, "%x", scalar), "base64": []byte(base64.StdEncoding.EncodeToString(scalar))} {
			if bytes.Contains(i.Value, b) {
				t.Errorf("%s shows a private key (%s)", i.Key, what)
			}
		}
	}
	for name, edit := range map[string]func(*ring){
		"another key's seal":  func(r *ring) { r.Keys[0].Sealed = r.Keys[1].Sealed },
		"another number":      func(r *ring) { r.Keys[0].Number = 7 },
		"another public name": func(r *ring) { r.Keys[0].ID = r.Keys[1].ID },
		"cut short":           func(r *ring) { r.Keys[0].Sealed = r.Keys[0].Sealed[:20] },
	} {
		bad := r
		bad.Keys = slices.Clone(r.Keys)
		edit(&bad)
		if _, err := s.store.Update(t.Context(), func(tx *store.Tx) error { return rings().Put(tx, keyring, bad) }); err != nil {
			t.Fatal(err)
		}
		if _, err := svc.Sign(t.Context(), claims(), s.clock.Add(time.Minute)); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}

// TestFailingStore: a key that was not stored signs nothing, whenever the store fails.
func TestFailingStore(t *testing.T) {
	t.Parallel()
	for _, moment := range []storetest.Moment{storetest.Before, storetest.After} {
		s := newSite(t)
		failing := &storetest.Failing{Backend: s.store.Backend()}
		failing.FailAt(1, moment)
		svc := s.service(func(o *Options) { o.Store = store.New(failing, "") })
		if signed, err := svc.Sign(context.Background(), claims(), s.clock.Add(time.Minute)); err == nil {
			t.Errorf("signed %s while the store failed", signed)
		}
		failing.Heal()
		if _, _, err := s.verify(s.sign(svc), s.keys(svc)); err != nil {
			t.Error(err)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{Issuer: "x"}); err == nil {
		t.Error("made without a root")
	}
	if _, err := New(Options{Root: rootOf(t, "a")}); err == nil {
		t.Error("made without an issuer")
	}
}
