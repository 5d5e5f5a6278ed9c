package admission

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
// share by the store (sessionkeys.go).

const (
	// sessionNumber is how many letters of a token name the session; the rest is sealed.
	sessionNumber = 32
	// maxToken bounds a token, which is part of a path.
	maxToken = 8 << 10
	// tokenLabel is bound into each token, with the number of the session.
	tokenLabel = "portcullis/session/1"
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

// usedSession says that a session was used.
type usedSession struct {
	Host string    `json:"host"`
	Time time.Time `json:"time"`
}

// usedSessions holds the sessions that were used, by number, until their tokens have expired.
func usedSessions() store.Collection[usedSession] {
	return store.NewCollection[usedSession]("sessions-used", 1)
}

// sealSession returns the token of a session.
func (s *Service) sealSession(ctx context.Context, ses *sessionRecord) (string, error) {
	k, err := s.sealingKey(ctx)
	if err != nil {
		return "", err
	}
	token, err := k.seal(s.o.Rand, ses)
	if err != nil {
		return "", &refusal.Error{Code: "internal", Status: refusal.Internal, Detail: "token of a session: " + err.Error(), Err: err}
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
	sealed := box.Seal(append(bytes.Clone(k.id), nonce...), nonce, text, []byte(tokenLabel+"\x00"+number))
	token := number + "." + base64.RawURLEncoding.EncodeToString(sealed)
	if len(number) != sessionNumber || len(token) > maxToken {
		return "", fmt.Errorf("%d bytes, at most %d are sent", len(token), maxToken)
	}
	return token, nil
}

// openToken returns the session of a token that one of the keys sealed; false: none did.
func openToken(keys []sessionKey, token string) (ses sessionRecord, ok bool) {
	number, text, cut := strings.Cut(token, ".")
	if len(token) > maxToken || !cut || !sessionID.MatchString(number) {
		return sessionRecord{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return sessionRecord{}, false
	}
	for i := range keys {
		box, err := keys[i].aead()
		if err != nil || len(sealed) < keyIDSize+box.NonceSize() || !bytes.Equal(sealed[:keyIDSize], keys[i].id) {
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
	keys, err := s.sessionKeys(ctx)
	if err != nil {
		return sessionRecord{}, err
	}
	ses, ok := openToken(keys, token)
	if !ok || !s.now().Before(ses.Challenge.Expires) {
		return sessionRecord{}, noSession()
	}
	_, err = usedSessions().Get(ctx, s.o.Store, ses.number())
	if err == nil {
		return sessionRecord{}, noSession()
	}
	if !errors.Is(err, store.ErrNotFound) {
		return sessionRecord{}, refusal.Explain(err)
	}
	return ses, nil
}

// consume records that a session was used. If several requests bring its token, only one succeeds.
func (s *Service) consume(ctx context.Context, ses *sessionRecord) error {
	// The lease only cleans up: the token says itself when it has expired.
	lease, err := s.o.Store.NewLease(ctx, max(0, ses.Challenge.Expires.Sub(s.now()))+time.Hour)
	if err != nil {
		return refusal.Explain(err)
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
