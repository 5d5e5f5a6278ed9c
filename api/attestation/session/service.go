package session

import (
	"context"
	"io"
	"log/slog"
	"regexp"
	"time"

	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/attest"
	"portcullis/fabricsm/vault"
)

// Options configure Tokens. All but Root are required.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	// Root seals the keys in the store. nil: they are in the memory of these Tokens alone.
	Root vault.Root
	Now  func() time.Time // as records keep it
	Rand io.Reader
}

// Tokens seals and opens sessions. Its methods are safe for concurrent use. Refusals are *refusal.Error, except that a
// token which opens no session is an *attest.Refusal.
type Tokens struct {
	o    Options
	ring ring // keys that are open
}

// New makes Tokens.
func New(o Options) *Tokens { return &Tokens{o: o} }

func (t *Tokens) now() time.Time { return t.o.Now() }

// update runs one transaction and translates the store's errors.
func (t *Tokens) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	_, err := t.o.Store.Update(ctx, fn)
	return refusal.Explain(err)
}

var numberForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// ValidID reports whether a text can be the id of a session: a token, or its number alone.
func ValidID(id string) bool { return len(id) <= maxToken && numberForm.MatchString(Number(id)) }

// Unknown refuses a session.
func Unknown() *attest.Refusal {
	return &attest.Refusal{Code: attest.ReasonSession, Detail: "session is unknown, expired or used"}
}
