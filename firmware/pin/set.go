package pin

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"portcullis/fabricsm/strictyaml"
	"portcullis/firmware/image"
)

// Limits of a file.
const (
	MaxFile = 1 << 20 // bytes
	maxKeys = 128
)

// Set is the pinned keys of a site. It does not change; nil is a set without keys.
type Set struct{ keys []Key }

// New makes a set. Each UUID has one key of each algorithm.
func New(keys ...Key) (*Set, error) {
	s := &Set{keys: slices.Clone(keys)}
	slices.SortStableFunc(s.keys, func(a, b Key) int {
		return cmp.Or(bytes.Compare(a.UUID[:], b.UUID[:]), cmp.Compare(a.Algorithm, b.Algorithm))
	})
	if len(s.keys) > maxKeys {
		return nil, fmt.Errorf("%d keys are pinned, the limit is %d", len(s.keys), maxKeys)
	}
	for i := range s.keys {
		k := &s.keys[i]
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("key %v: %w", k.UUID, err)
		}
		if i > 0 && s.keys[i-1].UUID == k.UUID && s.keys[i-1].Algorithm == k.Algorithm {
			return nil, fmt.Errorf("key %v (%v): it is pinned twice", k.UUID, k.Algorithm)
		}
	}
	return s, nil
}

// Keys lists the keys by UUID and algorithm.
func (s *Set) Keys() []Key {
	if s == nil {
		return nil
	}
	return slices.Clone(s.keys)
}

// Find returns the key of a UUID and algorithm.
func (s *Set) Find(id image.UUID, a image.Algorithm) (Key, bool) {
	if s == nil {
		return Key{}, false
	}
	i := slices.IndexFunc(s.keys, func(k Key) bool { return k.UUID == id && k.Algorithm == a })
	if i < 0 {
		return Key{}, false
	}
	return s.keys[i], true
}

// Add returns a set with one more key. A key that is pinned already stays as it
// is; another one under its name is an error.
func (s *Set) Add(k Key) (*Set, error) {
	old, ok := s.Find(k.UUID, k.Algorithm)
	if !ok {
		return New(append(s.Keys(), k)...)
	}
	if old.Exponent != k.Exponent || !bytes.Equal(old.Modulus, k.Modulus) {
		return nil, fmt.Errorf("key %v (%v): another one is pinned under this UUID, %v: one of the two is not the vendor's",
			k.UUID, k.Algorithm, old.Fingerprint())
	}
	return s, nil
}

// entry is a key as the file has it.
type entry struct {
	Name        string   `yaml:"name,omitempty"`
	UUID        string   `yaml:"uuid"`
	Algorithm   string   `yaml:"algorithm"`
	Exponent    uint32   `yaml:"exponent"`
	Modulus     string   `yaml:"modulus"`
	Fingerprint string   `yaml:"fingerprint,omitempty"`
	Signs       []string `yaml:"signs,flow"`
	AddedBy     string   `yaml:"added_by,omitempty"`
	Source      string   `yaml:"source,omitempty"`
}

type file struct {
	Keys []entry `yaml:"keys"`
}

// Parse reads a file of pinned keys. name is for errors.
func Parse(name string, data []byte) (*Set, error) {
	var f file
	if err := strictyaml.Load(name, data, MaxFile, &f); err != nil {
		return nil, err
	}
	var (
		keys []Key
		errs []error
	)
	for i, e := range f.Keys {
		k, err := e.key()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: key %d: %w", name, i+1, err))
			continue
		}
		keys = append(keys, k)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s, err := New(keys...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func (e *entry) key() (k Key, err error) {
	if k.UUID, err = image.ParseUUID(e.UUID); err != nil {
		return k, err
	}
	if k.Algorithm, err = image.ParseAlgorithm(e.Algorithm); err != nil {
		return k, err
	}
	if k.Modulus, err = hex.DecodeString(strings.Join(strings.Fields(e.Modulus), "")); err != nil {
		return k, errors.New("modulus: want hexadecimal digits")
	}
	if len(e.Signs) == 0 {
		return k, errors.New("signs: say what it may sign, such as [firmware]")
	}
	for _, s := range e.Signs {
		p, err := image.ParsePurpose(s)
		if err != nil {
			return k, err
		}
		k.Signs |= p
	}
	k.Exponent, k.Name, k.AddedBy, k.Source = e.Exponent, e.Name, e.AddedBy, e.Source
	if err := k.check(); err != nil {
		return k, err
	}
	if e.Fingerprint != "" {
		want, err := ParseFingerprint(e.Fingerprint)
		if err != nil {
			return k, err
		}
		if got := k.Fingerprint(); got != want {
			return k, fmt.Errorf("its fingerprint is %v, but the file says %v: modulus or exponent were changed", got, want)
		}
	}
	return k, nil
}

// Encode writes the file that Parse reads.
func (s *Set) Encode() ([]byte, error) {
	f := file{Keys: []entry{}}
	for _, k := range s.Keys() {
		f.Keys = append(f.Keys, entry{
			Name: k.Name, UUID: k.UUID.String(), Algorithm: k.Algorithm.String(), Exponent: k.Exponent,
			Modulus: hex.EncodeToString(k.Modulus), Fingerprint: k.Fingerprint().String(),
			Signs: k.Signs.Names(), AddedBy: k.AddedBy, Source: k.Source,
		})
	}
	data, err := yaml.Dump(&f)
	if err != nil {
		return nil, fmt.Errorf("write pinned keys: %w", err)
	}
	return data, nil
}
