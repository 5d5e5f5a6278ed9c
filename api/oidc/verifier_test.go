package oidc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// running starts a verifier in a bubble, where the time is that of tokens.
func running(t *testing.T, keys []byte) (*Verifier, *idp) {
	t.Helper()
	v, p := newTest(t, time.Now, keys)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { v.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return v, p
}

// pass lets time pass in a bubble, and what was due by then end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// fresh returns a good token of now.
func fresh(t *testing.T, by *signer, life time.Duration) string {
	t.Helper()
	return by.sign(t, good(map[string]any{"iat": time.Now().Unix(), "exp": time.Now().Add(life).Unix()}), nil)
}

func ask(t *testing.T, v *Verifier, token string) error {
	t.Helper()
	_, err := v.Authenticate(t.Context(), token, time.Now(), anyTime)
	return err
}

// TestRotatedKey: a token of a new key is accepted as soon as the keys were read again, and one of the old key is refused from then
// on, though it was remembered.
func TestRotatedKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := ecSigner(t, "a"), ecSigner(t, "b")
		v, p := running(t, set(t, a))
		old := fresh(t, a, time.Hour)
		if err := ask(t, v, old); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		p.serve(set(t, b), nil)
		if err := ask(t, v, fresh(t, b, time.Hour)); err != nil {
			t.Errorf("a token of the new key, a minute after keys were read: %v", err)
		}
		wantRefused(t, ask(t, v, old), "key of the id")
	})
}

// TestPublishedAhead: a key that is published for RefreshEvery is known when it signs first.
func TestPublishedAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := ecSigner(t, "a"), ecSigner(t, "b")
		v, p := running(t, set(t, a))
		p.serve(set(t, a, b), nil)
		pass(RefreshEvery + time.Second)
		before := p.reads()
		if err := ask(t, v, fresh(t, b, time.Hour)); err != nil || p.reads() != before {
			t.Errorf("error %v, keys read %d times for it", err, p.reads()-before)
		}
	})
}

// TestRandomKeyIDs: however many tokens name keys that there are not, the keys are read once each RefreshGap, a bounded number of
// requests waits, and a request that may not wait is answered at once.
func TestRandomKeyIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := ecSigner(t, "a")
		v, p := running(t, set(t, a))
		began, before := time.Now(), p.reads()
		var group sync.WaitGroup
		var mu sync.Mutex
		at := map[time.Duration]int{}
		for n := range 10 * maxWaiting {
			group.Go(func() {
				token := fresh(t, &signer{a.alg, fmt.Sprint("random", n), a.key}, time.Hour)
				wantRefused(t, ask(t, v, token), "key of the id")
				mu.Lock()
				defer mu.Unlock()
				at[time.Since(began)]++
			})
		}
		group.Wait()
		if at[0] != 9*maxWaiting || at[waitFor] != maxWaiting {
			t.Errorf("answers by time: %v, want %d at once and %d after %v", at, 9*maxWaiting, maxWaiting, waitFor)
		}
		for range 100 {
			if err := ask(t, v, fresh(t, &signer{a.alg, "x" + time.Now().String(), a.key}, time.Hour)); err == nil {
				t.Fatal("a token of an unknown key is accepted")
			}
		}
		most := int(time.Since(began)/RefreshGap) + 1
		if got := p.reads() - before; got > most {
			t.Errorf("keys were read %d times in %v, want %d at most", got, time.Since(began), most)
		}
		if err := ask(t, v, fresh(t, a, time.Hour)); err != nil {
			t.Errorf("a good token meanwhile: %v", err)
		}
	})
}

