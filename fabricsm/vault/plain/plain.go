// Package plain is the clear text of key records, as it is inside sealed data: records of a vault and escrow kits. It has
// no other use, and the creator of such text clears it.
package plain

import (
	"fmt"
	"strconv"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// Record is the text of a keys.Record, for encoding/json.
type Record struct {
	Kind     keys.Kind  `json:"kind"`
	GUID     ib.GUID    `json:"guid"`
	Place    ib.Place   `json:"place,omitzero"`
	Current  *Held      `json:"current,omitempty"`
	Pending  *Held      `json:"pending,omitempty"`
	Previous *Held      `json:"previous,omitempty"`
	Retired  bool       `json:"retired,omitzero"`
	Floor    keys.Epoch `json:"floor,omitzero"`
}

// Held is the text of a keys.Held.
type Held struct {
	Key    string      `json:"key,omitempty"` // 16 hexadecimal digits; empty: it is derived again
	Epoch  keys.Epoch  `json:"epoch"`
	Origin keys.Origin `json:"origin"`
	Since  time.Time   `json:"since"`
}

// Of returns the text of a record. It omits keys for which leaveOut returns true; nil: it omits none.
func Of(r *keys.Record, leaveOut func(keys.Held) bool) Record {
	held := func(h keys.Held) *Held {
		if h.IsZero() {
			return nil
		}
		out := &Held{Epoch: h.Epoch, Origin: h.Origin, Since: h.Since}
		if leaveOut == nil || !leaveOut(h) {
			out.Key = fmt.Sprintf("%016x", h.Key.Reveal())
		}
		return out
	}
	return Record{r.Kind, r.GUID, r.Place, held(r.Current), held(r.Pending), held(r.Previous), r.Retired, r.Floor}
}

// Read returns the record of a text, and checks only its form. derive returns keys that were omitted; nil: none may be.
func (p *Record) Read(derive func(*Held) (keys.Key, bool)) (r keys.Record, ok bool) {
	r = keys.Record{Kind: p.Kind, GUID: p.GUID, Place: p.Place, Retired: p.Retired, Floor: p.Floor}
	for _, h := range []struct {
		from *Held
		to   *keys.Held
	}{{p.Current, &r.Current}, {p.Pending, &r.Pending}, {p.Previous, &r.Previous}} {
		if h.from == nil {
			continue
		}
		key, ok := h.from.read(derive)
		if !ok {
			return keys.Record{}, false
		}
		*h.to = keys.Held{Key: key, Epoch: h.from.Epoch, Origin: h.from.Origin, Since: h.from.Since}
	}
	return r, true
}

func (h *Held) read(derive func(*Held) (keys.Key, bool)) (keys.Key, bool) {
	if h.Key == "" && derive != nil {
		return derive(h)
	}
	v, err := strconv.ParseUint(h.Key, 16, 64)
	return keys.New(v), err == nil && v != 0 && len(h.Key) == 16
}
