package keyring

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Key is one of a ring, as it is stored.
type Key struct {
	ID      string    `json:"id"`
	Scope   string    `json:"scope,omitempty"` // Options.Scope of its maker
	Public  []byte    `json:"public"`
	Sealed  string    `json:"sealed"` // private half
	Created time.Time `json:"created"`
	From    time.Time `json:"from"`           // signs from then on, until the next one does
	Until   time.Time `json:"until,omitzero"` // counts no longer, whatever the others do; zero: no such time
}

// Keys are those that count, in the order in which they sign: some that are still
// accepted, one that signs, and the next one if there is one.
type Keys []Key

// Signer returns the place of the key that signs at a time. It is the first one if none does yet: then a clock went back,
// or that of another service is ahead. -1: there is none.
func (k Keys) Signer(now time.Time) int {
	i := len(k) - 1
	for i > 0 && k[i].From.After(now) {
		i--
	}
	return i
}

// next returns the key that does not sign yet, nil if there is none.
func (k Keys) next(now time.Time) *Key {
	if n := len(k); n > 0 && k[n-1].From.After(now) {
		return &k[n-1]
	}
	return nil
}

// counting leaves out keys of another scope, that have ended, and that were followed by
// one which began so long ago.
func (k Keys) counting(scope string, now time.Time, after time.Duration) Keys {
	k = slices.DeleteFunc(k, func(k Key) bool {
		return k.Scope != scope || !k.Until.IsZero() && !now.Before(k.Until)
	})
	for len(k) > 1 && !k[1].From.Add(after).After(now) {
		k = k[1:]
	}
	return k
}

// list names them, for the audit log.
func (k Keys) list() string {
	ids := make([]string, 0, len(k))
	for i := range k {
		ids = append(ids, k[i].ID)
	}
	return cmp.Or(strings.Join(ids, " "), "none")
}

// sealedAs is the name that the private half is sealed under. It holds the public one, so the key that opens is the one
// that it names.
func (k *Key) sealedAs() string { return fmt.Sprintf("%s/%x", k.ID, sha256.Sum256(k.Public)) }

// record is a whole ring.
type record struct {
	Vault []byte `json:"vault"` // header of what the keys are sealed in; nil: none yet
	Keys  Keys   `json:"keys"`
}

// theRecord is the only one of its collection.
const theRecord = "ring"
