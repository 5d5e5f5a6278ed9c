package issuers

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"portcullis/api/hostca"
	"portcullis/api/results"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/fabricsm/vault"
)

func root(t *testing.T, name string) vault.Root {
	t.Helper()
	secret := make([]byte, vault.SecretSize)
	for i := range secret {
		secret[i] = byte(i) + name[0]
	}
	r, err := vault.NewRoot(name, secret)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Without a root nothing is issued.
func TestWithoutRoots(t *testing.T) {
	t.Parallel()
	s := &Site{Store: store.New(memory.New(time.Now), ""), Log: slog.New(slog.DiscardHandler), Now: time.Now}
	hosts, err := s.Hosts(t.Context(), nil)
	if hosts != nil || err != nil {
		t.Errorf("hosts: %v, %v", hosts, err)
	}
	signer, err := s.Results(t.Context(), nil)
	if signer != nil || err != nil {
		t.Errorf("results: %v, %v", signer, err)
	}
	issuer, err := s.Receipts(t.Context(), nil, nil, nil)
	if issuer != nil || err != nil {
		t.Errorf("receipts: %v, %v", issuer, err)
	}
}

// Keys that another root sealed do not open. Both issuers are there though, and the log says what hosts do without.
func TestAnotherRoot(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	for _, tt := range []struct {
		root string
		log  []string
	}{
		{"a", nil},
		{"b", []string{"hosts get no certificates", "no attestation result can be signed", "no receipt can be signed"}},
	} {
		var log bytes.Buffer
		s := &Site{Store: st, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})), Now: time.Now}
		hosts, err := s.Hosts(t.Context(), &hostca.Options{Root: root(t, tt.root), Domain: "example"})
		if hosts == nil || err != nil {
			t.Errorf("hosts under root %s: %v, %v", tt.root, hosts, err)
		}
		signer, err := s.Results(t.Context(), &results.Options{Root: root(t, tt.root), Issuer: "https://portcullis.example"})
		if signer == nil || err != nil {
			t.Errorf("results under root %s: %v, %v", tt.root, signer, err)
		}
		issuer, err := s.Receipts(t.Context(), &results.Options{Root: root(t, tt.root)}, nil, nil)
		if issuer == nil || err != nil {
			t.Errorf("receipts under root %s: %v, %v", tt.root, issuer, err)
		}
		if (log.Len() == 0) != (tt.log == nil) {
			t.Errorf("under root %s the log says %q", tt.root, &log)
		}
		for _, want := range tt.log {
			if !strings.Contains(log.String(), want) {
				t.Errorf("under root %s the log says %q, want %q", tt.root, &log, want)
			}
		}
	}
}

// A start that is to end does not go on without a signer.
func TestTheEndIsAskedFor(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	s := &Site{Store: st, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	if _, err := s.Results(t.Context(), &results.Options{Root: root(t, "a"), Issuer: "https://portcullis.example"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Results(ctx, &results.Options{Root: root(t, "b"), Issuer: "https://portcullis.example"}); err == nil {
		t.Error("a signer without keys goes on after the end was asked for")
	}
}
