package pin

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"portcullis/firmware/image"
)

// Key is a key that a site trusts.
type Key struct {
	UUID      image.UUID
	Algorithm image.Algorithm
	Exponent  uint32
	Modulus   []byte // big-endian, as long as the algorithm says
	Signs     image.Purposes
	Name      string
	AddedBy   string
	Source    string // the file that it was taken from
}

// Fingerprint is the SHA-256 of a key as DER (SubjectPublicKeyInfo): what
// "openssl pkey -pubin -outform DER | sha256sum" prints.
type Fingerprint [sha256.Size]byte

const fingerprintPrefix = "sha256:"

func (f Fingerprint) String() string { return fingerprintPrefix + hex.EncodeToString(f[:]) }

// MarshalText implements encoding.TextMarshaler.
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// ParseFingerprint reads "sha256:" and 64 hexadecimal digits; the prefix may be
// left out.
func ParseFingerprint(s string) (f Fingerprint, err error) {
	b, err := hex.DecodeString(strings.TrimPrefix(s, fingerprintPrefix))
	if err != nil || len(b) != len(f) {
		return f, fmt.Errorf("fingerprint %q: want sha256: and 64 hexadecimal digits", s)
	}
	return Fingerprint(b), nil
}

// Limits of an exponent that crypto/rsa can use.
const (
	minExponent = 3
	maxExponent = 1<<31 - 1
)

// check says what makes a key useless or dangerous.
func (k *Key) check() error {
	bits := k.Algorithm.Bits()
	switch {
	case k.UUID.IsZero():
		return errors.New("its UUID is zero, which names no key")
	case k.UUID.Development():
		return errors.New("its UUID is that of a development key, and such firmware is never trusted")
	case k.Signs == 0:
		return errors.New("it may sign nothing")
	case bits == 0:
		return fmt.Errorf("%v is not an algorithm of signatures", k.Algorithm)
	case len(k.Modulus)*8 != bits || k.Modulus[0]&0x80 == 0:
		return fmt.Errorf("its modulus does not have %d bits", bits)
	case k.Modulus[len(k.Modulus)-1]&1 == 0:
		return errors.New("its modulus is even")
	case k.Exponent < minExponent || k.Exponent > maxExponent || k.Exponent&1 == 0:
		return fmt.Errorf("its exponent %d is not a public exponent", k.Exponent)
	}
	return nil
}

func (k *Key) public() *rsa.PublicKey {
	return &rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: int(k.Exponent)}
}

// Fingerprint returns that of the key.
func (k *Key) Fingerprint() Fingerprint {
	der, err := x509.MarshalPKIXPublicKey(k.public())
	if err != nil {
		panic("pin: an RSA key that cannot be encoded: " + err.Error())
	}
	return sha256.Sum256(der)
}

// Verify checks a signature (PKCS #1 v1.5) over the digest of the key's algorithm.
func (k *Key) Verify(digest, signature []byte) error {
	hash := crypto.SHA256
	if k.Algorithm == image.RSA4096SHA512 {
		hash = crypto.SHA512
	}
	return rsa.VerifyPKCS1v15(k.public(), hash, digest, signature)
}

// FromImage makes a key of one that an image carries. The key is trusted only once an operator adds it to a set.
func FromImage(p image.PublicKey) (Key, error) {
	k := Key{UUID: p.UUID, Algorithm: p.Algorithm, Exponent: p.Exponent, Modulus: p.Modulus, Signs: p.Signs}
	if err := k.check(); err != nil {
		return Key{}, fmt.Errorf("key %v in %v: %w", p.UUID, p.Section, err)
	}
	return k, nil
}
