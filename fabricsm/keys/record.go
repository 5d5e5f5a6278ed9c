package keys

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
)

// Origin says where a key comes from.
type Origin string

// Origins of keys.
const (
	OriginDerived  Origin = "derived"
	OriginRandom   Origin = "random"
	OriginImported Origin = "imported" // from another subnet manager's files
)

// Held is a key that a device may hold. The zero Held is none.
type Held struct {
	Key    Key       `json:"key"`
	Epoch  Epoch     `json:"epoch"`
	Origin Origin    `json:"origin"`
	Since  time.Time `json:"since"` // when it was made, or confirmed
}

// IsZero reports whether there is no key.
func (h Held) IsZero() bool { return h.Key.IsZero() }

// Record is what must be durable about one kind of key on one device. It is the
// whole truth after a crash: the device holds Pending or Current, or Previous
// beside Current, or it was restarted and holds none.
//
// Marshalled as JSON or YAML it shows no key; a vault seals it.
type Record struct {
	Kind  Kind     `json:"kind"`
	GUID  ib.GUID  `json:"guid"`           // port GUID, of a switch that of port 0; 0 for keys of the fabric
	Place ib.Place `json:"place,omitzero"` // the only one where the keys may be shown; zero: not bound, as of switches

	Current  Held `json:"current,omitzero"`  // confirmed by a Get
	Pending  Held `json:"pending,omitzero"`  // durable since before the first Set of it
	Previous Held `json:"previous,omitzero"` // before Current; devices with dual keys still accept it

	// Retired: the device left, and its keys were destroyed. It never gets one
	// of an epoch up to Floor again, so that no key comes back.
	Retired bool  `json:"retired,omitzero"`
	Floor   Epoch `json:"floor,omitzero"`
}

// Try returns the keys to try on a device of which nothing else is known, in this order, at most two. A Get under the right
// one shows which it holds; under any of them it shows 0 if it holds none.
func (r *Record) Try() []Held {
	var out []Held
	for _, h := range []Held{r.Current, r.Pending, r.Previous} {
		if !h.IsZero() && len(out) < 2 {
			out = append(out, h)
		}
	}
	return out
}

// Newest returns the highest epoch that the device has, or had, a key of.
func (r *Record) Newest() Epoch {
	return max(r.Current.Epoch, r.Pending.Epoch, r.Previous.Epoch, r.Floor)
}

// Check reports an invalid record. A store returns no such record.
func (r *Record) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("record of %v of %v: %s", r.Kind, r.GUID, fmt.Sprintf(format, args...))
	}
	switch {
	case !r.Kind.Valid():
		return bad("there is no such kind of key")
	case r.Kind.OfDevice() != r.GUID.Valid() || !r.Kind.OfDevice() && r.GUID != 0:
		return bad("want a port GUID for a key of a device, and none for one of the fabric")
	case r.Retired && (!r.Current.IsZero() || !r.Pending.IsZero() || !r.Previous.IsZero()):
		return bad("the device was retired, and there are keys")
	case !r.Pending.IsZero() && !r.Previous.IsZero():
		return bad("there are three keys where a device is on one of two")
	case r.Current.IsZero() && !r.Previous.IsZero():
		return bad("there is a previous key and no current one")
	}
	seen := make(map[Key]bool, 3)
	for _, h := range []Held{r.Current, r.Pending, r.Previous} {
		if h.IsZero() {
			continue
		}
		if seen[h.Key] || h.Key.Reveal() == ^uint64(0) {
			return bad("a key is there twice, or is none")
		}
		seen[h.Key] = true
		if h.Origin != OriginDerived && h.Origin != OriginRandom && h.Origin != OriginImported {
			return bad("origin %.20q: want derived, random or imported", h.Origin)
		}
	}
	return nil
}
