package eventlog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Bounds of a log; a larger one is refused.
const (
	MaxSize   = 512 << 10 // bytes of a log
	MaxEvents = 4096      // after the header
	MaxEvent  = 64 << 10  // bytes of one event's data

	NumPCRs = 24
)

// Digest is a SHA-256 digest: of an event, or the value of a register.
type Digest [sha256.Size]byte

// String returns 64 lower-case hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText takes 64 hex digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("digest of %d characters, want %d hex digits", len(text), hex.EncodedLen(len(d)))
	}
	if _, err := hex.Decode(d[:], text); err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	return nil
}

// Separator is the digest of four zero bytes, which ends the part of firmware
// in each register from 0 to 7.
var Separator = Digest(sha256.Sum256(make([]byte, 4)))

// Event is one measurement.
type Event struct {
	PCR    int
	Digest Digest
	Type   Type   // as the host claims
	Data   []byte // as the host claims; shares memory with the parsed bytes
}

// Log is the measurements of a boot, in order.
type Log struct {
	Locality byte // that TPM2_Startup came from: the start value of PCR 0
	Events   []Event
}

// Of returns the events of one register.
func (l *Log) Of(pcr int) []Event {
	var out []Event
	for i := range l.Events {
		if l.Events[i].PCR == pcr {
			out = append(out, l.Events[i])
		}
	}
	return out
}

// Reset returns the value of a register before its first measurement. locality is that of TPM2_Startup.
func Reset(pcr int, locality byte) (d Digest) {
	switch {
	case pcr == 0:
		d[len(d)-1] = locality
	case pcr >= 17 && pcr <= 22: // all ones until a dynamic launch
		for i := range d {
			d[i] = 0xff
		}
	}
	return d
}

// Extend returns the value of a register after a measurement, if the register held d.
func (d Digest) Extend(event Digest) Digest {
	var both [2 * sha256.Size]byte
	copy(both[:], d[:])
	copy(both[sha256.Size:], event[:])
	return sha256.Sum256(both[:])
}

// Replay returns the value of each register after the log. Registers without events hold their reset value.
func (l *Log) Replay() [NumPCRs]Digest {
	var out [NumPCRs]Digest
	for i := range out {
		out[i] = Reset(i, l.Locality)
	}
	for i := range l.Events {
		e := &l.Events[i]
		out[e.PCR] = out[e.PCR].Extend(e.Digest)
	}
	return out
}

// Quoted is the value of one register as a TPM signed it.
type Quoted struct {
	PCR   int    `json:"pcr"`
	Value Digest `json:"value"`
}

// Match reports the first register whose quoted value is not what the log
// leaves in it: the log lacks a measurement, or has one too many.
func (l *Log) Match(quoted []Quoted) error {
	replayed := l.Replay()
	for _, q := range quoted {
		if q.PCR < 0 || q.PCR >= NumPCRs {
			return fmt.Errorf("event log: PCR %d, want 0 to %d", q.PCR, NumPCRs-1)
		}
		if replayed[q.PCR] != q.Value {
			return fmt.Errorf("event log: its %d events of PCR %d lead to %v, the TPM quotes %v", len(l.Of(q.PCR)), q.PCR, replayed[q.PCR], q.Value)
		}
	}
	return nil
}
