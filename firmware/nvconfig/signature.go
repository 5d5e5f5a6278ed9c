package nvconfig

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // the hash of RSA-4096
	"errors"
	"fmt"
)

// Scheme is how a file is signed.
type Scheme uint8

// Schemes.
const (
	Unsigned   Scheme = iota // no signature item
	DigestOnly               // SHA-256, which any process can make
	RSA2048                  // RSASSA-PKCS1-v1_5 with SHA-256
	RSA4096                  // RSASSA-PKCS1-v1_5 with SHA-512
)

func (s Scheme) String() string {
	switch s {
	case Unsigned:
		return "not signed"
	case DigestOnly:
		return "SHA-256 digest, not signed"
	case RSA2048:
		return "RSA-2048 with SHA-256"
	case RSA4096:
		return "RSA-4096 with SHA-512"
	default:
		return fmt.Sprintf("scheme %d", uint8(s))
	}
}

// Signature is what stands at the end of a file. Bytes is the digest or the
// signature, big-endian.
type Signature struct {
	Scheme Scheme
	Key    UUID // of the key pair
	Bytes  []byte
}

// Why a file is not accepted.
var (
	ErrNotSigned  = errors.New("the file is not signed")
	ErrUnknownKey = errors.New("no pinned key has the UUID and size of the key that the file names")
	ErrSignature  = errors.New("the signature is wrong: the file is not what the holder of the key signed")
	ErrDigest     = errors.New("the digest is wrong: the file is damaged")
)

const (
	sizeSignature     = 0x140
	sizeSignatureHalf = 0x120
	sizeReserved      = 16 // before the UUID of the key; nothing covers them, so they must be zero
	sizeUUIDs         = 32
)

// PinnedKey is a public key that the site trusts to sign settings.
type PinnedKey struct {
	UUID   UUID
	Public *rsa.PublicKey
}

// signatureItem returns the header of a signature item and its UUIDs, followed by its value and zeros.
func signatureItem(index uint32, size int, key UUID, value []byte) Item {
	data := make([]byte, size)
	copy(data[sizeReserved:], key[:])
	copy(data[sizeUUIDs:], value)
	return Item{Header{Priority: MLNX, OverrideEnabled: true, ReadEnabled: true, Address: FileItemAddress(index)}, data}
}

// Seal makes a file with a digest and no signature.
func Seal(items []Item) ([]byte, error) {
	b, err := unsigned(items)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return signatureItem(idSignature, sizeSignature, UUID{}, sum[:]).Append(b), nil
}

// Exponent is the only public exponent of keys that sign.
const Exponent = 65537

// Sign makes a signed file. The key is an RSA key of 2048 or 4096 bits with Exponent; the adapter finds it by its UUID. The
// signer's result is verified before it is used, so that a token with another key makes no file.
func Sign(items []Item, signer crypto.Signer, key UUID) ([]byte, error) {
	b, err := unsigned(items)
	if err != nil {
		return nil, err
	}
	public, ok := signer.Public().(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("sign NVCONFIG file: a key of type %T: want RSA of 2048 or 4096 bits", signer.Public())
	}
	scheme, hash, err := schemeOf(public)
	if err != nil {
		return nil, fmt.Errorf("sign NVCONFIG file: %w", err)
	}
	if public.E != Exponent {
		return nil, fmt.Errorf("sign NVCONFIG file: an RSA key with exponent %d: want %d; with a low exponent, a reader with lax padding checks accepts forged signatures", public.E, Exponent)
	}
	if key.IsZero() {
		return nil, errors.New("sign NVCONFIG file: no UUID of the key: without one the file says that it is not signed")
	}
	digest := sum(hash, b)
	value, err := signer.Sign(nil, digest, hash)
	if err != nil {
		return nil, fmt.Errorf("sign NVCONFIG file with key %v: %w", key, err)
	}
	if err := rsa.VerifyPKCS1v15(public, hash, digest, value); err != nil {
		return nil, fmt.Errorf("sign NVCONFIG file with key %v: the signer returned a signature that its public key does not verify", key)
	}
	if scheme == RSA2048 {
		return signatureItem(idSignature, sizeSignature, key, value).Append(b), nil
	}
	half := len(value) / 2
	b = signatureItem(idSignature4096a, sizeSignatureHalf, key, value[:half]).Append(b)
	return signatureItem(idSignature4096b, sizeSignatureHalf, key, value[half:]).Append(b), nil
}

func schemeOf(k *rsa.PublicKey) (Scheme, crypto.Hash, error) {
	switch k.N.BitLen() {
	case 2048:
		return RSA2048, crypto.SHA256, nil
	case 4096:
		return RSA4096, crypto.SHA512, nil
	default:
		return 0, 0, fmt.Errorf("an RSA key of %d bits: want 2048 or 4096", k.N.BitLen())
	}
}

