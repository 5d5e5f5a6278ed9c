package admission

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"portcullis/api/store"
	"portcullis/attest"
)

// A session is not kept: its id is a sealed token that holds all that evidence is compared with, and that the host
// brings back. Before a TPM has opened the credential of a session nothing of it is in the store, so a stranger that
// knows the EK certificate of a host takes nothing from the host. Of a session that was used its number is kept until
// the token has expired.
//
// The bearer of a token has not opened the credential yet, so the secret in it is encrypted, by a key that all
// instances share by the store.

const (
	// sessionNumber is how many letters of a token name the session; the rest is sealed.
	sessionNumber = 32
	// maxToken bounds a token, which is part of a path.
	maxToken = 8 << 10
	// tokenLabel is bound into each token, with the number of the session.
	tokenLabel = "portcullis/session/1"
	// sessionKeyLife is how long a key seals tokens. It opens them as long as the next one seals.
	sessionKeyLife = time.Hour
	keyIDSize      = 8
	keptKeys       = 2
)

// sessionRecord is an attestation session, as its token holds it.
type sessionRecord struct {
	Challenge *attest.Challenge // its ID is the number, and the token once that is open
	Host      string
	Epoch     int64 // assignment the session belongs to
	Row       int64 // revision of inventory's record of the host
	Source    string
	Locks     bool // the agent can lock adapters
}

// number names the session.
func (r *sessionRecord) number() string { return numberOf(r.Challenge.ID) }

// numberOf returns the number of the session of a token.
func numberOf(token string) string { return token[:min(len(token), sessionNumber)] }

// sessionKeys seal tokens, the newest last.
type sessionKeys struct {
	Keys []sessionKey `json:"keys"`
}

type sessionKey struct {
	ID     []byte    `json:"id"`
	Secret []byte    `json:"secret"` // AES-256
	Made   time.Time `json:"made"`
}

// String returns the key without its secret.
func (k sessionKey) String() string { return "session key " + hex.EncodeToString(k.ID) }

const sessionKeysKey = "keys"

func sessionKeyRing() store.Collection[sessionKeys] {
	return store.NewCollection[sessionKeys]("session-keys", 1)
}

// usedSession says that a session was used.
type usedSession struct {
	Host string    `json:"host"`
	Time time.Time `json:"time"`
}

// usedSessions holds the sessions that were used, by number, until their tokens have expired.
func usedSessions() store.Collection[usedSession] {
	return store.NewCollection[usedSession]("sessions-used", 1)
}

// due reports whether another key is to be made.
func (k *sessionKeys) due(now time.Time) bool {
	if len(k.Keys) == 0 {
		return true
	}
	age := now.Sub(k.Keys[len(k.Keys)-1].Made)
	return age < 0 || age >= sessionKeyLife
}

// sealingKey returns the key that seals now. It makes the next one where that is due.
func (s *Service) sealingKey(ctx context.Context) (sessionKey, error) {
	all, err := optional(sessionKeyRing().Get(ctx, s.o.Store, sessionKeysKey))
	if err != nil {
		return sessionKey{}, explain(err)
	}
	if all.due(s.now()) {
		random := make([]byte, keyIDSize+32)
		if _, err := io.ReadFull(s.o.Rand, random); err != nil {
			return sessionKey{}, &Error{Code: "internal", Status: Internal, Detail: "key of sessions: " + err.Error(), Err: err}
		}
		err = s.update(ctx, func(tx *store.Tx) (err error) {
			if all, err = optional(sessionKeyRing().Get(ctx, tx, sessionKeysKey)); err != nil || !all.due(s.now()) {
				return err
			}
			all.Keys = append(all.Keys, sessionKey{ID: random[:keyIDSize], Secret: random[keyIDSize:], Made: s.now()})
			all.Keys = all.Keys[max(0, len(all.Keys)-keptKeys):]
			return sessionKeyRing().Put(tx, sessionKeysKey, all)
		})
		if err != nil {
			return sessionKey{}, err
		}
	}
	return all.Keys[len(all.Keys)-1], nil
}

