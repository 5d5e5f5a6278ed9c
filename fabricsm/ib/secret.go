package ib

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what every secret prints as.
const Redacted = "[secret]"

// MKey is a 64-bit management key (M_Key). It is a secret: fmt, JSON, YAML and
// slog print Redacted for any value but zero, which means "no key" and prints
// as "none". Codecs reach the bits with Reveal.
type MKey struct{ v uint64 }

// SMKey is a 64-bit SM_Key, a secret printed like MKey.
type SMKey struct{ v uint64 }

// NewMKey wraps the 64 bits of an M_Key.
func NewMKey(v uint64) MKey { return MKey{v} }

// NewSMKey wraps the 64 bits of an SM_Key.
func NewSMKey(v uint64) SMKey { return SMKey{v} }

// Reveal gives the bits. Only codecs and key stores may call it.
func (k MKey) Reveal() uint64 { return k.v }

// Reveal gives the bits. Only codecs and key stores may call it.
func (k SMKey) Reveal() uint64 { return k.v }

// IsZero reports "no key".
func (k MKey) IsZero() bool { return k.v == 0 }

// IsZero reports "no key".
func (k SMKey) IsZero() bool { return k.v == 0 }

func (k MKey) String() string               { return redact(k.v) }
func (k MKey) GoString() string             { return redact(k.v) }
func (k MKey) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, redact(k.v)) }
func (k MKey) MarshalText() ([]byte, error) { return []byte(redact(k.v)), nil }
func (k MKey) LogValue() slog.Value         { return slog.StringValue(redact(k.v)) }

func (k SMKey) String() string               { return redact(k.v) }
func (k SMKey) GoString() string             { return redact(k.v) }
func (k SMKey) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, redact(k.v)) }
func (k SMKey) MarshalText() ([]byte, error) { return []byte(redact(k.v)), nil }
func (k SMKey) LogValue() slog.Value         { return slog.StringValue(redact(k.v)) }

func redact(v uint64) string {
	if v == 0 {
		return "none"
	}
	return Redacted
}