// TestProviderAway: its keys count for KeysLife, then new and remembered tokens are refused, and they count again when it is back.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := ecSigner(t, "a")
		v, p := running(t, set(t, a))
		p.serve(nil, errors.New("connection refused"))
		pass(KeysLife - time.Minute)
		token := fresh(t, a, time.Hour)
		if err := ask(t, v, token); err != nil {
			t.Errorf("before the end of the keys: %v", err)
		}
		pass(2 * time.Minute)
		if _, known := v.Known(token, time.Now()); known {
			t.Error("a remembered token counts for longer than the keys")
		}
		wantRefused(t, ask(t, v, token), "read at")
		p.serve([]byte("<html>maintenance</html>"), nil)
		pass(RefreshEvery)
		wantRefused(t, ask(t, v, token), "read at")
		p.serve(set(t, a), nil)
		pass(retryAfter)
		if err := ask(t, v, token); err != nil {
			t.Errorf("after the provider is back: %v", err)
		}
	})
}

// TestNotReadYet: until keys were read a token waits for them, and is refused if they don't come.
func TestNotReadYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := ecSigner(t, "a")
		v, _ := newTest(t, time.Now, set(t, a))
		token := fresh(t, a, time.Hour)
		wantRefused(t, ask(t, v, token), "not read yet")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, func() { v.Run(ctx) })
		if err := ask(t, v, token); err != nil {
			t.Error(err)
		}
		cancel()
	})
}

// TestNoTurn: a token that is not verified yet waits for its turn, a known one does not.
func TestNoTurn(t *testing.T) {
	t.Parallel()
	a := ecSigner(t, "a")
	v, _ := newTest(t, atStart, set(t, a))
	ready(t, v)
	token := a.sign(t, good(nil), nil)
	none := func(context.Context) (func(), bool) { return nil, false }
	_, err := v.Authenticate(t.Context(), token, start, none)
	if r := wantRefused(t, err, "too many"); !r.Busy {
		t.Error("not marked as busy")
	}
	if _, err := v.Authenticate(t.Context(), token, start, anyTime); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Authenticate(t.Context(), token, start, none); err != nil {
		t.Errorf("a known token: %v", err)
	}
}

// TestRemembersSoMany: the number of tokens that are remembered is bounded.
func TestRemembersSoMany(t *testing.T) {
	t.Parallel()
	a := ecSigner(t, "a")
	v, _ := newTest(t, atStart, set(t, a))
	for n := range maxVerified + 100 {
		v.remember(fmt.Sprint(n), verified{})
	}
	if len(v.verified) != maxVerified {
		t.Errorf("%d tokens, want %d", len(v.verified), maxVerified)
	}
}

// TestProblems: each names its field.
func TestProblems(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*Issuer){
		"name":          func(i *Issuer) { i.Name = "Corp:x" },
		"issuer":        func(i *Issuer) { i.URL = "http://idp.test" },
		"audience":      func(i *Issuer) { i.Audience = "" },
		"name_claim":    func(i *Issuer) { i.NameClaim = strings.Repeat("n", maxClaim+1) },
		"rules":         func(i *Issuer) { i.Rules = nil },
		"rules.0.claim": func(i *Issuer) { i.Rules[0].Claim = "" },
		"rules.1.value": func(i *Issuer) { i.Rules[1].Value = "" },
		"rules.1.role":  func(i *Issuer) { i.Rules[1].Role = "" },
	} {
		i := corp()
		change(&i)
		if p := i.Problems(); len(p) != 1 || p[0].Field != field || p[0].Text == "" {
			t.Errorf("%s: %+v", field, p)
		}
		if _, err := New([]Issuer{i}, slog.New(slog.DiscardHandler), time.Now); err == nil {
			t.Errorf("%s: taken", field)
		}
	}
	for _, url := range []string{"https://u:p@idp.test", "https://idp.test/?realm=x", "https://idp.test#x", "https://", "idp.test"} {
		i := corp()
		i.URL = url
		if p := i.Problems(); len(p) != 1 || p[0].Field != "issuer" {
			t.Errorf("%s: %+v", url, p)
		}
	}
	if _, err := New([]Issuer{corp(), corp()}, slog.New(slog.DiscardHandler), time.Now); err == nil {
		t.Error("an issuer twice is taken")
	}
}
