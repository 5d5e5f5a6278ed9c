package session

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/ca"
	"portcullis/cmd/internal/signin"
	"portcullis/fabricsm/ib"
)

var testCA = func() string {
	root, err := ca.New("idp", time.Now())
	if err != nil {
		panic(err)
	}
	pair, err := root.PEM()
	if err != nil {
		panic(err)
	}
	return string(pair.Cert)
}()

// bench is a session whose provider and clock a test plays.
type bench struct {
	t     *testing.T
	place Place
	now   time.Time
	asked []string // refresh tokens that the provider was asked with
	fail  error
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, place: Of(t.TempDir(), "prod", ""), now: noon}
	put(t, b.place, example())
	return b
}

// open returns a source, as another process has it.
func (b *bench) open() *Source {
	b.t.Helper()
	s, err := Open(b.place, "https://fabric.test")
	if err != nil || s == nil {
		b.t.Fatalf("open: %v, %v", s, err)
	}
	s.now = func() time.Time { return b.now }
	s.ask = func(_ context.Context, x *Session) (*signin.Tokens, error) {
		b.asked = append(b.asked, x.Tokens.Refresh.Reveal())
		if b.fail != nil {
			return nil, b.fail
		}
		n := string(rune('1' + len(b.asked)))
		return &signin.Tokens{Bearer: secret("token" + n), Refresh: secret("r" + n), Begins: b.now, Expires: b.now.Add(time.Hour), Subject: "olga"}, nil
	}
	return s
}

func (b *bench) want(s *Source, token string) {
	b.t.Helper()
	if got, err := s.Token(b.t.Context()); err != nil || got.Reveal() != token {
		b.t.Errorf("token %q, %v; want %q", got.Reveal(), err, token)
	}
}

func (b *bench) wantEnded(s *Source, why string) {
	b.t.Helper()
	got, err := s.Token(b.t.Context())
	if e, ok := errors.AsType[*Ended](err); !ok || !got.IsZero() || !strings.Contains(err.Error(), "the session of context prod has ended: "+why) || e.Place != b.place {
		b.t.Errorf("token %q, %v; want the end: %s", got.Reveal(), err, why)
	}
}

func (b *bench) wantAsked(refresh ...string) {
	b.t.Helper()
	if strings.Join(b.asked, " ") != strings.Join(refresh, " ") {
		b.t.Errorf("the provider was asked with %q, want %q", b.asked, refresh)
	}
}

// TestRenewal: a token is renewed a minute before its end, or a fifth of its life before where that is less; the new refresh token is kept, and
// another process takes what was renewed.
func TestRenewal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.open(), b.open()
	b.now = noon.Add(59*time.Minute - time.Second)
	b.want(one, "first")
	b.wantAsked()
	b.now = noon.Add(59 * time.Minute)
	b.want(one, "token2")
	b.want(one, "token2")
	b.want(two, "token2")
	b.wantAsked("r1")
	b.now = b.now.Add(2 * time.Hour)
	b.want(two, "token3")
	b.want(one, "token3")
	b.want(b.open(), "token3")
	b.wantAsked("r1", "r2")
	if s := one.Session(); s.Provider != "corp" || !s.SignedIn.Equal(noon) || s.Settings.Issuer != "https://idp.test" || s.Tokens.Refresh.Reveal() != "r3" {
		t.Errorf("%+v", s)
	}

	short := example()
	short.Tokens.Expires = noon.Add(time.Minute)
	put(t, b.place, short)
	b.now = noon.Add(47 * time.Second)
	b.want(b.open(), "first")
	b.now = noon.Add(48 * time.Second)
	b.want(b.open(), "token4")
	unknown := example()
	unknown.Tokens.Begins = time.Time{}
	put(t, b.place, unknown)
	b.now = noon.Add(59 * time.Minute)
	b.want(b.open(), "token5")
}

// TestRenewedOnce: many requests at once, of several sources, ask the provider once.
func TestRenewedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sources := []*Source{b.open(), b.open(), b.open()}
	b.now = noon.Add(2 * time.Hour)
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() { b.want(sources[i%3], "token2") })
	}
	group.Wait()
	b.wantAsked("r1")
}

// TestProviderAway: while the provider can't be asked a token is good until its end, and then the error is that of the attempt; the session
// stays, and is renewed later.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open()
	b.fail = &signin.Error{Detail: "no route", Hint: "check"}
	b.now = noon.Add(time.Hour - time.Second)
	b.want(s, "first")
	b.now = noon.Add(time.Hour)
	_, err := s.Token(t.Context())
	if _, ended := errors.AsType[*Ended](err); ended || err == nil || err.Error() != "session of context prod: no route" {
		t.Errorf("away: %v", err)
	}
	b.fail = nil
	b.want(s, "token4")
	b.wantAsked("r1", "r1", "r1")
}

