package session

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/vault"
)

// Keys of sessions open the secrets of sessions under way, so the store has them sealed: the reader of a disk or of a
// backup opens no token. A new key is made each hour, by the instance that first finds it due.

const (
	// keyLife is how long a key seals tokens. It opens them as long as the next one seals.
	keyLife       = time.Hour
	keyIDSize     = 8
	keySecretSize = 32 // AES-256
	keptKeys      = 2
)

// keyRecord is the record of the keys that seal tokens, the newest last.
type keyRecord struct {
	Vault []byte      `json:"vault"` // header of what the secrets are sealed in; nil: none counts
	Keys  []sealedKey `json:"keys"`
}

type sealedKey struct {
	ID     []byte    `json:"id"`
	Sealed string    `json:"sealed"` // secret
	Made   time.Time `json:"made"`
}

// sealedAs is the name that the secret is sealed under.
func (k *sealedKey) sealedAs() string { return "session-key/" + hex.EncodeToString(k.ID) }

const keysKey = "keys"

func keyRecords() store.Collection[keyRecord] {
	return store.NewCollection[keyRecord]("session-keys", 1)
}

// key is a key that is open. Printed it does not show its secret.
type key struct {
	id     []byte
	secret ib.SecretText
	made   time.Time
}

// String returns the key without its secret.
func (k key) String() string { return "session key " + hex.EncodeToString(k.id) }

func (k *key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher([]byte(k.secret.Reveal()))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// newKey draws a key.
func newKey(random io.Reader, now time.Time) (key, error) {
	b := make([]byte, keyIDSize+keySecretSize)
	if _, err := io.ReadFull(random, b); err != nil {
		return key{}, fmt.Errorf("draw a key of sessions: %w", err)
	}
	return key{id: b[:keyIDSize:keyIDSize], secret: ib.NewSecretText(string(b[keyIDSize:])), made: now}, nil
}

// keyDue reports whether another key is to be made.
func keyDue(keys []key, now time.Time) bool {
	if len(keys) == 0 {
		return true
	}
	age := now.Sub(keys[len(keys)-1].made)
	return age < 0 || age >= keyLife
}

// ring keeps keys open, so that they are opened once. Without a root it is the only place that has them.
type ring struct {
	mu   sync.Mutex
	of   string // what the keys are sealed in, and as what
	keys []key
}

// open returns the keys of a record.
func (r *ring) open(rec *keyRecord, root vault.Root, random io.Reader) ([]key, error) {
	if rec.Vault == nil || len(rec.Keys) == 0 {
		return nil, nil
	}
	of := string(rec.Vault)
	for i := range rec.Keys {
		of += " " + rec.Keys[i].Sealed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == of {
		return r.keys, nil
	}
	v, err := vault.Open(rec.Vault, root, random)
	if err != nil {
		return nil, err
	}
	keys := make([]key, 0, len(rec.Keys))
	for i := range rec.Keys {
		k := &rec.Keys[i]
		secret, _, err := v.Open(k.sealedAs(), k.Sealed)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key{id: k.ID, secret: ib.NewSecretText(string(secret)), made: k.Made})
		clear(secret)
	}
	r.of, r.keys = of, keys
	return keys, nil
}

// own returns the keys of Tokens without a root, and the next one with them if that is due.
func (r *ring) own(random io.Reader, now time.Time, next bool) ([]key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !next || !keyDue(r.keys, now) {
		return r.keys, nil
	}
	k, err := newKey(random, now)
	if err != nil {
		return nil, err
	}
	keys := append(append([]key{}, r.keys...), k)
	r.keys = keys[max(0, len(keys)-keptKeys):]
	return r.keys, nil
}

// keyRecord returns the keys that open tokens. Keys that another root sealed open none.
func (t *Tokens) keys(ctx context.Context) ([]key, error) {
	if t.o.Root == nil {
		return t.ring.own(t.o.Rand, t.now(), false)
	}
	rec, err := store.Optional(keyRecords().Get(ctx, t.o.Store, keysKey))
	if err != nil {
		return nil, refusal.Explain(err)
	}
	keys, err := t.ring.open(&rec, t.o.Root, t.o.Rand)
	if err != nil { // the next session makes others, and says so
		return nil, nil
	}
	return keys, nil
}

// sealingKey returns the key that seals now. It makes the next one where that is due.
func (t *Tokens) sealingKey(ctx context.Context) (key, error) {
	var keys []key
	var err error
	if t.o.Root == nil {
		keys, err = t.ring.own(t.o.Rand, t.now(), true)
	} else if keys, err = t.keys(ctx); err == nil && keyDue(keys, t.now()) {
		keys, err = t.nextKey(ctx)
	}
	if _, is := errors.AsType[*refusal.Error](err); err != nil && !is {
		err = &refusal.Error{Code: "internal", Status: refusal.Internal, Detail: "key of sessions: " + err.Error(), Err: err}
	}
	if err != nil {
		return key{}, err
	}
	return keys[len(keys)-1], nil
}

// nextKey stores the next key, unless another instance was first, and returns those that count.
func (t *Tokens) nextKey(ctx context.Context) (keys []key, _ error) {
	k, err := newKey(t.o.Rand, t.now())
	if err != nil {
		return nil, err
	}
	err = t.update(ctx, func(tx *store.Tx) error {
		rec, err := store.Optional(keyRecords().Get(ctx, tx, keysKey))
		if err != nil {
			return err
		}
		keys, err = t.ring.open(&rec, t.o.Root, t.o.Rand)
		if err == nil && !keyDue(keys, t.now()) {
			return nil
		}
		v, err := t.vault(&rec)
		if err != nil {
			return err
		}
		fresh := sealedKey{ID: k.id, Made: k.made}
		if fresh.Sealed, err = v.Seal(fresh.sealedAs(), 1, []byte(k.secret.Reveal())); err != nil {
			return err
		}
		rec.Keys = append(rec.Keys, fresh)
		rec.Keys = rec.Keys[max(0, len(rec.Keys)-keptKeys):]
		if keys, err = t.ring.open(&rec, t.o.Root, t.o.Rand); err != nil {
			return err
		}
		return keyRecords().Put(tx, keysKey, rec)
	})
	return keys, err
}

// sessionVault opens what the keys of a record are sealed in. Where that does not open, the keys are given up.
func (t *Tokens) vault(rec *keyRecord) (*vault.Vault, error) {
	if rec.Vault != nil {
		_, err := t.ring.open(rec, t.o.Root, t.o.Rand)
		if err == nil {
			return vault.Open(rec.Vault, t.o.Root, t.o.Rand)
		}
		t.o.Log.Warn("keys of sessions do not open: others are made, and sessions under way are void", "error", err)
	}
	v, err := vault.Create(t.o.Root, t.o.Rand)
	if err != nil {
		return nil, err
	}
	*rec = keyRecord{Vault: v.Header()}
	return v, nil
}
