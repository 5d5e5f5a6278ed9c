package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys/keyimport"
)

// Keys, as a record has them, are veiled. Those that the core has made stand in the
// record in the order in which it asked for them, each before the output of the step
// that it did so in.

// held is the written form of a keys.Held.
type held struct {
	Key    uint64
	Epoch  keys.Epoch
	Origin keys.Origin
	Since  time.Time
}

func (v *veil) held(h keys.Held) held {
	return held{v.of(h.Key.Reveal()), h.Epoch, h.Origin, h.Since.Round(0)}
}

func (h held) held() keys.Held {
	return keys.Held{Key: keys.New(h.Key), Epoch: h.Epoch, Origin: h.Origin, Since: h.Since}
}

// keyRecord is the written form of a keys.Record.
type keyRecord struct {
	Kind                       keys.Kind
	GUID                       ib.GUID
	Place                      ib.Place
	Current, Pending, Previous held
	Retired                    bool
	Floor                      keys.Epoch
}

func (v *veil) record(r *keys.Record) keyRecord {
	return keyRecord{r.Kind, r.GUID, r.Place, v.held(r.Current), v.held(r.Pending), v.held(r.Previous), r.Retired, r.Floor}
}

func (k *keyRecord) record() *keys.Record {
	return &keys.Record{
		Kind: k.Kind, GUID: k.GUID, Place: k.Place, Current: k.Current.held(), Pending: k.Pending.held(), Previous: k.Previous.held(),
		Retired: k.Retired, Floor: k.Floor,
	}
}

// started is the written form of an sm.Started: what facts say of keys stands apart.
type started struct {
	Facts []sm.Fact
	Keys  map[int]keyRecord // by index of the fact
}

func (v *veil) started(in *sm.Started) ([]byte, error) {
	s := started{Facts: in.Facts, Keys: make(map[int]keyRecord)}
	for i := range in.Facts {
		if k := in.Facts[i].Key; k != nil {
			s.Keys[i] = v.record(k)
		}
	}
	return json.Marshal(s)
}

const startedName = "sm.Started"

func readStarted(data []byte) (sm.Input, error) {
	var s started
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	for i, k := range s.Keys {
		if i < 0 || i >= len(s.Facts) {
			return nil, fmt.Errorf("a key of fact %d of %d", i, len(s.Facts))
		}
		s.Facts[i].Key = k.record()
	}
	return &sm.Started{Facts: s.Facts}, nil
}

// imported is the written form of an keyimport.Keys.
type imported struct {
	Keys   map[ib.GUID]uint64
	Single uint64
	Behind map[string]ib.GUID
}

func (v *veil) imported(in *keyimport.Keys) *imported {
	if in == nil {
		return nil
	}
	out := &imported{Keys: make(map[ib.GUID]uint64), Single: v.of(in.Single.Reveal()), Behind: make(map[string]ib.GUID)}
	for guid, k := range in.Keys {
		out.Keys[guid] = v.of(k.Reveal())
	}
	for place, guid := range in.Behind {
		out.Behind[place.String()] = guid
	}
	return out
}

func (in *imported) imported() (*keyimport.Keys, error) {
	if in == nil {
		return nil, nil //nolint:nilnil // nothing is imported, and nothing is wrong
	}
	out := &keyimport.Keys{Keys: make(map[ib.GUID]keys.Key), Single: keys.New(in.Single), Behind: make(map[ib.Place]ib.GUID)}
	for guid, k := range in.Keys {
		out.Keys[guid] = keys.New(k)
	}
	for text, guid := range in.Behind {
		place, err := ib.ParsePlace(text)
		if err != nil {
			return nil, err
		}
		out.Behind[place] = guid
	}
	return out, nil
}

// made is a key that a source made, or that it could not.
type made struct {
	Kind  keys.Kind
	GUID  ib.GUID
	Epoch keys.Epoch
	Held  held
	Error string `json:",omitempty"`
}

// watched is a source that a Writer sees.
type watched struct {
	keys.Source
	to *Writer
}

// Source returns a source that makes the same keys, and has them recorded. The core must use it in place of the other.
func (w *Writer) Source(from keys.Source) keys.Source { return watched{from, w} }

// Make implements keys.Source.
func (s watched) Make(kind keys.Kind, guid ib.GUID, epoch keys.Epoch, now time.Time) (keys.Held, error) {
	h, err := s.Source.Make(kind, guid, epoch, now)
	if s.to.ended {
		return h, err
	}
	m := made{Kind: kind, GUID: guid, Epoch: epoch, Held: s.to.veil.held(h)}
	if err != nil {
		m = made{Kind: kind, GUID: guid, Epoch: epoch, Error: err.Error()}
	}
	data, jsonErr := json.Marshal(m)
	if jsonErr != nil {
		s.to.end(fmt.Errorf("write a key down: %w", jsonErr))
		return h, err
	}
	s.to.frame(kindMade, data)
	return h, err
}

// remade is the source of a replay: it makes the keys that the record has.
type remade struct{ next []made }

func (s *remade) add(data []byte) error {
	var m made
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%w: a key: %v", ErrNotRecord, err)
	}
	s.next = append(s.next, m)
	return nil
}

// Make implements keys.Source.
func (s *remade) Make(kind keys.Kind, guid ib.GUID, epoch keys.Epoch, _ time.Time) (keys.Held, error) {
	if len(s.next) == 0 {
		return keys.Held{}, fmt.Errorf("the record has no more keys, and one is wanted: %v of %v of epoch %d", kind, guid, epoch)
	}
	m := s.next[0]
	s.next = s.next[1:]
	switch {
	case m.Kind != kind || m.GUID != guid || m.Epoch != epoch:
		return keys.Held{}, fmt.Errorf("the record has the %v of %v of epoch %d, and that of %v of epoch %d is wanted", m.Kind, m.GUID, m.Epoch, guid, epoch)
	case m.Error != "":
		return keys.Held{}, errors.New(m.Error)
	default:
		return m.Held.held(), nil
	}
}
