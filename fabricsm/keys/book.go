package keys

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
)

// Book holds the rings of a fabric. Its answers for one device or place cost the
// same whatever its size.
type Book struct {
	rings map[name]*Ring
	at    map[spot]map[ib.GUID]bool // bound devices, by place
}

type name struct {
	kind Kind
	guid ib.GUID
}

type spot struct {
	kind  Kind
	place ib.Place
}

// NewBook opens a book on saved records. It rejects them all if one is wrong: a missing key locks a device.
func NewBook(records []Record) (*Book, error) {
	b := &Book{rings: make(map[name]*Ring, len(records)), at: make(map[spot]map[ib.GUID]bool)}
	for _, r := range records {
		ring, err := LoadRing(r)
		if err != nil {
			return nil, err
		}
		if b.rings[name{r.Kind, r.GUID}] != nil {
			return nil, fmt.Errorf("record of %v of %v: it is there twice", r.Kind, r.GUID)
		}
		b.put(ring)
	}
	return b, nil
}

func (b *Book) put(r *Ring) {
	b.rings[name{r.rec.Kind, r.rec.GUID}] = r
	b.bind(r.rec.Kind, r.rec.GUID, r.rec.Place)
}

func (b *Book) bind(kind Kind, guid ib.GUID, place ib.Place) {
	if place.IsZero() {
		return
	}
	s := spot{kind, place}
	if b.at[s] == nil {
		b.at[s] = make(map[ib.GUID]bool, 1)
	}
	b.at[s][guid] = true
}

func (b *Book) unbind(kind Kind, guid ib.GUID, place ib.Place) {
	s := spot{kind, place}
	delete(b.at[s], guid)
	if len(b.at[s]) == 0 {
		delete(b.at, s)
	}
}

// Ring returns the ring of a device, nil if there is none. A device keeps the ring that it has.
func (b *Book) Ring(kind Kind, guid ib.GUID) *Ring { return b.rings[name{kind, guid}] }

// Open returns the ring of a device, a new one if it has none. place is where it was verified, zero for a switch, which has
// many.
func (b *Book) Open(kind Kind, guid ib.GUID, place ib.Place) *Ring {
	if r := b.Ring(kind, guid); r != nil {
		return r
	}
	r := NewRing(kind, guid, place)
	b.put(r)
	return r
}

// Move moves a device's keys of a kind to another place; see Ring.Move.
func (b *Book) Move(kind Kind, guid ib.GUID, to ib.Place) {
	r := b.Ring(kind, guid)
	if r == nil || r.rec.Place == to {
		return
	}
	b.unbind(kind, guid, r.rec.Place)
	r.Move(to)
	b.bind(kind, guid, to)
}

// Retire destroys a device's key of a kind; see Ring.Retire.
func (b *Book) Retire(kind Kind, guid ib.GUID) {
	if r := b.Ring(kind, guid); r != nil {
		b.unbind(kind, guid, r.rec.Place)
		r.Retire()
	}
}

// At returns the devices that have a key at a place, by GUID. It is for a link behind which no GUID is known yet: only keys
// of these devices may be tried there, and only if the place is verified.
func (b *Book) At(kind Kind, place ib.Place) []ib.GUID {
	return slices.Sorted(maps.Keys(b.at[spot{kind, place}]))
}

// NumAt returns how many devices have a key at a place.
func (b *Book) NumAt(kind Kind, place ib.Place) int { return len(b.at[spot{kind, place}]) }

// Records returns all records, by kind and GUID.
func (b *Book) Records() []Record {
	out := make([]Record, 0, len(b.rings))
	for _, r := range b.rings {
		out = append(out, r.rec)
	}
	SortRecords(out)
	return out
}

// SortRecords sorts by kind and GUID.
func SortRecords(records []Record) {
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.GUID, b.GUID))
	})
}
