package ib

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"unique"
)

// Redacted is what every secret prints as.
const Redacted = "[secret]"

// MKey is a 64-bit management key (M_Key). It is a secret: fmt, JSON, YAML and
// slog print Redacted for any value but zero, which means "no key" and prints
// as "none". Codecs reach the bits with Reveal.
type MKey struct{ bits secret }

// SMKey is a 64-bit SM_Key, a secret printed like MKey.
type SMKey struct{ bits secret }

// SAKey is a 64-bit SA_Key, which a trusted request to subnet administration carries in the field SM_Key; a secret printed
// like MKey.
type SAKey struct{ bits secret }

// NewSAKey wraps the 64 bits of an SA_Key.
func NewSAKey(v uint64) SAKey { return SAKey{hide(v)} }

// Reveal returns the bits. Only codecs and key stores may call it.
func (k SAKey) Reveal() uint64 { return k.bits.reveal() }

// IsZero reports whether there is no key.
func (k SAKey) IsZero() bool { return k == SAKey{} }

// Equal reports whether both are the same key, in a time that does not depend on where they differ.
func (k SAKey) Equal(o SAKey) bool { return k.Reveal()^o.Reveal() == 0 }

func (k SAKey) String() string               { return k.bits.redact() }
func (k SAKey) GoString() string             { return k.bits.redact() }
func (k SAKey) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, k.bits.redact()) }
func (k SAKey) MarshalText() ([]byte, error) { return []byte(k.bits.redact()), nil }
func (k SAKey) LogValue() slog.Value         { return slog.StringValue(k.bits.redact()) }

// ServiceKey is the 128-bit key of a service record, which is needed to replace or delete the record; a secret printed like
// MKey.
type ServiceKey struct{ high, low secret }

// NewServiceKey wraps the bytes of a ServiceKey.
func NewServiceKey(b [16]byte) ServiceKey {
	return ServiceKey{hide(binary.BigEndian.Uint64(b[:8])), hide(binary.BigEndian.Uint64(b[8:]))}
}

// Reveal returns the bytes. Only codecs and key stores may call it.
func (k ServiceKey) Reveal() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], k.high.reveal())
	binary.BigEndian.PutUint64(b[8:], k.low.reveal())
	return b
}

// IsZero reports whether there is no key.
func (k ServiceKey) IsZero() bool { return k == ServiceKey{} }

// Equal reports whether both are the same key, in a time that does not depend on where they differ.
func (k ServiceKey) Equal(o ServiceKey) bool {
	return k.high.reveal()^o.high.reveal()|k.low.reveal()^o.low.reveal() == 0
}

func (k ServiceKey) redact() string {
	if k.IsZero() {
		return "none"
	}
	return Redacted
}

func (k ServiceKey) String() string               { return k.redact() }
func (k ServiceKey) GoString() string             { return k.redact() }
func (k ServiceKey) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, k.redact()) }
func (k ServiceKey) MarshalText() ([]byte, error) { return []byte(k.redact()), nil }
func (k ServiceKey) LogValue() slog.Value         { return slog.StringValue(k.redact()) }

// LockKey is the 64-bit key that locks the access of a host to its adapter (register MLOCK, "hw_access"); a secret printed
// like MKey.
type LockKey struct{ bits secret }

// NewLockKey wraps the 64 bits of a lock key.
func NewLockKey(v uint64) LockKey { return LockKey{hide(v)} }

// Reveal returns the bits. Only codecs and key stores may call it.
func (k LockKey) Reveal() uint64 { return k.bits.reveal() }

// IsZero reports whether there is no key.
func (k LockKey) IsZero() bool { return k == LockKey{} }

// Equal reports whether both are the same key, in a time that does not depend on where they differ.
func (k LockKey) Equal(o LockKey) bool { return k.Reveal()^o.Reveal() == 0 }

