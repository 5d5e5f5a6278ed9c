package keys

import (
	"fmt"
	"io"
	"log/slog"

	"portcullis/fabricsm/ib"
)

// Key is a 64-bit key of any kind. It is a secret: fmt, JSON, YAML and slog
// print ib.Redacted for any value but zero, which means "no key". It compares
// with ==.
type Key struct{ bits ib.MKey }

// New wraps the 64 bits of a key.
func New(v uint64) Key { return Key{ib.NewMKey(v)} }

// Reveal returns the bits. Only codecs and key stores may call it.
func (k Key) Reveal() uint64 { return k.bits.Reveal() }

// M returns the key in the type that codecs of M_Keys take.
func (k Key) M() ib.MKey { return k.bits }

// SM returns the key in the type that codecs of SM_Keys take.
func (k Key) SM() ib.SMKey { return ib.NewSMKey(k.Reveal()) }

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k == Key{} }

// Equal reports whether both are the same key; it is == as a method.
func (k Key) Equal(o Key) bool { return k == o }

func (k Key) String() string               { return k.bits.String() }
func (k Key) GoString() string             { return k.bits.GoString() }
func (k Key) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, k.bits.String()) }
func (k Key) MarshalText() ([]byte, error) { return k.bits.MarshalText() }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return k.bits.LogValue() }
