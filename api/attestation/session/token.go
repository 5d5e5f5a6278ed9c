package session

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/attest"
)

// A session is not kept: its id is a sealed token that holds all that evidence is compared with, and that the host returns.
// Before a TPM has opened the credential of a session nothing of it is in the store. So a stranger that knows the EK
// certificate of a host takes nothing from the host. The number of a used session is kept until the token has expired.
//
// The bearer of a token has not opened the credential yet, so the secret in it is encrypted, by a key that all instances
// share by the store (keys.go).

const (
	// numberSize is how many letters of a token name the session; the rest is sealed.
	numberSize = 32
	// maxToken bounds a token, which is part of a path.
	maxToken = 8 << 10
	// tokenLabel is bound into each token, with the number of the session.
	tokenLabel = "portcullis/session/1"
)

// Session is an attestation session, as its token holds it.
type Session struct {
	Challenge *attest.Challenge // its ID is the number, and the token once that is open
	Host      string
	Epoch     int64 // assignment the session belongs to
	Row       int64 // revision of inventory's record of the host
	Source    string
	Locks     bool // the agent can lock adapters
}

// Number names the session.
func (s *Session) Number() string { return Number(s.Challenge.ID) }

// Number returns the number of the session of a token.
func Number(token string) string { return token[:min(len(token), numberSize)] }

// usedRecord says that a session was used.
type usedRecord struct {
	Host string    `json:"host"`
	Time time.Time `json:"time"`
}

// used holds the sessions that were used, by number, until their tokens have expired.
func used() store.Collection[usedRecord] {
	return store.NewCollection[usedRecord]("sessions-used", 1)
}

// Seal returns the token of a session.
func (t *Tokens) Seal(ctx context.Context, ses *Session) (string, error) {
	k, err := t.sealingKey(ctx)
	if err != nil {
		return "", err
	}
	token, err := k.seal(t.o.Rand, ses)
	if err != nil {
		return "", &refusal.Error{Code: "internal", Status: refusal.Internal, Detail: "token of a session: " + err.Error(), Err: err}
	}
	return token, nil
}

func (k *key) seal(rnd io.Reader, ses *Session) (string, error) {
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
	sealed := box.Seal(append(bytes.Clone(k.id), nonce...), nonce, text, []byte(tokenLabel+"\x00"+number))
	token := number + "." + base64.RawURLEncoding.EncodeToString(sealed)
	if len(number) != numberSize || len(token) > maxToken {
		return "", fmt.Errorf("%d bytes, at most %d are sent", len(token), maxToken)
	}
	return token, nil
}

// openToken returns the session of a token that one of the keys sealed; false: none did.
func openToken(keys []key, token string) (ses Session, ok bool) {
	number, text, cut := strings.Cut(token, ".")
	if len(token) > maxToken || !cut || !numberForm.MatchString(number) {
		return Session{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return Session{}, false
	}
	for i := range keys {
		box, err := keys[i].aead()
		if err != nil || len(sealed) < keyIDSize+box.NonceSize() || !bytes.Equal(sealed[:keyIDSize], keys[i].id) {
			continue
		}
		rest := sealed[keyIDSize:]
		clear, err := box.Open(nil, rest[:box.NonceSize()], rest[box.NonceSize():], []byte(tokenLabel+"\x00"+number))
		if err != nil {
			return Session{}, false
		}
		if ses, err = decode(clear); err != nil {
			return Session{}, false
		}
		ses.Challenge.ID = token // what the host has as id, and signs
		return ses, true
	}
	return Session{}, false
}

// Open returns the session of a token. One that is unknown, expired or used is refused.
func (t *Tokens) Open(ctx context.Context, token string) (Session, error) {
	if len(token) <= numberSize {
		return Session{}, Unknown()
	}
	keys, err := t.keys(ctx)
	if err != nil {
		return Session{}, err
	}
	ses, ok := openToken(keys, token)
	if !ok || !t.now().Before(ses.Challenge.Expires) {
		return Session{}, Unknown()
	}
	_, err = used().Get(ctx, t.o.Store, ses.Number())
	if err == nil {
		return Session{}, Unknown()
	}
	if !errors.Is(err, store.ErrNotFound) {
		return Session{}, refusal.Explain(err)
	}
	return ses, nil
}

// Consume records that a session was used. If several requests bring its token, only one succeeds.
func (t *Tokens) Consume(ctx context.Context, ses *Session) error {
	// The lease only cleans up: the token says itself when it has expired.
	lease, err := t.o.Store.NewLease(ctx, max(0, ses.Challenge.Expires.Sub(t.now()))+time.Hour)
	if err != nil {
		return refusal.Explain(err)
	}
	return t.update(ctx, func(tx *store.Tx) error {
		_, err := used().Get(ctx, tx, ses.Number())
		if err == nil {
			return Unknown()
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return used().PutLeased(tx, ses.Number(), usedRecord{Host: ses.Host, Time: t.now()}, lease)
	})
}
