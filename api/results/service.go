package results

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"portcullis/api/admission"
	"portcullis/api/audit"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
	"portcullis/fabricsm/vault"
)

// Options configure a Service. Store, Root, Issuer and Log are required.
type Options struct {
	Store    *store.Store
	Root     vault.Root
	Issuer   string        // iss of every result
	Build    string        // version of this program, for ear_verifier_id
	Rotation time.Duration // age at which a key is replaced; 0: never
	Log      *slog.Logger

	Now  func() time.Time // default time.Now
	Rand io.Reader        // of the vault and of ids; default crypto/rand
}

// Service signs results. Methods are safe for concurrent use, and several Services may
// share one store. Refusals are *admission.Error.
type Service struct {
	o      Options
	signed [4]atomic.Uint64 // by status
}

// New makes a Service.
func New(o Options) (*Service, error) {
	if o.Root == nil || o.Issuer == "" {
		return nil, errors.New("attestation results: a root for their keys and a name of the issuer are needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Rand = cmp.Or[io.Reader](o.Rand, rand.Reader)
	return &Service{o: o}, nil
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

// Prepare makes the first key, if there is none, and proves that the root opens the one
// that signs.
func (s *Service) Prepare(ctx context.Context) error {
	_, _, err := s.current(ctx)
	return err
}

// Sign implements admission.Results.
func (s *Service) Sign(ctx context.Context, c *result.Claims, until time.Time) (string, error) {
	id := make([]byte, 16)
	if _, err := io.ReadFull(s.o.Rand, id); err != nil {
		return "", fmt.Errorf("draw an id for an attestation result: %w", err)
	}
	k, private, err := s.current(ctx)
	if err != nil {
		return "", err
	}
	now := s.now()
	c.Profile, c.Issuer, c.ID = result.Profile, s.o.Issuer, base64.RawURLEncoding.EncodeToString(id)
	c.Verifier = result.Verifier{Developer: result.Developer, Build: s.o.Build}
	if most := now.Add(result.MaxLife); until.After(most) {
		until = most
	}
	c.IssuedAt, c.NotBefore, c.Expires = now.Unix(), now.Unix(), until.Unix()
	if c.Expires <= c.IssuedAt {
		return "", &admission.Error{
			Code: "result_over", Status: admission.Unavailable,
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

// Signed gives how many results of a status this Service signed.
func (s *Service) Signed(t result.Tier) uint64 { return s.signed[t].Load() }

// current gives the key that signs now. It makes the first one, and the next one when
// the newest is old.
func (s *Service) current(ctx context.Context) (*key, *ecdsa.PrivateKey, error) {
	now := s.now()
	r, err := optional(rings().Get(ctx, s.o.Store, keyring))
	if err != nil {
		return nil, nil, unconfirmed(err)
	}
	if s.due(&r, now) {
		switch fresh, err := s.renew(ctx, now); {
		case err == nil:
			r = *fresh
		case len(r.Keys) == 0:
			return nil, nil, err
		default: // the key before signs on
			s.o.Log.Error("the key of attestation results could not be replaced", "err", err)
		}
	}
	i := max(r.signing(now), 0) // below: the clock went back behind the first key
	private, err := s.open(&r, &r.Keys[i])
	return &r.Keys[i], private, err
}

// renew makes another key, unless another service was first, and gives what is stored.
func (s *Service) renew(ctx context.Context, now time.Time) (*ring, error) {
	var out ring
	err := s.update(ctx, func(tx *store.Tx) error {
		r, err := optional(rings().Get(ctx, tx, keyring))
		if err == nil && s.due(&r, now) {
			err = s.add(ctx, tx, &r, now, "service", "the newest key was old, or there was none")
		}
		out = r
		return err
	})
	return &out, err
}

// due reports whether another key is needed.
func (s *Service) due(r *ring, now time.Time) bool {
	if len(r.Keys) == 0 {
		return true
	}
	newest := &r.Keys[len(r.Keys)-1]
	return s.o.Rotation > 0 && now.Sub(newest.Created) >= s.o.Rotation
}

// vault opens the vault of a ring, or makes one where there is none.
func (s *Service) vault(r *ring) (*vault.Vault, error) {
	if len(r.Vault) == 0 {
		v, err := vault.Create(s.o.Root, s.o.Rand)
		if err != nil {
			return nil, err
		}
		r.Vault = v.Header()
		return v, nil
	}
	v, err := vault.Open(r.Vault, s.o.Root, s.o.Rand)
	if err != nil {
		return nil, locked(err)
	}
	return v, nil
}

// locked says what to do about keys that do not open.
func locked(err error) error {
	return &admission.Error{
		Code: "result_keys_locked", Status: admission.Unavailable, Err: err,
		Detail: fmt.Sprintf("the keys of attestation results do not open: %v", err),
		Hint:   "bring the root back that they were sealed under (results.root); if it is lost, give them up: portcullis result rotate --drop",
	}
}

// open unseals a key and proves that it is the one it says.
func (s *Service) open(r *ring, k *key) (*ecdsa.PrivateKey, error) {
	v, err := s.vault(r)
	if err != nil {
		return nil, err
	}
	scalar, number, err := v.Open(k.name(), k.Sealed)
	if err != nil {
		return nil, locked(err)
	}
	defer clear(scalar)
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar)
	if err != nil || number != k.Number {
		return nil, locked(fmt.Errorf("what is sealed as key %s is none", k.ID))
	}
	if kid, err := token.ID(&private.PublicKey); err != nil || kid != k.ID {
		return nil, locked(fmt.Errorf("what is sealed as key %s is another one", k.ID))
	}
	return private, nil
}

// add makes another key in tx. It signs once it was published for a while, the first one
// at once.
func (s *Service) add(ctx context.Context, tx *store.Tx, r *ring, now time.Time, actor, why string) error {
	r.prune(now)
	if len(r.Keys) >= maxKeys {
		return &admission.Error{
			Code: "result_keys_many", Status: admission.Conflict, Detail: fmt.Sprintf("%d keys of attestation results are published", len(r.Keys)),
			Hint: fmt.Sprintf("wait until the oldest is not needed any more, %s at the latest; or give them all up with --drop", r.until(0).Format(time.RFC3339)),
		}
	}
	v, err := s.vault(r)
	if err != nil {
		return err
	}
	// Not s.o.Rand: the standard library draws keys from the system alone.
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("draw a key for attestation results: %w", err)
	}
	k := key{Number: r.Next, Created: now, Signs: now}
	if len(r.Keys) > 0 {
		k.Signs = now.Add(publishAhead)
	}
	if k.ID, err = token.ID(&private.PublicKey); err != nil {
		return err
	}
	if k.Public, err = private.PublicKey.Bytes(); err != nil {
		return err
	}
	scalar, err := private.Bytes()
	if err != nil {
		return err
	}
	defer clear(scalar)
	if k.Sealed, err = v.Seal(k.name(), k.Number, scalar); err != nil {
		return err
	}
	r.Next++
	r.Keys = append(r.Keys, k)
	return errors.Join(
		rings().Put(tx, keyring, *r),
		audit.Append(ctx, tx, audit.Entry{
			Time: now, Actor: actor, Action: "results.rotate", Object: "results/" + k.ID, Code: "ok",
			Detail: fmt.Sprintf("%s; signs from %s; keys published: %s", why, k.Signs.Format(time.RFC3339), strings.Join(ids(r), " ")),
		}),
	)
}

func ids(r *ring) []string {
	out := make([]string, 0, len(r.Keys))
	for i := range r.Keys {
		out = append(out, r.Keys[i].ID)
	}
	return out
}

// Rotate has another key sign. With Drop the ones before, and the vault that they are
// sealed in, are given up at once.
func (s *Service) Rotate(ctx context.Context, actor string, in v1.ResultRotation) (*v1.ResultKeys, error) {
	now := s.now()
	var out *v1.ResultKeys
	err := s.update(ctx, func(tx *store.Tx) error {
		r, err := optional(rings().Get(ctx, tx, keyring))
		if err != nil {
			return err
		}
		why := in.Reason
		if in.Drop {
			why += "; given up: " + strings.Join(ids(&r), " ")
			r.Keys, r.Vault = nil, nil
		}
		if err := s.add(ctx, tx, &r, now, actor, why); err != nil {
			return err
		}
		out = s.view(&r)
		return nil
	})
	return out, err
}

// Keys gives the keys that are published and when they sign.
func (s *Service) Keys(ctx context.Context) (*v1.ResultKeys, error) {
	r, err := optional(rings().Get(ctx, s.o.Store, keyring))
	if err != nil {
		return nil, unconfirmed(err)
	}
	r.prune(s.now())
	return s.view(&r), nil
}

func (s *Service) view(r *ring) *v1.ResultKeys {
	out := &v1.ResultKeys{Issuer: s.o.Issuer, Keys: make([]v1.ResultKey, 0, len(r.Keys))}
	for i := range r.Keys {
		k := &r.Keys[i]
		out.Keys = append(out.Keys, v1.ResultKey{ID: k.ID, Created: k.Created, Signs: k.Signs, Until: r.until(i)})
	}
	return out
}

// JWKS gives the public keys as a JWK Set (RFC 7517), the newest first.
func (s *Service) JWKS(ctx context.Context) ([]byte, error) {
	r, err := optional(rings().Get(ctx, s.o.Store, keyring))
	if err != nil {
		return nil, unconfirmed(err)
	}
	keys, err := r.published(s.now())
	if err != nil {
		return nil, err
	}
	return json.Marshal(keys)
}

func (s *Service) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	_, err := s.o.Store.Update(ctx, fn)
	return unconfirmed(err)
}

func unconfirmed(err error) error {
	var e *admission.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return admission.Unconfirmed(err, "look at the keys before trying again: portcullis result keys")
}

func optional(rec store.Record[ring], err error) (ring, error) {
	if errors.Is(err, store.ErrNotFound) {
		return ring{}, nil
	}
	return rec.Value, err
}