func (k LockKey) String() string               { return k.bits.redact() }
func (k LockKey) GoString() string             { return k.bits.redact() }
func (k LockKey) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, k.bits.redact()) }
func (k LockKey) MarshalText() ([]byte, error) { return []byte(k.bits.redact()), nil }
func (k LockKey) LogValue() slog.Value         { return slog.StringValue(k.bits.redact()) }

// NewMKey wraps the 64 bits of an M_Key.
func NewMKey(v uint64) MKey { return MKey{hide(v)} }

// NewSMKey wraps the 64 bits of an SM_Key.
func NewSMKey(v uint64) SMKey { return SMKey{hide(v)} }

// Reveal returns the bits. Only codecs and key stores may call it.
func (k MKey) Reveal() uint64 { return k.bits.reveal() }

// Reveal returns the bits. Only codecs and key stores may call it.
func (k SMKey) Reveal() uint64 { return k.bits.reveal() }

// IsZero reports whether there is no key.
func (k MKey) IsZero() bool { return k == MKey{} }

// IsZero reports whether there is no key.
func (k SMKey) IsZero() bool { return k == SMKey{} }

// Equal reports whether both are the same key; it is == as a method.
func (k MKey) Equal(o MKey) bool { return k == o }

// Equal reports whether both are the same key, in a time that does not depend on where they differ.
func (k SMKey) Equal(o SMKey) bool { return k.Reveal()^o.Reveal() == 0 }

func (k MKey) String() string               { return k.bits.redact() }
func (k MKey) GoString() string             { return k.bits.redact() }
func (k MKey) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, k.bits.redact()) }
func (k MKey) MarshalText() ([]byte, error) { return []byte(k.bits.redact()), nil }
func (k MKey) LogValue() slog.Value         { return slog.StringValue(k.bits.redact()) }

func (k SMKey) String() string               { return k.bits.redact() }
func (k SMKey) GoString() string             { return k.bits.redact() }
func (k SMKey) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, k.bits.redact()) }
func (k SMKey) MarshalText() ([]byte, error) { return []byte(k.bits.redact()), nil }
func (k SMKey) LogValue() slog.Value         { return slog.StringValue(k.bits.redact()) }

// secret holds 64 bits behind a pointer. fmt does not call the methods above
// on a key in an unexported field, it walks the memory; there it finds an
// address and no key. (A debugger, or a test's cmp.Diff that follows pointers,
// still gets there.) Equal bits share one pointer, so secrets compare with
// ==, and wrapping bits that are in use somewhere allocates nothing. The zero
// secret stands for the bits 0.
type secret struct{ handle unique.Handle[uint64] }

func hide(v uint64) secret {
	if v == 0 {
		return secret{}
	}
	return secret{unique.Make(v)}
}

func (s secret) reveal() uint64 {
	if s == (secret{}) {
		return 0
	}
	return s.handle.Value()
}

func (s secret) redact() string {
	if s == (secret{}) {
		return "none"
	}
	return Redacted
}

// SecretText is text that holds a secret, printed like MKey. The zero SecretText holds
// none.
type SecretText struct{ text **string }

// NewSecretText wraps text.
func NewSecretText(s string) SecretText {
	if s == "" {
		return SecretText{}
	}
	p := &s
	return SecretText{&p}
}

// Reveal returns the text. Only codecs and key stores may call it.
func (t SecretText) Reveal() string {
	if t.text == nil {
		return ""
	}
	return **t.text
}

// IsZero reports whether there is no text.
func (t SecretText) IsZero() bool { return t.text == nil }

// Equal reports whether both are the same text.
func (t SecretText) Equal(o SecretText) bool { return t.Reveal() == o.Reveal() }

func (t SecretText) String() string               { return t.redact() }
func (t SecretText) GoString() string             { return t.redact() }
func (t SecretText) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, t.redact()) }
func (t SecretText) MarshalText() ([]byte, error) { return []byte(t.redact()), nil }
func (t SecretText) LogValue() slog.Value         { return slog.StringValue(t.redact()) }

func (t SecretText) redact() string {
	if t.IsZero() {
		return "none"
	}
	return Redacted
}