func (k *sessionKey) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.Secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// sealSession returns the token of a session.
func (s *Service) sealSession(ctx context.Context, ses *sessionRecord) (string, error) {
	k, err := s.sealingKey(ctx)
	if err != nil {
		return "", err
	}
	token, err := k.seal(s.o.Rand, ses)
	if err != nil {
		return "", &Error{Code: "internal", Status: Internal, Detail: "token of a session: " + err.Error(), Err: err}
	}
	return token, nil
}

func (k *sessionKey) seal(rnd io.Reader, ses *sessionRecord) (string, error) {
	box, err := k.aead()
	if err != nil {
		return "", err
	}
	text, err := ses.encode()
	if err != nil {
		return "", err
	}
	nonce := make([]byte, box.NonceSize())
	if _, err := io.ReadFull(rnd, nonce); err != nil {
		return "", err
	}
	number := ses.Challenge.ID
	sealed := box.Seal(append(bytes.Clone(k.ID), nonce...), nonce, text, []byte(tokenLabel+"\x00"+number))
	token := number + "." + base64.RawURLEncoding.EncodeToString(sealed)
	if len(number) != sessionNumber || len(token) > maxToken {
		return "", fmt.Errorf("%d bytes, at most %d are sent", len(token), maxToken)
	}
	return token, nil
}

// open returns the session of a token that one of the keys sealed; false: none did.
func (k *sessionKeys) open(token string) (ses sessionRecord, ok bool) {
	number, text, cut := strings.Cut(token, ".")
	if len(token) > maxToken || !cut || !sessionID.MatchString(number) {
		return sessionRecord{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return sessionRecord{}, false
	}
	for i := range k.Keys {
		box, err := k.Keys[i].aead()
		if err != nil || len(sealed) < keyIDSize+box.NonceSize() || !bytes.Equal(sealed[:keyIDSize], k.Keys[i].ID) {
			continue
		}
		rest := sealed[keyIDSize:]
		clear, err := box.Open(nil, rest[:box.NonceSize()], rest[box.NonceSize():], []byte(tokenLabel+"\x00"+number))
		if err != nil {
			return sessionRecord{}, false
		}
		if ses, err = decodeSession(clear); err != nil {
			return sessionRecord{}, false
		}
		ses.Challenge.ID = token // what the host has as id, and signs
		return ses, true
	}
	return sessionRecord{}, false
}

// openedSession returns the session of a token. One that is unknown, expired or used is refused.
func (s *Service) openedSession(ctx context.Context, token string) (sessionRecord, error) {
	if len(token) <= sessionNumber {
		return sessionRecord{}, noSession()
	}
	keys, err := optional(sessionKeyRing().Get(ctx, s.o.Store, sessionKeysKey))
	if err != nil {
		return sessionRecord{}, explain(err)
	}
	ses, ok := keys.open(token)
	if !ok || !s.now().Before(ses.Challenge.Expires) {
		return sessionRecord{}, noSession()
	}
	_, err = usedSessions().Get(ctx, s.o.Store, ses.number())
	if err == nil {
		return sessionRecord{}, noSession()
	}
	if !errors.Is(err, store.ErrNotFound) {
		return sessionRecord{}, explain(err)
	}
	return ses, nil
}

// consume notes that a session was used. Of several that bring its token one alone succeeds.
func (s *Service) consume(ctx context.Context, ses *sessionRecord) error {
	// The lease only cleans up: the token says itself when it has expired.
	lease, err := s.o.Store.NewLease(ctx, max(0, ses.Challenge.Expires.Sub(s.now()))+time.Hour)
	if err != nil {
		return explain(err)
	}
	return s.update(ctx, func(tx *store.Tx) error {
		_, err := usedSessions().Get(ctx, tx, ses.number())
		if err == nil {
			return noSession()
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return usedSessions().PutLeased(tx, ses.number(), usedSession{Host: ses.Host, Time: s.now()}, lease)
	})
}
