package keys

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"portcullis/fabricsm/ib"
)

// MasterSize is the size of a Master in bytes.
const MasterSize = 64

// Master is the secret from which all keys of a fabric are derived. It is printed like Key. The zero Master is none.
//
// The bytes are behind two pointers: for a verb that suits no pointer, fmt shows the value behind the first one.
type Master struct{ b **[MasterSize]byte }

// NewMaster takes 64 bytes from a random source, and rejects bytes that cannot be from one.
func NewMaster(b []byte) (Master, error) {
	if err := checkMaster(b); err != nil {
		return Master{}, err
	}
	own := [MasterSize]byte(b)
	return Master{new(&own)}, nil
}

// DrawMaster reads a Master from a cryptographic random source.
func DrawMaster(random io.Reader) (Master, error) {
	b := make([]byte, MasterSize)
	if _, err := io.ReadFull(random, b); err != nil {
		return Master{}, fmt.Errorf("draw a master: %w", err)
	}
	return NewMaster(b)
}

// Reveal returns a copy of the bytes, nil for the zero Master. Only key stores may call it.
func (m Master) Reveal() []byte {
	if m.b == nil {
		return nil
	}
	return append([]byte(nil), (*m.b)[:]...)
}

// IsZero reports whether there is no master.
func (m Master) IsZero() bool { return m.b == nil }

func (m Master) String() string {
	if m.IsZero() {
		return "none"
	}
	return ib.Redacted
}

func (m Master) GoString() string             { return m.String() }
func (m Master) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, m.String()) }
func (m Master) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// LogValue implements slog.LogValuer.
func (m Master) LogValue() slog.Value { return slog.StringValue(m.String()) }

// Epoch counts the generations of the keys of one kind, from 1. Epoch 0 is that
// of keys that were taken over from another subnet manager.
type Epoch uint32

// label separates epochs from anything else that may once come from a Master.
const label = "portcullis fabric keys epoch\x00"

// Derive returns the key of a kind for a port GUID in an epoch:
//
//	seed = HMAC-SHA-512(master, "portcullis fabric keys epoch" || 0x00 || epoch, 4 bytes)
//	key  = HMAC-SHA-512(seed, GUID, 8 bytes || class byte || type byte || counter byte), first 8 bytes
//
// all big-endian. The counter begins at 0, and grows by one while the key would be 0 or all ones, which are no keys. The
// inputs are those of UFM's hash (a random seed, the GUID, the key type); the layout is ours, and nothing on the wire
// depends on it. Keys of different kinds, GUIDs or epochs reveal nothing about each other or the Master.
func (m Master) Derive(kind Kind, guid ib.GUID, epoch Epoch) Key {
	if m.IsZero() {
		panic("keys: no master")
	}
	seed := hmac.New(sha512.New, (*m.b)[:])
	seed.Write(binary.BigEndian.AppendUint32([]byte(label), uint32(epoch)))
	mac := hmac.New(sha512.New, seed.Sum(nil))
	class, typ := kind.class()
	msg := append(binary.BigEndian.AppendUint64(nil, uint64(guid)), class, typ, 0)
	return New(firstUsable(func(counter byte) uint64 {
		mac.Reset()
		msg[len(msg)-1] = counter
		mac.Write(msg)
		return binary.BigEndian.Uint64(mac.Sum(nil))
	}))
}

// firstUsable counts up until the result is a key.
func firstUsable(try func(counter byte) uint64) uint64 {
	for counter := byte(0); ; counter++ {
		if v := try(counter); v != 0 && v != ^uint64(0) {
			return v
		}
	}
}

// Draw reads a key from a cryptographic random source. It skips values that Check rejects, and returns an error if the
// source has nothing else.
func Draw(random io.Reader) (Key, error) {
	for range 4 {
		var b [8]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return Key{}, fmt.Errorf("draw a key: %w", err)
		}
		if k := New(binary.BigEndian.Uint64(b[:])); Check(k) == nil {
			return k, nil
		}
	}
	return Key{}, errors.New("draw a key: the random source returned four weak ones in a row; it is broken")
}
