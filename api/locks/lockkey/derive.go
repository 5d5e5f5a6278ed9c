package lockkey

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"portcullis/fabricsm/ib"
)

// Epoch counts the keys of one adapter, from 1. A key is used for one lock, and
// the next lock has the next.
type Epoch uint32

// SecretSize is the least size of a site's secret in bytes.
const SecretSize = 32

// Root is the secret that all keys are derived from. It is printed like ib.MKey;
// the zero Root is none.
type Root struct{ secret ib.SecretText }

// NewRoot takes at least SecretSize bytes from a random source, and refuses such
// as cannot be from one.
func NewRoot(secret []byte) (Root, error) {
	if len(secret) < SecretSize {
		return Root{}, fmt.Errorf("root of lock keys: %d bytes, want %d or more from a random source", len(secret), SecretSize)
	}
	seen := make(map[byte]bool)
	for _, b := range secret {
		seen[b] = true
	}
	if len(seen) < SecretSize/2 {
		return Root{}, errors.New("root of lock keys: too few of its bytes differ for a random one; make another")
	}
	return Root{ib.NewSecretText(string(secret))}, nil
}

// IsZero reports "no root".
func (r Root) IsZero() bool { return r.secret.IsZero() }

func (r Root) String() string               { return r.secret.String() }
func (r Root) GoString() string             { return r.secret.GoString() }
func (r Root) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, r.secret.String()) }
func (r Root) MarshalText() ([]byte, error) { return r.secret.MarshalText() }

// LogValue implements slog.LogValuer.
func (r Root) LogValue() slog.Value { return r.secret.LogValue() }

// Derive returns the key of an adapter for an epoch:
//
//	HKDF-SHA256(secret, no salt, info "portcullis:mlock:v1:GUID:EPOCH", 8 bytes)
//
// big-endian; the GUID as ib.GUID prints it, the epoch in decimal. All but the secret is text, so that openssl kdf returns
// the same to an operator who has nothing else left. A key of 0 would be none: then ":1", ":2" and so on is added to the
// info. guid is that of the adapter's manufacturing, which no setting changes.
func (r Root) Derive(guid ib.GUID, epoch Epoch) (ib.LockKey, error) {
	switch {
	case r.IsZero():
		return ib.LockKey{}, errors.New("lock key: no root")
	case !guid.Valid():
		return ib.LockKey{}, fmt.Errorf("lock key: GUID %v is no adapter's", guid)
	case epoch == 0:
		return ib.LockKey{}, fmt.Errorf("lock key of %v: epoch 0: epochs count from 1", guid)
	}
	v, err := firstKey(Info(guid, epoch), func(info string) ([]byte, error) {
		return hkdf.Key(sha256.New, []byte(r.secret.Reveal()), nil, info, 8)
	})
	if err != nil {
		return ib.LockKey{}, fmt.Errorf("lock key of %v, epoch %d: %w", guid, epoch, err)
	}
	return ib.NewLockKey(v), nil
}

// Info returns the info that a key is derived with, beside the secret.
func Info(guid ib.GUID, epoch Epoch) string {
	return fmt.Sprintf("portcullis:mlock:v1:%v:%d", guid, epoch)
}

// firstKey goes on until the result is a key.
func firstKey(info string, expand func(info string) ([]byte, error)) (uint64, error) {
	next := info
	for n := 1; ; n++ {
		b, err := expand(next)
		if err != nil {
			return 0, err
		}
		if v := binary.BigEndian.Uint64(b); v != 0 {
			return v, nil
		}
		next = fmt.Sprintf("%s:%d", info, n)
	}
}
