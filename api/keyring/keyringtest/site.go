// Package keyringtest has what tests of keyring and of its users share.
package keyringtest

import (
	"crypto/sha256"
	"testing"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/fabricsm/vault"
)

// Site is one store for as many services as a test wants, and their clock.
type Site struct {
	Store *store.Store
	Clock time.Time
}

// NewSite makes a Site with nothing in its store.
func NewSite() *Site {
	return &Site{Store: store.New(memory.New(time.Now), ""), Clock: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)}
}

// Now is the time of the site.
func (s *Site) Now() time.Time { return s.Clock }

// Root is a root to seal keys with. Each name has another one.
func Root(t testing.TB, name string) vault.Root {
	t.Helper()
	secret := sha256.Sum256([]byte("root of tests " + name))
	r, err := vault.NewRoot(name, secret[:])
	if err != nil {
		t.Fatal(err)
	}
	return r
}
