package conf

import (
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/topo"
)

// Seating keeps the members that rules make in a fabric, each at the place where its GUID is seen. Ports that are cabled to
// no switch are left out. If several places show a GUID, it stays at the one it had. If it had none of them, the GUID has
// no place, since the right one is unknown. The cost of [Seating.Seat] grows with the changes since its last call.
type Seating struct {
	rules *Rules
	keys  map[ib.GUID][]ib.PKey // of ports that rules name by their GUIDs, in order
	// The same for the ports that rules name by group.
	ofSelf, ofCAs, ofRouters []ib.PKey

	self  ib.GUID
	seats map[ib.GUID]seat
	due   map[ib.GUID]struct{} // to be examined
	all   bool                 // all must be examined
}

// seat is the place of a GUID and the keys it is a member with there, in order.
type seat struct {
	place ib.Place
	keys  []ib.PKey
}

// NewSeating returns a Seating without any members.
func NewSeating(r *Rules) *Seating {
	s := &Seating{
		rules: &Rules{}, keys: make(map[ib.GUID][]ib.PKey), seats: make(map[ib.GUID]seat),
		due: make(map[ib.GUID]struct{}), all: true,
	}
	s.SetRules(r)
	return s
}

// SetRules takes other rules.
func (s *Seating) SetRules(r *Rules) {
	before := make(map[ib.PKey]*Partition, len(s.rules.Partitions))
	for i := range s.rules.Partitions {
		before[s.rules.Partitions[i].PKey] = &s.rules.Partitions[i]
	}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		var old []Who
		if was := before[p.PKey]; was != nil {
			old = was.Who
			delete(before, p.PKey)
		}
		s.replace(p.PKey, old, p.Who)
	}
	for k, gone := range before {
		s.replace(k, gone.Who, nil)
	}
	s.rules = r
	s.setGroup(&s.ofSelf, r, Self)
	s.setGroup(&s.ofCAs, r, AllCAs)
	s.setGroup(&s.ofRouters, r, AllRouters)
}

// replace takes other members of a partition that are named by their GUIDs. Files
// change in few lines: what both lists begin and end with is passed over.
func (s *Seating) replace(k ib.PKey, old, now []Who) {
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	for _, w := range old {
		if w.Group == OnePort {
			s.take(w.GUID, k)
		}
	}
	for _, w := range now {
		if w.Group == OnePort {
			s.give(w.GUID, k)
		}
	}
}

func (s *Seating) take(g ib.GUID, k ib.PKey) {
	s.Moved(g)
	left := slices.DeleteFunc(s.keys[g], func(o ib.PKey) bool { return o == k })
	if len(left) == 0 {
		delete(s.keys, g)
		return
	}
	s.keys[g] = left
}

func (s *Seating) give(g ib.GUID, k ib.PKey) {
	s.Moved(g)
	keys := s.keys[g]
	if i, ok := slices.BinarySearch(keys, k); !ok {
		s.keys[g] = slices.Insert(keys, i, k)
	}
}

// setGroup takes the partitions of a group of ports.
func (s *Seating) setGroup(keys *[]ib.PKey, r *Rules, group Group) {
	var now []ib.PKey
	for i := range r.Partitions {
		if slices.Contains(r.Partitions[i].Who, Who{Group: group}) {
			now = append(now, r.Partitions[i].PKey)
		}
	}
	slices.Sort(now)
	if !slices.Equal(now, *keys) {
		*keys, s.all = now, true
	}
}

// Moved says that a port GUID came, went or is at another place.
func (s *Seating) Moved(g ib.GUID) {
	if !s.all {
		s.due[g] = struct{}{}
	}
}

// MovedAll says that any may have.
func (s *Seating) MovedAll() { s.all = true }

// PlaceOf returns the place of a GUID that is a member of a partition.
func (s *Seating) PlaceOf(g ib.GUID) (ib.Place, bool) {
	at, ok := s.seats[g]
	return at.place, ok
}

// Seat reads a fabric, in which self is the Subnet Manager's port. It returns the members that are new and those that are
// no longer members, by GUID and P_Key.
func (s *Seating) Seat(f *topo.Fabric, self ib.GUID) (granted, withdrawn []partition.Member) {
	if s.self != self {
		s.Moved(s.self)
		s.Moved(self)
		s.self = self
	}
	for _, g := range s.toSee(f) {
		was := s.seats[g]
		is := s.seatOf(f, g, was.place)
		if is.place == was.place && slices.Equal(is.keys, was.keys) {
			continue
		}
		withdrawn = was.without(g, &is, withdrawn)
		granted = is.without(g, &was, granted)
		if len(is.keys) == 0 {
			delete(s.seats, g)
		} else {
			s.seats[g] = is
		}
	}
	return granted, withdrawn
}

// toSee returns the GUIDs to be examined, in order.
func (s *Seating) toSee(f *topo.Fabric) []ib.GUID {
	if s.all {
		s.all = false
		for g := range s.keys {
			s.Moved(g)
		}
		for g := range s.seats {
			s.Moved(g)
		}
		s.Moved(s.self)
		if len(s.ofCAs)+len(s.ofRouters) > 0 {
			for _, p := range f.EndPorts() {
				s.Moved(f.Port(p).GUID)
			}
		}
	}
	see := slices.Sorted(maps.Keys(s.due))
	if len(see) > keepDue {
		s.due = make(map[ib.GUID]struct{})
	}
	clear(s.due)
	return see
}

// keepDue is how many GUIDs may be due at once without the room for them being
// given back: to clear a map costs what it once held.
const keepDue = 64

// seatOf returns the present place of a GUID, and its keys.
func (s *Seating) seatOf(f *topo.Fabric, g ib.GUID, was ib.Place) seat {
	keys := s.keysOf(f, g)
	if len(keys) == 0 {
		return seat{}
	}
	place, ok := locate(f, g, was)
	if !ok {
		return seat{}
	}
	return seat{place, keys}
}

// keysOf returns the keys that rules assign to a GUID in a fabric, in order.
func (s *Seating) keysOf(f *topo.Fabric, g ib.GUID) []ib.PKey {
	keys := slices.Clone(s.keys[g])
	if g == s.self {
		keys = append(keys, s.ofSelf...)
	}
	if len(s.ofCAs)+len(s.ofRouters) > 0 {
		for _, p := range f.PortsByGUID(g) {
			switch f.NodeOf(p).Type {
			case ib.NodeCA:
				keys = append(keys, s.ofCAs...)
			case ib.NodeRouter:
				keys = append(keys, s.ofRouters...)
			default: // switches are not made members
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// without appends the members of a seat that are not in another one of its GUID.
func (a *seat) without(g ib.GUID, b *seat, out []partition.Member) []partition.Member {
	for _, k := range a.keys {
		if a.place != b.place || !slices.Contains(b.keys, k) {
			out = append(out, partition.Member{GUID: g, PKey: k, Place: a.place})
		}
	}
	return out
}

// locate returns the earlier place of a GUID if it is still there, or the only one.
func locate(f *topo.Fabric, g ib.GUID, was ib.Place) (ib.Place, bool) {
	var only ib.Place
	places := 0
	for _, p := range f.PortsByGUID(g) {
		at := f.PlaceOf(p)
		if at.IsZero() {
			continue
		}
		if at == was {
			return at, true
		}
		only = at
		places++
	}
	return only, places == 1
}
