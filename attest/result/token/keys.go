package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of a JWK Set.
const (
	MaxKeys    = 32
	MaxKeysSet = 64 << 10 // bytes
)

// Keys are the public keys of a service, by their ids. The zero Keys has none.
type Keys struct{ keys []jose.JSONWebKey }

// ID returns the id of a key: its thumbprint (RFC 7638), SHA-256 in base64url.
func ID(key *ecdsa.PublicKey) (string, error) {
	if key.Curve != elliptic.P256() {
		return "", errors.New("key of an attestation result: not on the curve P-256")
	}
	sum, err := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("key of an attestation result: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}

// Add adds a key.
func (k *Keys) Add(key *ecdsa.PublicKey) error {
	kid, err := ID(key)
	if err != nil {
		return err
	}
	k.keys = append(k.keys, jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: Algorithm, Use: "sig"})
	return nil
}

// IDs returns the ids of the keys in their order.
func (k *Keys) IDs() []string {
	out := make([]string, 0, len(k.keys))
	for i := range k.keys {
		out = append(out, k.keys[i].KeyID)
	}
	return out
}

// MarshalJSON returns the JWK Set.
func (k *Keys) MarshalJSON() ([]byte, error) {
	set := jose.JSONWebKeySet{Keys: k.keys}
	if set.Keys == nil {
		set.Keys = []jose.JSONWebKey{}
	}
	return json.Marshal(set)
}

// ParseKeys reads a JWK Set. It ignores keys that are not for ES256. It refuses a set without a key for ES256, with a
// private key, or with one id twice. The id of a key need not be its thumbprint: other issuers name keys as they like.
func ParseKeys(b []byte) (*Keys, error) {
	if len(b) > MaxKeysSet {
		return nil, fmt.Errorf("JWK Set of %d bytes, at most %d are read", len(b), MaxKeysSet)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("JWK Set: %w", err)
	}
	if len(set.Keys) > MaxKeys {
		return nil, fmt.Errorf("JWK Set of %d keys, at most %d are read", len(set.Keys), MaxKeys)
	}
	out := new(Keys)
	for i, raw := range set.Keys {
		key, err := parseKey(raw)
		if err != nil {
			return nil, fmt.Errorf("JWK Set: key %d: %w", i+1, err)
		}
		if key == nil {
			continue
		}
		if out.find(key.KeyID) != nil {
			return nil, fmt.Errorf("JWK Set: key %d: another one has the id %q", i+1, clip(key.KeyID))
		}
		out.keys = append(out.keys, *key)
	}
	if len(out.keys) == 0 {
		return nil, errors.New("JWK Set: no key for ES256 in it")
	}
	return out, nil
}

// parseKey returns a key for ES256, and nil for any other.
func parseKey(raw []byte) (*jose.JSONWebKey, error) {
	var kind struct {
		Type  string `json:"kty"`
		Curve string `json:"crv"`
		D     string `json:"d"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, err
	}
	if kind.Type != "EC" || kind.Curve != "P-256" {
		return nil, nil
	}
	if kind.D != "" {
		return nil, errors.New("it is a private key: keep it secret, and use only public keys")
	}
	key := new(jose.JSONWebKey)
	if err := key.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	if key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != Algorithm || key.KeyID == "" {
		return nil, nil
	}
	if public, ok := key.Key.(*ecdsa.PublicKey); !ok || public.Curve != elliptic.P256() || !key.Valid() {
		return nil, errors.New("it is not a point of the curve P-256")
	}
	return key, nil
}

// find returns the key of an id, or nil if there is none.
func (k *Keys) find(kid string) *ecdsa.PublicKey {
	if k == nil || kid == "" {
		return nil
	}
	for i := range k.keys {
		if k.keys[i].KeyID == kid {
			key, _ := k.keys[i].Key.(*ecdsa.PublicKey)
			return key
		}
	}
	return nil
}