// TestEndOfASession: a provider that refuses is not asked again. The token is good until its end.
func TestEndOfASession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open()
	b.fail = &signin.Error{Detail: "answers invalid_grant", Hint: "sign in", Over: true}
	b.now = noon.Add(time.Hour - time.Second)
	b.want(s, "first")
	b.now = noon.Add(time.Hour)
	b.wantEnded(s, "its token ended at 2026-11-21T13:00:00Z, and can't be renewed")
	b.wantEnded(b.open(), "its token ended at")
	b.wantAsked("r1")

	put(t, b.place, example())
	b.asked = nil
	b.wantEnded(b.open(), "answers invalid_grant")
	b.wantAsked("r1")
	bare := example()
	bare.Tokens.Refresh = ib.SecretText{}
	put(t, b.place, bare)
	b.wantEnded(b.open(), "its token ended at")

	// Signed out, or signed in elsewhere, by another process meanwhile.
	put(t, b.place, example())
	s = b.open()
	put(t, b.place, nil)
	b.wantEnded(s, "it was signed out")
	b.wantEnded(s, "it was signed out")
	put(t, b.place, example())
	s = b.open()
	other := example()
	other.Service = "https://other.test"
	put(t, b.place, other)
	b.wantEnded(s, "it is for https://other.test now")
	if _, err := Open(b.place, "https://fabric.test"); err == nil || !strings.Contains(err.Error(), "it is for https://other.test, and not for https://fabric.test") {
		t.Errorf("opened for another service: %v", err)
	}
	b.wantAsked("r1")
	if s, err := Open(Of(t.TempDir(), "prod", ""), "https://fabric.test"); s != nil || err != nil {
		t.Errorf("without a session: %v, %v", s, err)
	}
}

// TestInterrupted: who ends a command while another process holds the session is not kept.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open()
	b.now = noon.Add(time.Hour)
	unlock, err := b.place.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Token(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestInterruptedRenewal: what a provider returns after its command was interrupted is kept, and it is not awaited for long.
func TestInterruptedRenewal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open()
	b.now = noon.Add(time.Hour)
	ctx, interrupt := context.WithCancel(t.Context())
	answer := s.ask
	s.ask = func(within context.Context, x *Session) (*signin.Tokens, error) {
		interrupt()
		if within.Err() != nil {
			return nil, within.Err()
		}
		return answer(within, x)
	}
	if got, err := s.Token(ctx); err != nil || got.Reveal() != "token2" {
		t.Errorf("interrupted: %q, %v", got.Reveal(), err)
	}
	if x, err := b.place.Read(); err != nil || x.Tokens.Refresh.Reveal() != "r2" {
		t.Errorf("kept: %+v, %v", x, err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.open()
		b.now = noon.Add(time.Hour)
		ctx, interrupt := context.WithCancel(t.Context())
		s.ask = func(within context.Context, _ *Session) (*signin.Tokens, error) {
			interrupt()
			<-within.Done()
			return nil, within.Err()
		}
		begin := time.Now()
		if _, err := s.Token(ctx); !errors.Is(err, context.Canceled) || time.Since(begin) != grace {
			t.Errorf("a provider that does not answer: %v after %v", err, time.Since(begin))
		}
		asked := false
		s.ask = func(context.Context, *Session) (*signin.Tokens, error) { asked = true; return nil, errors.New("asked") }
		if _, err := s.Token(ctx); !errors.Is(err, context.Canceled) || asked {
			t.Errorf("after the interruption: %v, asked %v", err, asked)
		}
	})
}

// TestFullDisk: a refresh token is not used where the next one can't be kept.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open()
	full := errors.New("no space left on device")
	s.write = func(*Session) error { return full }
	b.now = noon.Add(time.Hour - time.Second)
	b.want(s, "first")
	b.now = noon.Add(time.Hour)
	if got, err := s.Token(t.Context()); !errors.Is(err, full) || !got.IsZero() {
		t.Errorf("on a full disk: %q, %v", got.Reveal(), err)
	}
	b.wantAsked()
}

// TestHeldSession: a process that holds the session and does not end delays a good token for seconds, once, and is named when the token has ended.
func TestHeldSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.open()
		unlock, err := b.place.lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		b.now = noon.Add(time.Hour - time.Second)
		begin := time.Now()
		b.want(s, "first")
		b.want(s, "first")
		if took := time.Since(begin); took != goodWithin {
			t.Errorf("a good token took %v, want %v", took, goodWithin)
		}
		b.now = noon.Add(time.Hour)
		for _, most := range []time.Duration{30 * time.Second, time.Hour} { // that of a request, and longer than a lock is waited for
			ctx, cancel := context.WithTimeout(t.Context(), most)
			begin = time.Now()
			_, err = s.Token(ctx)
			cancel()
			if err == nil || !strings.Contains(err.Error(), "another portcullis changes the session of context prod, and does not end: end it; fuser "+b.place.file+".lock names it") ||
				time.Since(begin) != min(most, lockWithin) {
				t.Errorf("after %v: %v", time.Since(begin), err)
			}
		}
	})
}
