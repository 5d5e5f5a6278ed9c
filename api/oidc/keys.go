package oidc

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// Bounds of a key set.
const (
	maxKeySet   = 256 << 10 // bytes
	maxKeys     = 64
	minRSABits  = 2048
	maxRSABits  = 4096
	maxMetadata = 64 << 10 // bytes
)

// key is a public key that may verify tokens.
type key struct {
	public     any
	algorithms []jose.SignatureAlgorithm
	spelled    string // the key as text, to compare
}

// keySet are the keys of an issuer by their ids.
type keySet struct{ keys map[string]key }

// wireKey is what counts of a JSON Web Key. Certificates in it are not read.
type wireKey struct {
	Type      string                  `json:"kty"`
	Use       string                  `json:"use,omitempty"`
	Algorithm jose.SignatureAlgorithm `json:"alg,omitempty"`
	ID        string                  `json:"kid,omitempty"`
	Curve     string                  `json:"crv,omitempty"`
	N         string                  `json:"n,omitempty"`
	E         string                  `json:"e,omitempty"`
	X         string                  `json:"x,omitempty"`
	Y         string                  `json:"y,omitempty"`
	D         json.RawMessage         `json:"d,omitempty"`
}

// parseKeys reads a JWK Set. It leaves out keys that verify nothing here: of other kinds, for encryption, too short, or private ones,
// which are no secret of the provider any more.
func parseKeys(b []byte) (*keySet, error) {
	if len(b) > maxKeySet {
		return nil, fmt.Errorf("the key set has more than %d bytes", maxKeySet)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("the key set is no JWK Set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys, at most %d are read", len(set.Keys), maxKeys)
	}
	out := &keySet{map[string]key{}}
	var why error
	for i, raw := range set.Keys {
		id, k, err := parseKey(raw)
		if err != nil {
			why = errors.Join(why, fmt.Errorf("key %d: %w", i+1, err))
			continue
		}
		if _, twice := out.keys[id]; twice {
			return nil, fmt.Errorf("the key set has two keys of the id %.64q", id)
		}
		out.keys[id] = k
	}
	if len(out.keys) == 0 {
		return nil, errors.Join(fmt.Errorf("the key set has no key for %s", algorithmNames()), why)
	}
	return out, nil
}

func parseKey(raw []byte) (id string, _ key, _ error) {
	var w wireKey
	if err := json.Unmarshal(raw, &w); err != nil {
		return "", key{}, err
	}
	if w.Use != "" && w.Use != "sig" || len(w.ID) > maxKeyID {
		return "", key{}, fmt.Errorf("it is for the use %.16q, or its id is too long", w.Use)
	}
	if w.D != nil {
		return "", key{}, errors.New("it is a private key")
	}
	allowed := algorithmsOf(w.Type)
	if w.Algorithm != "" {
		if !slices.Contains(allowed, w.Algorithm) {
			return "", key{}, fmt.Errorf("it is of kind %.16q with alg %.16q, which is not accepted", w.Type, w.Algorithm)
		}
		allowed = []jose.SignatureAlgorithm{w.Algorithm}
	}
	bare, err := json.Marshal(wireKey{Type: w.Type, Curve: w.Curve, N: w.N, E: w.E, X: w.X, Y: w.Y})
	if err != nil {
		return "", key{}, err
	}
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(bare); err != nil {
		return "", key{}, err
	}
	if err := judge(&parsed); err != nil {
		return "", key{}, err
	}
	return w.ID, key{parsed.Key, allowed, string(bare)}, nil
}

// algorithmsOf returns the algorithms of a kind of key, none where the kind is not accepted.
func algorithmsOf(kind string) []jose.SignatureAlgorithm {
	switch kind {
	case "RSA":
		return []jose.SignatureAlgorithm{jose.RS256, jose.PS256}
	case "EC":
		return []jose.SignatureAlgorithm{jose.ES256}
	case "OKP":
		return []jose.SignatureAlgorithm{jose.EdDSA}
	default:
		return nil
	}
}

// judge refuses keys that are weak, of another curve, or so large that they cost much.
func judge(k *jose.JSONWebKey) error {
	switch public := k.Key.(type) {
	case *rsa.PublicKey:
		if n := public.N.BitLen(); n < minRSABits || n > maxRSABits {
			return fmt.Errorf("it is an RSA key of %d bits: want %d to %d", n, minRSABits, maxRSABits)
		}
	case *ecdsa.PublicKey:
		if public.Curve != elliptic.P256() {
			return fmt.Errorf("it is of curve %s: want P-256", public.Params().Name)
		}
	case ed25519.PublicKey:
	default:
		return errors.New("it is of no kind that is accepted")
	}
	if !k.Valid() {
		return errors.New("it is no valid key")
	}
	return nil
}

// find returns the key that a token names. A token that names none means the only one.
func (s *keySet) find(id string, alg jose.SignatureAlgorithm) (key, error) {
	k, ok := s.keys[id]
	if !ok && id == "" && len(s.keys) == 1 {
		for _, only := range s.keys {
			k, ok = only, true
		}
	}
	if !ok {
		return key{}, errUnknownKey
	}
	if !slices.Contains(k.algorithms, alg) {
		return key{}, refuse("it is signed with alg %s, and its key is for another one", hintAnother, alg)
	}
	return k, nil
}

// errUnknownKey is what find returns for a key that the set has not.
var errUnknownKey = errors.New("the key is not known")

// equal reports whether two sets have the same keys.
func (s *keySet) equal(other *keySet) bool {
	if s == nil || other == nil {
		return s == other
	}
	return maps.EqualFunc(s.keys, other.keys, func(a, b key) bool {
		return a.spelled == b.spelled && slices.Equal(a.algorithms, b.algorithms)
	})
}
