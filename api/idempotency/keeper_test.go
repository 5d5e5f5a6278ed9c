package idempotency_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"portcullis/api/idempotency"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
)

func request(caller, key, body string) *idempotency.Request {
	return &idempotency.Request{Caller: caller, Key: key, Fingerprint: sha256.Sum256([]byte(body))}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *refusal.Error
	if !errors.As(err, &e) || e.Code != code || e.Hint == "" {
		t.Fatalf("error %v, want a refusal with the code %s and a hint", err, code)
	}
}

func TestKeeper(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	s := store.New(memory.New(time.Now), "")
	// Two instances over one store.
	a := idempotency.New(s, func() time.Time { return now }, idempotency.DefaultRate())
	b := idempotency.New(s.Twin(), func() time.Time { return now }, idempotency.DefaultRate())

	if first, err := a.Begin(ctx, request("olga", "k", "x")); first != nil || err != nil {
		t.Fatalf("a new request: %v, %v", first, err)
	}
	_, err := b.Begin(ctx, request("olga", "k", "x"))
	wantCode(t, err, idempotency.CodePending)
	want := idempotency.Answer{Status: 201, Header: map[string]string{"Etag": `"1"`}, Body: []byte("made")}
	if err := a.Finish(ctx, request("olga", "k", "x"), want); err != nil {
		t.Fatal(err)
	}
	first, err := b.Begin(ctx, request("olga", "k", "x"))
	if err != nil || first == nil || first.Status != 201 || first.Header["Etag"] != `"1"` || string(first.Body) != "made" {
		t.Fatalf("the repetition at another instance: %+v, %v; want %+v", first, err, want)
	}
	_, err = b.Begin(ctx, request("olga", "k", "y"))
	wantCode(t, err, idempotency.CodeReused)
	if first, err := b.Begin(ctx, request("boris", "k", "y")); first != nil || err != nil {
		t.Errorf("the same key of another credential: %v, %v; want a new request", first, err)
	}
	if err := b.Forget(ctx, request("boris", "k", "y")); err != nil {
		t.Fatal(err)
	}
	if first, err := a.Begin(ctx, request("boris", "k", "z")); first != nil || err != nil {
		t.Errorf("a request that was forgotten: %v, %v; want a new one", first, err)
	}
}

func TestKeeperBoundsKeys(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	k := idempotency.New(store.New(memory.New(time.Now), ""), func() time.Time { return now }, limit.Rate{PerSecond: 1, Burst: 2})
	for _, key := range []string{"a", "b"} {
		if _, err := k.Begin(ctx, request("olga", key, "x")); err != nil {
			t.Fatal(err)
		}
	}
	_, err := k.Begin(ctx, request("olga", "c", "x"))
	wantCode(t, err, "rate_limited")
	_, err = k.Begin(ctx, request("olga", "a", "x"))
	wantCode(t, err, idempotency.CodePending) // not a new one, so it is not counted
	if _, err := k.Begin(ctx, request("boris", "c", "x")); err != nil {
		t.Errorf("another credential: %v", err)
	}
}

// TestKeeperWithoutStore fails each write of a request in turn: what fails to begin is refused.
func TestKeeperWithoutStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := &storetest.Failing{Backend: memory.New(time.Now)}
	k := idempotency.New(store.New(f, ""), time.Now, idempotency.DefaultRate())
	f.FailAt(1, storetest.Before)
	_, err := k.Begin(ctx, request("olga", "k", "x"))
	wantCode(t, err, "store_unavailable")
	f.Heal()
	if _, err := k.Begin(ctx, request("olga", "k", "x")); err != nil {
		t.Fatal(err)
	}
	f.FailAt(1, storetest.Before)
	if err := k.Finish(ctx, request("olga", "k", "x"), idempotency.Answer{Status: 200}); !errors.Is(err, storetest.ErrInjected) {
		t.Errorf("Finish without a store: %v", err)
	}
	f.Heal()
	_, err = k.Begin(ctx, request("olga", "k", "x"))
	wantCode(t, err, idempotency.CodePending)
}

func TestValidKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"": false, "a": true, `"8e03978e-40d5-43e8-bc93-6894a57f9324"`: true, "a b": false, "a\n": false, "é": false,
		strings.Repeat("x", idempotency.MaxKey): true, strings.Repeat("x", idempotency.MaxKey+1): false,
	} {
		if got := idempotency.ValidKey(key); got != want {
			t.Errorf("ValidKey(%q) = %v, want %v", key, got, want)
		}
	}
}
