package signature

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/strictyaml"
)

// Limits of a file of pinned keys, and of a signature.
const (
	MaxFile      = 1 << 20 // bytes
	MaxSignature = 1 << 10 // bytes
	maxKeys      = 128
	maxRacks     = 10_000
)

// Key is a public key that a site trusts for manifests.
type Key struct {
	Name        string
	Fingerprint [sha256.Size]byte // of the SubjectPublicKeyInfo as DER
	AddedBy     string
	Racks       []string // whose manifests it signs; none: of all racks
	public      any      // ed25519.PublicKey or *ecdsa.PublicKey
}

// Set is the pinned keys of a site. It does not change; nil is a set without keys.
type Set struct{ keys []Key }

// ErrNoKey: no key is pinned, so no manifest can be verified.
var ErrNoKey = errors.New("no key for manifests is pinned")

// ErrUnknown: the signature is that of no pinned key over these bytes.
var ErrUnknown = errors.New("the signature is of no pinned key: the manifest was changed after it was signed, or the key is not pinned")

// entry is a key as the file has it.
type entry struct {
	Name        string   `yaml:"name"`
	Key         string   `yaml:"key"`
	Fingerprint string   `yaml:"fingerprint,omitempty"`
	Racks       []string `yaml:"racks,omitempty"`
	AddedBy     string   `yaml:"added_by,omitempty"`
}

// Parse reads a file of pinned keys. name is for errors. All problems are reported together.
func Parse(name string, data []byte) (*Set, error) {
	var f struct {
		Keys []entry `yaml:"keys"`
	}
	if err := strictyaml.Load(name, data, MaxFile, &f); err != nil {
		return nil, err
	}
	if len(f.Keys) > maxKeys {
		return nil, fmt.Errorf("%s: %d keys are pinned, at most %d are allowed", name, len(f.Keys), maxKeys)
	}
	s := &Set{}
	var errs []error
	for i := range f.Keys {
		k, err := f.Keys[i].pinned()
		if err == nil && slices.ContainsFunc(s.keys, func(o Key) bool { return o.Fingerprint == k.Fingerprint }) {
			err = errors.New("it is pinned twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: key %d (%.64q): %w", name, i+1, f.Keys[i].Name, err))
			continue
		}
		s.keys = append(s.keys, k)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

func (e *entry) pinned() (Key, error) {
	block, rest := pem.Decode([]byte(e.Key))
	switch {
	case e.Name == "":
		return Key{}, errors.New("it has no name: name who signs with it")
	case block == nil || block.Type != "PUBLIC KEY" || len(bytes.TrimSpace(rest)) > 0:
		return Key{}, errors.New("key: want one PEM block of type PUBLIC KEY")
	case len(e.Racks) > maxRacks:
		return Key{}, fmt.Errorf("%d racks, at most %d are allowed", len(e.Racks), maxRacks)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return Key{}, fmt.Errorf("key: %w", err)
	}
	switch p := public.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if p.Curve != elliptic.P256() {
			return Key{}, errors.New("key: an ECDSA key must be of the curve P-256")
		}
	default:
		return Key{}, fmt.Errorf("key: %T is not taken: want Ed25519 or ECDSA P-256", public)
	}
	k := Key{Name: e.Name, Fingerprint: sha256.Sum256(block.Bytes), AddedBy: e.AddedBy, Racks: e.Racks, public: public}
	if want := strings.TrimPrefix(strings.ToLower(e.Fingerprint), "sha256:"); want != "" && want != hex.EncodeToString(k.Fingerprint[:]) {
		return Key{}, fmt.Errorf("its fingerprint is sha256:%x, and the file says %.80q: one of the two was changed", k.Fingerprint, e.Fingerprint)
	}
	return k, nil
}

// Keys lists the keys in the order of the file.
func (s *Set) Keys() []Key {
	if s == nil {
		return nil
	}
	return slices.Clone(s.keys)
}

// Verify returns the pinned key whose signature over message is sig. The error is ErrNoKey or ErrUnknown.
func (s *Set) Verify(message, sig []byte) (Key, error) {
	if s == nil || len(s.keys) == 0 {
		return Key{}, ErrNoKey
	}
	if len(sig) > MaxSignature {
		return Key{}, ErrUnknown
	}
	digest := sha256.Sum256(message)
	for _, k := range s.keys {
		ok := false
		switch p := k.public.(type) {
		case ed25519.PublicKey:
			ok = ed25519.Verify(p, message, sig)
		case *ecdsa.PublicKey:
			ok = ecdsa.VerifyASN1(p, digest[:], sig)
		}
		if ok {
			return k, nil
		}
	}
	return Key{}, ErrUnknown
}

// Signs reports whether the key may sign the manifest of a rack.
func (k *Key) Signs(rack string) bool { return len(k.Racks) == 0 || slices.Contains(k.Racks, rack) }
