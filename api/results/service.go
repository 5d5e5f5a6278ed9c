package results

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"portcullis/api/keyring"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
	"portcullis/fabricsm/vault"
)

const (
	// MaxAge is how long a client may keep the public keys.
	MaxAge = 5 * time.Minute
	// publishAhead is how long a key is published before it signs: twice what others
	// keep the keys for.
	publishAhead = 2 * MaxAge
	// publishAfter is how long a key is published after the next one signs: the life of
	// its last token, and what clocks may differ.
	publishAfter = result.MaxLife + 5*time.Minute
)

// Options configure a Service. Store, Root, Issuer and Log are required.
type Options struct {
	Store  *store.Store
	Root   vault.Root
	Issuer string        // iss of every result
	Build  string        // version of this program, for ear_verifier_id
	Period time.Duration // that a key signs; 0: until an operator rotates
	Log    *slog.Logger
	Now    func() time.Time // default time.Now
}

// Service signs results. Methods are safe for concurrent use, and several Services may
// share one store. Refusals are *refusal.Error.
type Service struct {
	o      Options
	ring   *keyring.Ring[*ecdsa.PrivateKey]
	signed [4]atomic.Uint64 // by status
}

// New makes a Service.
func New(o Options) (*Service, error) {
	if o.Issuer == "" {
		return nil, errors.New("attestation results: a name of the issuer is needed")
	}
	ring, err := keyring.New(keyring.Options[*ecdsa.PrivateKey]{
		Store: o.Store, Root: o.Root, Log: o.Log, Now: o.Now,
		Period: o.Period, Ahead: publishAhead, After: publishAfter,
		Make: makeKey, Open: openKey,
		Words: keyring.Words{
			Name: "result-keys", Code: "result_keys", Key: "key of attestation results", Signed: "all results that count", Setting: "results.root",
			Show: "portcullis result keys", Anew: "portcullis result rotate --drop",
		},
	})
	return &Service{o: o, ring: ring}, err
}

// makeKey makes a key: the public half an uncompressed point of P-256, the private one
// its scalar.
func makeKey(_, _ time.Time) (*keyring.Fresh, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	id, err := token.ID(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	public, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	scalar, err := private.Bytes()
	return &keyring.Fresh{ID: id, Public: public, Secret: scalar}, err
}

func openKey(public, scalar []byte) (*ecdsa.PrivateKey, error) {
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar)
	if err != nil {
		return nil, errors.New("what is sealed is no key") // its content must not be shown
	}
	if p, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), public); err != nil || !private.PublicKey.Equal(p) {
		return nil, errors.New("what is sealed is another key")
	}
	return private, nil
}

// Prepare makes the first key, if there is none, and proves that the root opens the one
// that signs.
func (s *Service) Prepare(ctx context.Context) error {
	_, _, err := s.ring.Signer(ctx)
	return err
}

// Sign implements attestation.Results.
func (s *Service) Sign(ctx context.Context, c *result.Claims, until time.Time) (string, error) {
	k, private, err := s.ring.Signer(ctx)
	if err != nil {
		return "", err
	}
	id := make([]byte, 16)
	rand.Read(id) // never fails
	now := s.ring.Now()
	c.Profile, c.Issuer, c.ID = result.Profile, s.o.Issuer, base64.RawURLEncoding.EncodeToString(id)
	c.Verifier = result.Verifier{Developer: result.Developer, Build: s.o.Build}
	if most := now.Add(result.MaxLife); until.After(most) {
		until = most
	}
	c.IssuedAt, c.NotBefore, c.Expires = now.Unix(), now.Unix(), until.Unix()
	if c.Expires <= c.IssuedAt {
		return "", &refusal.Error{
			Code: "result_over", Status: refusal.Unavailable,
			Detail: fmt.Sprintf("what is recorded about host %s counts for less than a second from now", c.Subject), Hint: "ask again",
		}
	}
	claims, err := c.Encode()
	if err != nil {
		return "", err
	}
	signed, err := token.Sign(claims, k.ID, private)
	if err == nil {
		s.signed[c.Status].Add(1)
	}
	return signed, err
}

// SignAnchor signs an anchor of the audit log with the key that signs results now.
func (s *Service) SignAnchor(ctx context.Context, content []byte) (string, error) {
	k, private, err := s.ring.Signer(ctx)
	if err != nil {
		return "", err
	}
	return token.SignAnchor(content, k.ID, private)
}

// Signed returns how many results of a status this Service signed.
func (s *Service) Signed(t result.Tier) uint64 { return s.signed[t].Load() }

// Rotate has another key sign. With Drop those before are given up at once.
func (s *Service) Rotate(ctx context.Context, actor string, in v1.ResultRotation) (*v1.ResultKeys, error) {
	keys, err := s.ring.Rotate(ctx, actor, in.Reason, in.Drop)
	return s.view(keys), err
}

// Keys returns the keys that are published and when they sign.
func (s *Service) Keys(ctx context.Context) (*v1.ResultKeys, error) {
	keys, err := s.ring.Keys(ctx)
	return s.view(keys), err
}

func (s *Service) view(keys keyring.Keys) *v1.ResultKeys {
	out := &v1.ResultKeys{Issuer: s.o.Issuer, Keys: make([]v1.ResultKey, len(keys))}
	for i := range keys {
		out.Keys[i] = v1.ResultKey{ID: keys[i].ID, Created: keys[i].Created, Signs: keys[i].From}
		if i > 0 {
			out.Keys[i-1].Until = keys[i].From.Add(publishAfter)
		}
	}
	return out
}

// JWKS returns the public keys as a JWK Set (RFC 7517), the newest first.
func (s *Service) JWKS(ctx context.Context) ([]byte, error) {
	keys, err := s.ring.Keys(ctx)
	if err != nil {
		return nil, err
	}
	set := new(token.Keys)
	for _, k := range slices.Backward(keys) {
		p, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), k.Public)
		if err == nil {
			err = set.Add(p)
		}
		if err != nil {
			return nil, fmt.Errorf("key %s of attestation results: %w", k.ID, err)
		}
	}
	return json.Marshal(set)
}
