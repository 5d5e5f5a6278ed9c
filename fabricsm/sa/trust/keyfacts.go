package trust

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// retiredName is the name of the fact about keys that are no longer right.
const retiredName = "retired"

// aside has the data of a KeyState beside its record.
type aside struct {
	GraceEnds time.Time `json:"grace_ends,omitzero"`
	Retired   []Digest  `json:"retired,omitempty"`
}

// Facts returns the facts that save a state, to be saved together. The store seals the one with the keys, as all of its
// kind. If only one of them is durable after a crash, the previous key is no longer accepted.
func (s *KeyState) Facts() []sm.Fact {
	body, err := json.Marshal(aside{s.GraceEnds.UTC(), s.Retired})
	if err != nil {
		panic(fmt.Sprintf("trust: %v", err)) // a time after the year 9999
	}
	return []sm.Fact{sm.KeyFactOf(s.Record), {Kind: sm.FactSAKeys, Name: retiredName, Body: string(body)}}
}

// KeyStateOf returns the state in facts, the last of each kind, or the zero state if there is none.
func KeyStateOf(facts []sm.Fact) (s KeyState, err error) {
	for i := range facts {
		f := &facts[i]
		switch {
		case f.Key != nil && f.Key.Kind == keys.SAKey:
			s.Record = *f.Key
		case f.Kind == sm.FactSAKeys && f.Name == retiredName:
			a, err := readAside(f.Body)
			if err != nil {
				return KeyState{}, fmt.Errorf("fact %s %s: %w", f.Kind, f.Name, err)
			}
			s.GraceEnds, s.Retired = a.GraceEnds, a.Retired
		}
	}
	return s, nil
}

func readAside(body string) (a aside, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return aside{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return aside{}, errors.New("there is more after it")
	}
	return a, nil
}

// MarshalText returns hexadecimal digits.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads the form of MarshalText.
func (d *Digest) UnmarshalText(text []byte) error {
	var b Digest
	if n, err := hex.Decode(b[:], text[:min(len(text), 2*len(b))]); err != nil || n != len(b) || len(text) != 2*len(b) {
		return errors.New("digest of a key: want 32 hexadecimal digits")
	}
	*d = b
	return nil
}
