package trust

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// Shown is the kind of SA_Key in a request.
type Shown uint8

// Results of Show.
const (
	ShownNone    Shown = iota // zero: it is untrusted
	ShownRight                // the key in force, or the one before in its grace
	ShownRetired              // a key that was right before
	ShownWrong
)

// Digest names a key without giving it.
type Digest [16]byte

// maxRetired is how many keys are remembered that are no longer right.
const maxRetired = 16

// KeyState is the durable state of the SA_Key; it is a secret, and a store seals it. Record is of kind keys.SAKey: Current
// is in force, Previous is accepted until GraceEnds.
type KeyState struct {
	Record    keys.Record `json:"record"`
	GraceEnds time.Time   `json:"grace_ends,omitzero"`
	Retired   []Digest    `json:"retired,omitempty"` // oldest first, at most 16
}

// Keys are the SA_Keys that make a request trusted.
type Keys struct {
	state             KeyState
	current, previous ib.SAKey
}

// NewKeys creates Keys from the saved state. The zero state has no key, and no request is trusted until there is one.
func NewKeys(saved KeyState) (*Keys, error) {
	if saved.Record.Kind == 0 {
		saved.Record = keys.Record{Kind: keys.SAKey}
	}
	if saved.Record.Kind != keys.SAKey {
		return nil, fmt.Errorf("SA_Key: the record is of kind %v", saved.Record.Kind)
	}
	if err := saved.Record.Check(); err != nil {
		return nil, fmt.Errorf("SA_Key: %w", err)
	}
	for _, h := range []keys.Held{saved.Record.Current, saved.Record.Previous} {
		if !h.IsZero() {
			if err := keys.Check(h.Key); err != nil {
				return nil, fmt.Errorf("SA_Key: %w", err)
			}
		}
	}
	if n := len(saved.Retired); n > maxRetired {
		saved.Retired = saved.Retired[n-maxRetired:]
	}
	saved.Retired = slices.Clone(saved.Retired)
	k := &Keys{state: saved}
	k.arm()
	return k, nil
}

func (k *Keys) arm() {
	k.current = ib.NewSAKey(k.state.Record.Current.Key.Reveal())
	k.previous = ib.NewSAKey(k.state.Record.Previous.Key.Reveal())
}

// State returns the state that must be durable now.
func (k *Keys) State() KeyState {
	s := k.state
	s.Retired = slices.Clone(s.Retired)
	return s
}

// Current is the key in force. It is zero before the first.
func (k *Keys) Current() ib.SAKey { return k.current }

// Show judges the field SM_Key of a request. Its time does not depend on how much of a key is right. It does not allocate.
func (k *Keys) Show(now time.Time, bits uint64) Shown {
	if bits == 0 {
		return ShownNone
	}
	right := same(k.current, bits)
	if now.Before(k.state.GraceEnds) {
		right |= same(k.previous, bits)
	}
	if right == 1 {
		return ShownRight
	}
	if k.retired(bits) || same(k.previous, bits) == 1 {
		return ShownRetired
	}
	return ShownWrong
}

// epoch is that of a key which is right.
func (k *Keys) epoch(bits uint64) keys.Epoch {
	if same(k.current, bits) == 1 {
		return k.state.Record.Current.Epoch
	}
	return k.state.Record.Previous.Epoch
}

// Oldest is the epoch of the oldest key that is taken; 0: none is.
func (k *Keys) Oldest() keys.Epoch {
	if r := &k.state.Record; r.Previous.IsZero() {
		return r.Current.Epoch
	}
	return k.state.Record.Previous.Epoch
}

// same is 1 for equal bits. Zero is no key, and like nothing.
func same(k ib.SAKey, bits uint64) uint64 {
	v := k.Reveal()
	d := v ^ bits
	return 1 ^ (d|-d)>>63
}

func (k *Keys) retired(bits uint64) bool {
	if len(k.state.Retired) == 0 {
		return false
	}
	return slices.Contains(k.state.Retired, digest(bits))
}

func digest(bits uint64) Digest {
	var in [40]byte
	binary.BigEndian.PutUint64(in[copy(in[:], "portcullis retired sa_key\x00"):], bits)
	sum := sha256.Sum256(in[:])
	return Digest(sum[:16])
}

// Next returns the epoch of the key that is wanted now: the first one, or the next after period. It returns 0 if none is
// wanted. period is Options.KeyPeriod.
func (k *Keys) Next(now time.Time, period time.Duration) keys.Epoch {
	r := &k.state.Record
	if r.Current.IsZero() || period != 0 && now.Sub(r.Current.Since) >= period {
		return r.Newest() + 1
	}
	return 0
}

// Rotate makes the key for the epoch of Next the current one. The previous key is accepted for another grace; a key that is
// still in its grace is retired now. Save State before the new key is passed to any client.
func (k *Keys) Rotate(now time.Time, h keys.Held, grace time.Duration) error {
	r := &k.state.Record
	switch err := keys.Check(h.Key); {
	case err != nil:
		return fmt.Errorf("SA_Key: %w", err)
	case h.Epoch <= r.Newest():
		return fmt.Errorf("SA_Key of epoch %d: want one after %d", h.Epoch, r.Newest())
	case h.Key.Equal(r.Current.Key), h.Key.Equal(r.Previous.Key), k.retired(h.Key.Reveal()):
		return errors.New("SA_Key: it was in force before; draw another")
	}
	next := *r
	next.Current, next.Previous = h, r.Current
	if err := next.Check(); err != nil {
		return fmt.Errorf("SA_Key: %w", err)
	}
	k.retire(r.Previous)
	*r = next
	k.state.GraceEnds = time.Time{}
	if !r.Previous.IsZero() {
		k.state.GraceEnds = now.Add(grace)
	}
	k.arm()
	return nil
}

// Tick ends a grace that is over, and reports whether State has changed.
func (k *Keys) Tick(now time.Time) bool {
	r := &k.state.Record
	if r.Previous.IsZero() || now.Before(k.state.GraceEnds) {
		return false
	}
	k.retire(r.Previous)
	r.Previous, k.state.GraceEnds = keys.Held{}, time.Time{}
	k.arm()
	return true
}

// Wake returns when Tick or Next have work to do; zero: never. period is Options.KeyPeriod.
func (k *Keys) Wake(period time.Duration) time.Time {
	wake := k.state.GraceEnds
	if r := &k.state.Record; period != 0 && !r.Current.IsZero() {
		if next := r.Current.Since.Add(period); wake.IsZero() || next.Before(wake) {
			wake = next
		}
	}
	return wake
}

func (k *Keys) retire(h keys.Held) {
	if h.IsZero() {
		return
	}
	if len(k.state.Retired) == maxRetired {
		k.state.Retired = slices.Delete(k.state.Retired, 0, 1)
	}
	k.state.Retired = append(k.state.Retired, digest(h.Key.Reveal()))
}
