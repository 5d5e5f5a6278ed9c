package vault

import (
	"fmt"
	"io"
	"log/slog"

	"portcullis/fabricsm/ib"
)

const (
	// CheckName is the name of the record with the CheckKey.
	CheckName = "check"
	// CheckSize is the size of a CheckKey in bytes.
	CheckSize = 32
)

// CheckKey is the key under which keys of devices are compared without showing
// them. It opens nothing, and is a secret all the same: with it, keys can be
// tried against a list of digests. The zero CheckKey is none.
type CheckKey struct{ b **[CheckSize]byte }

// NewCheckKey takes CheckSize random bytes.
func NewCheckKey(b []byte) (CheckKey, error) {
	if len(b) != CheckSize {
		return CheckKey{}, fmt.Errorf("check key of %d bytes: want %d", len(b), CheckSize)
	}
	own := [CheckSize]byte(b)
	return CheckKey{new(&own)}, nil
}

// DrawCheckKey reads one from a random source.
func DrawCheckKey(random io.Reader) (CheckKey, error) {
	b := make([]byte, CheckSize)
	if _, err := io.ReadFull(random, b); err != nil {
		return CheckKey{}, fmt.Errorf("draw a check key: %w", err)
	}
	return NewCheckKey(b)
}

// Reveal returns a copy of the bytes, or nil for the zero CheckKey. Only stores may call it.
func (k CheckKey) Reveal() []byte {
	if k.b == nil {
		return nil
	}
	return append([]byte(nil), (*k.b)[:]...)
}

// IsZero reports "none".
func (k CheckKey) IsZero() bool { return k.b == nil }

func (k CheckKey) String() string               { return ib.Redacted }
func (k CheckKey) GoString() string             { return ib.Redacted }
func (k CheckKey) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, ib.Redacted) }
func (k CheckKey) MarshalText() ([]byte, error) { return []byte(ib.Redacted), nil }

// LogValue implements slog.LogValuer.
func (k CheckKey) LogValue() slog.Value { return slog.StringValue(ib.Redacted) }
