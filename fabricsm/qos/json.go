package qos

import (
	"encoding/json"
	"fmt"

	"portcullis/fabricsm/ib"
)

// written is the JSON form of Options: the options themselves, not the tables that follow from them.
type written struct {
	Enabled bool
	Base    writtenPart
	Of      [numKinds]writtenPart
}

type writtenPart struct {
	MaxVLs    uint8      `json:",omitempty"`
	HighLimit *uint8     `json:",omitempty"`
	High      []Entry    // null: not given
	Low       []Entry    // null: not given
	SLtoVL    *[16]ib.VL `json:",omitempty"`
}

// MarshalJSON writes all that was given, so that the same options can be made of
// it.
func (o Options) MarshalJSON() ([]byte, error) {
	w := written{Enabled: o.Enabled, Base: o.base.write()}
	for k := range o.of {
		w.Of[k] = o.of[k].write()
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. An error says which value is out of
// its range, and o is as before.
func (o *Options) UnmarshalJSON(data []byte) error {
	var w written
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("quality of service: %w", err)
	}
	read := Options{Enabled: w.Enabled}
	var err error
	if read.base, err = w.Base.read(); err != nil {
		return fmt.Errorf("quality of service: %w", err)
	}
	for k := range w.Of {
		if read.of[k], err = w.Of[k].read(); err != nil {
			return fmt.Errorf("quality of service of %s: %w", kindNames[k], err)
		}
	}
	*o = read
	return nil
}

func (p *part) write() writtenPart {
	w := writtenPart{MaxVLs: p.maxVLs, High: p.high, Low: p.low, SLtoVL: p.slToVL}
	if p.hasLimit {
		w.HighLimit = &p.limit
	}
	return w
}

func (w *writtenPart) read() (part, error) {
	p := part{maxVLs: w.MaxVLs, high: w.High, low: w.Low, slToVL: w.SLtoVL}
	if w.HighLimit != nil {
		p.limit, p.hasLimit = *w.HighLimit, true
	}
	if p.maxVLs > 15 {
		return part{}, fmt.Errorf("%d virtual lanes: want at most 15", p.maxVLs)
	}
	for _, entries := range [2][]Entry{p.high, p.low} {
		if len(entries) > MaxEntries {
			return part{}, fmt.Errorf("%d entries of an arbitration table: want at most %d", len(entries), MaxEntries)
		}
		for _, e := range entries {
			if e.VL > 14 {
				return part{}, fmt.Errorf("virtual lane %d in an arbitration table: want 0 to 14", e.VL)
			}
		}
	}
	if p.slToVL != nil {
		for _, vl := range p.slToVL {
			if vl > ib.VL15 {
				return part{}, fmt.Errorf("virtual lane %d of a service level: want 0 to 15", vl)
			}
		}
	}
	return p, nil
}
