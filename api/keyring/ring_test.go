package keyring

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/api/audit"
	"portcullis/api/keyring/keyringtest"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
)

const (
	day    = 24 * time.Hour
	period = 30 * day
	before = 12 * time.Hour // Options.Ahead
	after  = 36 * time.Hour
)

// site has rings of keys that are texts.
type site struct {
	*keyringtest.Site
	t      *testing.T
	log    bytes.Buffer
	opened atomic.Int32 // how often a key was
}

func newSite(t *testing.T) *site { return &site{Site: keyringtest.NewSite(), t: t} }

// ring is a replica's, over the same store.
func (s *site) ring(change ...func(*Options[string])) *Ring[string] {
	s.t.Helper()
	o := Options[string]{
		Store: s.Store.Twin(), Root: keyringtest.Root(s.t, "a"), Log: slog.New(slog.NewTextHandler(&s.log, nil)), Now: s.Now,
		Scope: "one", Period: period, Ahead: before, After: after,
		Make: func(_, from time.Time) (*Fresh, error) {
			text := rand.Text()
			return &Fresh{ID: text[:8], Public: []byte("public " + text), Secret: []byte("secret " + text), Until: from.Add(2*period + after)}, nil
		},
		Open: func(public, secret []byte) (string, error) {
			s.opened.Add(1)
			if !bytes.Equal(public[len("public "):], secret[len("secret "):]) {
				return "", errors.New("halves of two keys")
			}
			return string(secret), nil
		},
		Words: Words{Name: "test-keys", Code: "test_keys", Key: "key of tests", Signed: "all tests", Setting: "tests.root", Show: "tests show", Anew: "tests anew"},
	}
	for _, f := range change {
		f(&o)
	}
	r, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// signer returns the id of the key that signs, which opens.
func (s *site) signer(r *Ring[string]) string {
	s.t.Helper()
	k, opened, err := r.Signer(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.HasPrefix(opened, "secret "+k.ID) {
		s.t.Fatalf("key %s opens to %s", k.ID, opened)
	}
	return k.ID
}

func (s *site) rotate(r *Ring[string], atOnce bool) Keys {
	s.t.Helper()
	keys, err := r.Rotate(s.t.Context(), "olga", "why not", atOnce)
	if err != nil {
		s.t.Fatal(err)
	}
	return keys
}

// count is of the keys that count.
func (s *site) count(r *Ring[string]) int {
	s.t.Helper()
	keys, err := r.Keys(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return len(keys)
}

func (s *site) wantAudit(want ...string) {
	s.t.Helper()
	list, _, err := audit.Entries().List(s.t.Context(), s.Store, "")
	if err != nil {
		s.t.Fatal(err)
	}
	got := []string{}
	for _, e := range list {
		got = append(got, e.Value.Actor+" "+e.Value.Action)
		if !strings.HasPrefix(e.Value.Object, "test-keys/") {
			s.t.Errorf("audit log: %+v", e.Value)
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("audit log: %q, want %q", got, want)
	}
}

func wantLocked(t *testing.T, what string, err error) {
	t.Helper()
	e, ok := errors.AsType[*refusal.Error](err)
	if !ok || e.Code != "test_keys_locked" || e.Status != refusal.Unavailable || !strings.Contains(e.Hint, "tests.root") || !strings.Contains(e.Hint, "tests anew") {
		t.Errorf("%s: %v, want it locked, and what to do", what, err)
	}
}

// TestReplicas: rings over one store sign by the same key, whichever comes first.
func TestReplicas(t *testing.T) {
	s := newSite(t)
	rings := []*Ring[string]{s.ring(), s.ring(), s.ring()}
	race := func() (ids []string) {
		t.Helper()
		ids = make([]string, len(rings))
		var wg sync.WaitGroup
		for i, r := range rings {
			wg.Go(func() {
				k, _, err := r.Signer(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = k.ID
			})
		}
		wg.Wait()
		if len(slices.Compact(slices.Clone(ids))) != 1 {
			t.Errorf("signed by %q", ids)
		}
		return ids
	}
	first := race()[0]
	s.wantAudit("service test-keys.rotate")
	s.Clock = s.Clock.Add(period - before)
	if race()[0] != first || s.count(rings[0]) != 2 {
		t.Errorf("%d keys when the next one is due", s.count(rings[0]))
	}
	s.wantAudit("service test-keys.rotate", "service test-keys.rotate")
	only := s.rotate(rings[2], true)
	if ids := race(); ids[0] != only[0].ID {
		t.Errorf("signed by %q after all keys were given up elsewhere", ids)
	}
}

// TestAnotherWasFirst: a ring that makes a key while another stores its own takes that.
func TestAnotherWasFirst(t *testing.T) {
	s := newSite(t)
	first, late := s.ring(), s.ring()
	ids, made := []string{}, late.o.Make
	late.o.Make = func(now, from time.Time) (*Fresh, error) {
		ids = append(ids, s.signer(first))
		return made(now, from)
	}
	if id := s.signer(late); len(ids) != 1 || id != ids[0] {
		t.Errorf("%s signs, the other ring signs by %q", id, ids)
	}
	s.wantAudit("service test-keys.rotate")
}

// TestRotationCutsNobodyOff follows keys by age: published before they sign, accepted
// after.
func TestRotationCutsNobodyOff(t *testing.T) {
	s := newSite(t)
	r := s.ring()
	begun, first := s.Clock, s.signer(r)
	for _, tt := range []struct {
		name  string
		at    time.Duration
		first bool // signs
		count int
	}{
		{"when the clock went back", -time.Hour, true, 1},
		{"before the next one is due", period - before - time.Second, true, 1},
		{"when it is due", period - before, true, 2},
		{"before it signs", period - time.Second, true, 2},
		{"when it signs", period, false, 2},
		{"while something of the first may count", period + after - time.Second, false, 2},
		{"when nothing does", period + after, false, 1},
		{"before the third is due", 2*period - before - time.Second, false, 1},
		{"when the third is due", 2*period - before, false, 2},
	} {
		s.Clock = begun.Add(tt.at)
		if id := s.signer(r); (id == first) != tt.first || s.count(r) != tt.count {
			t.Errorf("%s: signed by %s of %d keys, want the first: %v, of %d", tt.name, id, s.count(r), tt.first, tt.count)
		}
	}
}

// TestLongOff: where no key is left that can sign, a new one does at once.
func TestLongOff(t *testing.T) {
	for _, off := range []time.Duration{2*period - before - time.Second, 2*period - before + time.Second, 365 * day} {
		s := newSite(t)
		r := s.ring()
		first := s.signer(r)
		s.Clock = s.Clock.Add(off)
		if id := s.signer(r); (id == first) != (off < 2*period-before) {
			t.Errorf("off for %v: %s signs, the first is %s", off, id, first)
		}
		if k, _, err := r.Signer(t.Context()); err != nil || !k.Until.After(s.Clock) {
			t.Errorf("off for %v: signed by a key until %v, %v", off, k.Until, err)
		}
	}
}

// TestOperatorRotates: the next key may be made at any time, once; all may be given up.
func TestOperatorRotates(t *testing.T) {
	s := newSite(t)
	r := s.ring(func(o *Options[string]) { o.Period = 0 })
	first := s.signer(r)
	s.Clock = s.Clock.Add(period)
	if s.signer(r) != first || s.count(r) != 1 {
		t.Error("the key was replaced though nobody asked")
	}
	keys := s.rotate(r, false)
	if len(keys) != 2 || keys[0].ID != first || !keys[1].From.Equal(s.Clock.Add(before)) || !keys[1].Created.Equal(s.Clock) || s.signer(r) != first {
		t.Errorf("rotated: %+v", keys)
	}
	_, err := r.Rotate(t.Context(), "olga", "again", false)
	if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != "test_keys_next" || e.Status != refusal.Conflict || !strings.Contains(e.Hint, "tests anew") {
		t.Errorf("a second one: %v, want a conflict", err)
	}
	all := s.rotate(r, true)
	if len(all) != 1 || all[0].ID == keys[1].ID || s.signer(r) != all[0].ID {
		t.Errorf("at once: %+v", all)
	}
	s.wantAudit("service test-keys.rotate", "olga test-keys.rotate", "olga test-keys.rotate")
	list, _, err := audit.Entries().List(t.Context(), s.Store, "")
	if d := list[len(list)-1].Value.Detail; err != nil || !strings.HasPrefix(d, "why not; given up: "+first+" "+keys[1].ID) {
		t.Errorf("audit log: %s", d)
	}
	// A caller that rotates without end never has many published.
	most := 0
	for range 200 {
		_, err := r.Rotate(t.Context(), "olga", "again", false)
		if err != nil && !refusal.IsKind(err, refusal.Conflict) {
			t.Fatal(err)
		}
		most = max(most, s.count(r))
		s.Clock = s.Clock.Add(time.Hour)
	}
	if want := 2 + int(after/before); most != want {
		t.Errorf("%d keys counted at once, want at most %d", most, want)
	}
}

// TestOtherScope: keys that sign for something else count no more, opened or not.
func TestOtherScope(t *testing.T) {
	s := newSite(t)
	first := s.signer(s.ring())
	other := s.ring(func(o *Options[string]) { o.Scope, o.Root = "two", keyringtest.Root(t, "b") })
	if s.count(other) != 0 || s.signer(other) == first || s.count(other) != 1 {
		t.Errorf("%d keys, %s signs", s.count(other), s.signer(other))
	}
}

// TestAnotherRoot: without the root nothing is signed, and no process makes other keys unseen by those that know the former
// ones. An operator may.
func TestAnotherRoot(t *testing.T) {
	s := newSite(t)
	r := s.ring()
	first := s.signer(r)
	lost := s.ring(func(o *Options[string]) { o.Root = keyringtest.Root(t, "b") })
	_, _, err := lost.Signer(t.Context())
	wantLocked(t, "sign", err)
	_, err = lost.Rotate(t.Context(), "olga", "r", false)
	wantLocked(t, "rotate", err)
	s.Clock = s.Clock.Add(period)
	_, _, err = lost.Signer(t.Context())
	wantLocked(t, "sign when the next one is due", err)
	if keys, err := lost.Keys(t.Context()); err != nil || len(keys) != 1 || keys[0].ID != first {
		t.Errorf("what is public needs no root: %+v, %v", keys, err)
	}
	s.wantAudit("service test-keys.rotate")
	s.rotate(lost, true)
	if s.signer(lost) == first {
		t.Error("a key that was given up signs")
	}
	_, _, err = r.Signer(t.Context())
	wantLocked(t, "sign under the root of before", err)
}

// TestStoredKeysAreSealed: the store shows no private half of a key. A key that was changed or put in another's place signs
// nothing, also where it was opened before.
func TestStoredKeysAreSealed(t *testing.T) {
	s := newSite(t)
	r := s.ring()
	_, opened, err := r.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys := s.rotate(r, false)
	items, err := s.Store.Backend().Read(t.Context(), "", true, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range items.Items {
		for _, form := range []string{opened, hex.EncodeToString([]byte(opened)), base64.StdEncoding.EncodeToString([]byte(opened[:18]))} {
			if strings.Contains(string(i.Value), form) {
				t.Errorf("%s shows a private half", i.Key)
			}
		}
	}
	for name, edit := range map[string]func(a, b *Key){
		"another key's seal":   func(a, b *Key) { a.Sealed = b.Sealed },
		"another key's name":   func(a, b *Key) { a.ID = b.ID },
		"another public half":  func(a, b *Key) { a.Public = b.Public },
		"another key, renamed": func(a, b *Key) { a.Sealed, a.Public = b.Sealed, b.Public },
		"cut short":            func(a, _ *Key) { a.Sealed = a.Sealed[:20] },
	} {
		rec, err := r.read(t.Context(), s.Store)
		if err != nil {
			t.Fatal(err)
		}
		rec.Keys = slices.Clone(keys)
		edit(&rec.Keys[0], &rec.Keys[1])
		if _, err := s.Store.Update(t.Context(), func(tx *store.Tx) error { return r.records.Put(tx, theRecord, rec) }); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Ring[string]{r, s.ring()} {
			_, _, err := r.Signer(t.Context())
			wantLocked(t, name, err)
		}
	}
}

// TestHalvesOfTwoKeys: halves that a user cannot put together sign nothing.
func TestHalvesOfTwoKeys(t *testing.T) {
	s := newSite(t)
	r := s.ring(func(o *Options[string]) {
		o.Make = func(time.Time, time.Time) (*Fresh, error) {
			return &Fresh{ID: "a", Public: []byte("public a"), Secret: []byte("secret b")}, nil
		}
	})
	_, _, err := r.Signer(t.Context())
	wantLocked(t, "sign", err)
}

// TestOpensOnce: a root is asked for a key once, and not while the key signs on.
func TestOpensOnce(t *testing.T) {
	s := newSite(t)
	r := s.ring()
	for range 3 {
		s.signer(r)
	}
	if n := s.opened.Load(); n != 1 {
		t.Errorf("opened %d times", n)
	}
	s.rotate(r, false)
	s.Clock = s.Clock.Add(before)
	s.signer(r)
	if n := s.opened.Load(); n != 2 {
		t.Errorf("opened %d times after another one signs", n)
	}
}

// TestFailingStore: a key that was not stored signs nothing, whenever the store fails;
// and where the next one cannot be made, the one before signs on.
func TestFailingStore(t *testing.T) {
	for _, moment := range []storetest.Moment{storetest.Before, storetest.After} {
		s := newSite(t)
		failing := &storetest.Failing{Backend: s.Store.Backend()}
		r := s.ring(func(o *Options[string]) { o.Store = store.New(failing, "") })
		failing.FailAt(1, moment)
		if k, _, err := r.Signer(context.Background()); !refusal.IsKind(err, refusal.Unavailable) {
			t.Errorf("signed by %+v, %v while the store failed", k, err)
		}
		failing.Heal()
		first := s.signer(r)
		s.wantAudit("service test-keys.rotate")

		s.Clock = s.Clock.Add(period - before)
		failing.FailAt(1, moment)
		if id := s.signer(r); id != first || !strings.Contains(s.log.String(), "the next key of tests could not be made") {
			t.Errorf("signed by %s, the first is %s; log: %s", id, first, &s.log)
		}
		if keys, err := r.Keys(t.Context()); err == nil {
			t.Errorf("gave %+v while the store failed", keys)
		}
		failing.Heal()
		if s.signer(r); s.count(r) != 2 {
			t.Errorf("%d keys once the store is well", s.count(r))
		}
		s.wantAudit("service test-keys.rotate", "service test-keys.rotate")
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(Options[string]{Period: period, Ahead: before}); err == nil {
		t.Error("made without a root")
	}
	if _, err := New(Options[string]{Root: keyringtest.Root(t, "a"), Period: before, Ahead: before}); err == nil {
		t.Error("a key is over before the next one signs")
	}
}