func sum(h crypto.Hash, b []byte) []byte {
	s := h.New()
	s.Write(b)
	return s.Sum(nil)
}

// Verify returns the pinned key that signed the file. It fails with ErrNotSigned, ErrUnknownKey, ErrSignature or ErrDigest.
// A file that names a key has no other way to be accepted: a digest alone proves nothing.
func (f *File) Verify(keys []PinnedKey) (PinnedKey, error) {
	s := f.Signature
	switch s.Scheme {
	case RSA2048, RSA4096:
	case DigestOnly:
		if err := f.checkDigest(); err != nil {
			return PinnedKey{}, err
		}
		return PinnedKey{}, ErrNotSigned
	default:
		return PinnedKey{}, ErrNotSigned
	}
	for _, k := range keys {
		scheme, hash, err := schemeOf(k.Public)
		if err != nil || scheme != s.Scheme || k.UUID != s.Key {
			continue
		}
		if rsa.VerifyPKCS1v15(k.Public, hash, sum(hash, f.covered), s.Bytes) != nil {
			return PinnedKey{}, fmt.Errorf("key %v: %w", s.Key, ErrSignature)
		}
		return k, nil
	}
	return PinnedKey{}, fmt.Errorf("key %v, %v: %w", s.Key, s.Scheme, ErrUnknownKey)
}

func (f *File) checkDigest() error {
	if d := sha256.Sum256(f.covered); !bytes.Equal(d[:], f.Signature.Bytes) {
		return ErrDigest
	}
	return nil
}

// parseSignature reads the signature items that b must consist of.
func parseSignature(b []byte) (Signature, error) {
	first, rest, err := ParseItem(b)
	if err != nil {
		return Signature{}, err
	}
	switch first.Address {
	case FileItemAddress(idSignature):
		s, err := wholeSignature(first)
		if err == nil && len(rest) != 0 {
			err = fmt.Errorf("%d bytes after the signature", len(rest))
		}
		return s, err
	case FileItemAddress(idSignature4096a):
		second, rest, err := ParseItem(rest)
		if err != nil {
			return Signature{}, fmt.Errorf("second half of the signature: %w", err)
		}
		if second.Address != FileItemAddress(idSignature4096b) || len(rest) != 0 {
			return Signature{}, errors.New("the second half of the signature does not follow the first and end the file")
		}
		return joinSignature(first, second)
	default:
		return Signature{}, fmt.Errorf("%v: a signature of unknown form", first.Address)
	}
}

// checkSignatureItem holds the header to that of the items create_conf makes.
func checkSignatureItem(i Item) error {
	want := signatureItem(i.Address.Index(), len(i.Data), UUID{}, nil).Header
	if i.Header != want {
		return fmt.Errorf("%v: its header is not that of a signature", i.Address)
	}
	if len(bytes.Trim(i.Data[:sizeReserved], "\x00")) != 0 {
		return fmt.Errorf("%v: the %d reserved bytes before the UUID of its key are not zero: the file was altered after it was signed, or another program made it", i.Address, sizeReserved)
	}
	return nil
}

func wholeSignature(i Item) (Signature, error) {
	if err := checkSignatureItem(i); err != nil {
		return Signature{}, err
	}
	s := Signature{Scheme: RSA2048, Key: UUID(i.Data[sizeReserved:sizeUUIDs])}
	size := 256
	if s.Key.IsZero() {
		s.Scheme, size = DigestOnly, sha256.Size
	}
	s.Bytes = i.Data[sizeUUIDs : sizeUUIDs+size]
	if len(bytes.Trim(i.Data[sizeUUIDs+size:], "\x00")) != 0 {
		return Signature{}, fmt.Errorf("%v: there are bytes after the signature", i.Address)
	}
	return s, nil
}

func joinSignature(a, b Item) (Signature, error) {
	for _, i := range []Item{a, b} {
		if err := checkSignatureItem(i); err != nil {
			return Signature{}, err
		}
	}
	if !bytes.Equal(a.Data[:sizeUUIDs], b.Data[:sizeUUIDs]) {
		return Signature{}, errors.New("the two halves of the signature name different keys")
	}
	s := Signature{Scheme: RSA4096, Key: UUID(a.Data[sizeReserved:sizeUUIDs])}
	s.Bytes = append(append(s.Bytes, a.Data[sizeUUIDs:]...), b.Data[sizeUUIDs:]...)
	if s.Key.IsZero() {
		return Signature{}, errors.New("a signature of RSA-4096 names no key")
	}
	return s, nil
}
