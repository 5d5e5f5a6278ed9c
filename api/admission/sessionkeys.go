package admission

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
// backup opens no token. A new key is made each hour, by the Service that first finds it due.

const (
	// sessionKeyLife is how long a key seals tokens. It opens them as long as the next one seals.
	sessionKeyLife = time.Hour
	keyIDSize      = 8
	keySecretSize  = 32 // AES-256
	keptKeys       = 2
)

// sessionKeys is the record of the keys that seal tokens, the newest last.
type sessionKeys struct {
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

const sessionKeysKey = "keys"

func sessionKeyRing() store.Collection[sessionKeys] {
	return store.NewCollection[sessionKeys]("session-keys", 1)
}

// sessionKey is a key that is open. Printed it does not show its secret.
type sessionKey struct {
	id     []byte
	secret ib.SecretText
	made   time.Time
}

// String returns the key without its secret.
func (k sessionKey) String() string { return "session key " + hex.EncodeToString(k.id) }

func (k *sessionKey) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher([]byte(k.secret.Reveal()))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// newSessionKey draws a key.
func newSessionKey(random io.Reader, now time.Time) (sessionKey, error) {
	b := make([]byte, keyIDSize+keySecretSize)
	if _, err := io.ReadFull(random, b); err != nil {
		return sessionKey{}, fmt.Errorf("draw a key of sessions: %w", err)
	}
	return sessionKey{id: b[:keyIDSize:keyIDSize], secret: ib.NewSecretText(string(b[keyIDSize:])), made: now}, nil
}

// keyDue reports whether another key is to be made.
func keyDue(keys []sessionKey, now time.Time) bool {
	if len(keys) == 0 {
		return true
	}
	age := now.Sub(keys[len(keys)-1].made)
	return age < 0 || age >= sessionKeyLife
}

// sessionRing keeps keys open, so that they are opened once. Without a root it is the only place that has them.
type sessionRing struct {
	mu   sync.Mutex
	of   string // what the keys are sealed in, and as what
	keys []sessionKey
}

// open returns the keys of a record.
func (r *sessionRing) open(rec *sessionKeys, root vault.Root, random io.Reader) ([]sessionKey, error) {
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
	keys := make([]sessionKey, 0, len(rec.Keys))
	for i := range rec.Keys {
		k := &rec.Keys[i]
		secret, _, err := v.Open(k.sealedAs(), k.Sealed)
		if err != nil {
			return nil, err
		}
		keys = append(keys, sessionKey{id: k.ID, secret: ib.NewSecretText(string(secret)), made: k.Made})
		clear(secret)
	}
	r.of, r.keys = of, keys
	return keys, nil
}

// own returns the keys of a Service without a root, and the next one with them if that is due.
func (r *sessionRing) own(random io.Reader, now time.Time, next bool) ([]sessionKey, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !next || !keyDue(r.keys, now) {
		return r.keys, nil
	}
	k, err := newSessionKey(random, now)
	if err != nil {
		return nil, err
	}
	keys := append(append([]sessionKey{}, r.keys...), k)
	r.keys = keys[max(0, len(keys)-keptKeys):]
	return r.keys, nil
}

// sessionKeys returns the keys that open tokens. Keys that another root sealed open none.
func (s *Service) sessionKeys(ctx context.Context) ([]sessionKey, error) {
	if s.o.Root == nil {
		return s.sessions.own(s.o.Rand, s.now(), false)
	}
	rec, err := optional(sessionKeyRing().Get(ctx, s.o.Store, sessionKeysKey))
	if err != nil {
		return nil, refusal.Explain(err)
	}
	keys, err := s.sessions.open(&rec, s.o.Root, s.o.Rand)
	if err != nil { // the next session makes others, and says so
		return nil, nil
	}
	return keys, nil
}

// sealingKey returns the key that seals now. It makes the next one where that is due.
func (s *Service) sealingKey(ctx context.Context) (sessionKey, error) {
	var keys []sessionKey
	var err error
	if s.o.Root == nil {
		keys, err = s.sessions.own(s.o.Rand, s.now(), true)
	} else if keys, err = s.sessionKeys(ctx); err == nil && keyDue(keys, s.now()) {
		keys, err = s.nextKey(ctx)
	}
	if _, is := errors.AsType[*refusal.Error](err); err != nil && !is {
		err = &refusal.Error{Code: "internal", Status: refusal.Internal, Detail: "key of sessions: " + err.Error(), Err: err}
	}
	if err != nil {
		return sessionKey{}, err
	}
	return keys[len(keys)-1], nil
}

// nextKey stores the next key, unless another Service was first, and returns those that count.
func (s *Service) nextKey(ctx context.Context) (keys []sessionKey, _ error) {
	k, err := newSessionKey(s.o.Rand, s.now())
	if err != nil {
		return nil, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		rec, err := optional(sessionKeyRing().Get(ctx, tx, sessionKeysKey))
		if err != nil {
			return err
		}
		keys, err = s.sessions.open(&rec, s.o.Root, s.o.Rand)
		if err == nil && !keyDue(keys, s.now()) {
			return nil
		}
		v, err := s.sessionVault(&rec)
		if err != nil {
			return err
		}
		fresh := sealedKey{ID: k.id, Made: k.made}
		if fresh.Sealed, err = v.Seal(fresh.sealedAs(), 1, []byte(k.secret.Reveal())); err != nil {
			return err
		}
		rec.Keys = append(rec.Keys, fresh)
		rec.Keys = rec.Keys[max(0, len(rec.Keys)-keptKeys):]
		if keys, err = s.sessions.open(&rec, s.o.Root, s.o.Rand); err != nil {
			return err
		}
		return sessionKeyRing().Put(tx, sessionKeysKey, rec)
	})
	return keys, err
}

// sessionVault opens what the keys of a record are sealed in. Where that does not open, the keys are given up.
func (s *Service) sessionVault(rec *sessionKeys) (*vault.Vault, error) {
	if rec.Vault != nil {
		_, err := s.sessions.open(rec, s.o.Root, s.o.Rand)
		if err == nil {
			return vault.Open(rec.Vault, s.o.Root, s.o.Rand)
		}
		s.o.Log.Warn("keys of sessions do not open: others are made, and sessions under way are void", "error", err)
	}
	v, err := vault.Create(s.o.Root, s.o.Rand)
	if err != nil {
		return nil, err
	}
	*rec = sessionKeys{Vault: v.Header()}
	return v, nil
}
