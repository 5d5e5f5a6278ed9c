package keys

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// Do is the action of a Step.
type Do uint8

// Steps.
const (
	// Nothing is to be done: the device is on Current, or there is no key.
	Nothing Do = iota
	// Withhold: the place of the device is not verified, or not the one that the
	// keys were given out at. Send it no key.
	Withhold
	// Ask: send a Get of the attribute that holds the key, under Step.Header.
	Ask
	// Program: send a Set of Step.New, under Step.Header, with all else that the
	// attribute holds.
	Program
	// Stranded: the device answers under none of its keys. Nothing more is sent
	// until Again: wait for its lease, a restart or an operator.
	Stranded
	// Refusing: the device answers, and does not take the new key. It stays on
	// Current, and both keys stay known; Again starts over.
	Refusing
	// Foreign: the device shows a key that is none of ours. Nothing is learned
	// from it; Adopt takes it over if an operator says so.
	Foreign
)

var doNames = [...]string{"nothing", "withhold", "ask", "program", "stranded", "refusing", "foreign"}

func (d Do) String() string { return doNames[d] }

// Step is what to do next about the key of one device.
type Step struct {
	Do     Do
	Save   bool // the record has to be durable before the MAD leaves
	Header Key  // for the header of the MAD
	New    Key  // for the payload of a Program
}

// Seen is the key that an answer showed. Devices that are asked under a wrong
// key at protection level 1 show 0: then Hidden, which is 0 with protection
// bits set.
type Seen struct {
	Key    Key
	Hidden bool
}

// belief is the state of knowledge about the key on the device.
type belief uint8

const (
	unknown   belief = iota // ask under the keys of Try, in turn
	checking                // a Set was sent: ask under the new key first
	onCurrent               // an answer showed Current
	onPrior                 // an answer showed Previous: it fell back
	open                    // an answer showed no key
	stranded
	foreign
)

const (
	// maxSets is how often a Set is tried before the device counts as refusing.
	maxSets = 3
	// lostPerSet is how many lost Sets count as one of these. A lost Set says almost nothing about the device, but requests
	// to a device that ignores Sets must end.
	lostPerSet = 4
)

// Ring holds the keys that one device may hold now, and the knowledge about which one it does. Only its Record is durable.
// LoadRing continues from the Record, whatever was sent before a crash. The zero Ring is not usable.
type Ring struct {
	rec   Record
	dirty bool // the record changed and was not given out to be saved

	belief belief
	asked  int  // keys tried without success, in unknown and checking
	sets   int  // of the new key
	lost   int  // of Sets, nothing was heard
	obeyed bool // the last of them was answered
	commit bool // program Current again, so that a device drops Previous
}

// NewRing returns the ring of a device that never had a key from us.
func NewRing(kind Kind, guid ib.GUID, place ib.Place) *Ring {
	return &Ring{rec: Record{Kind: kind, GUID: guid, Place: place}}
}

// LoadRing returns the ring of a saved record. Nothing is known of the device yet.
func LoadRing(r Record) (*Ring, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	return &Ring{rec: r}, nil
}

// Record returns the state that must be durable. After a Step with Save, it must be saved.
func (r *Ring) Record() Record { return r.rec }

// Place returns the only place where the keys may be shown, zero if they are bound to none.
func (r *Ring) Place() ib.Place { return r.rec.Place }

// Plan begins a change to another key, or to the first one: the next Step asks to save both. It rejects a change before an
// earlier one is settled, and keys that the device has or had.
func (r *Ring) Plan(h Held) error {
	no := func(format string, args ...any) error {
		return fmt.Errorf("new %v of %v: %s", r.rec.Kind, r.rec.GUID, fmt.Sprintf(format, args...))
	}
	switch {
	case !r.rec.Pending.IsZero():
		return no("the change to epoch %d is not settled; let it finish first", r.rec.Pending.Epoch)
	case !r.rec.Current.IsZero() && r.belief != onCurrent && r.belief != open:
		return no("it is not known which key the device holds; ask it first")
	case h.IsZero() || h.Key.Reveal() == ^uint64(0):
		return no("it is no key")
	case h.Key == r.rec.Current.Key || h.Key == r.rec.Previous.Key:
		return no("it is the one the device has or had; make another")
	case h.Epoch <= r.rec.Newest():
		return no("epoch %d: the device had a key of epoch %d; keys never come back", h.Epoch, r.rec.Newest())
	}
	r.rec.Pending, r.rec.Previous = h, Held{}
	r.rec.Retired = false
	r.dirty, r.sets, r.asked, r.commit = true, 0, 0, false
	if r.rec.Current.IsZero() {
		r.belief = unknown
	}
	return nil
}

// Commit has a device with dual keys drop Previous: it is programmed with
// Current once more, and then Previous is forgotten. It does nothing while there
// is no Previous.
func (r *Ring) Commit() { r.commit = !r.rec.Previous.IsZero() && r.rec.Pending.IsZero() }

// Adopt takes over a key that the device is said to hold: from the files of
// another subnet manager, or found on it and confirmed by an operator. A Get
// under it has to confirm it.
func (r *Ring) Adopt(h Held) error {
	if !r.rec.Current.IsZero() || !r.rec.Pending.IsZero() {
		return fmt.Errorf("take over the %v of %v: the device has one from us; retire it first", r.rec.Kind, r.rec.GUID)
	}
	if h.IsZero() || h.Key.Reveal() == ^uint64(0) {
		return fmt.Errorf("take over the %v of %v: there is none", r.rec.Kind, r.rec.GUID)
	}
	h.Origin = OriginImported
	r.rec.Current, r.rec.Retired = h, false
	r.dirty, r.belief, r.asked = true, unknown, 0
	return nil
}

// Keep makes a key that was taken over, and that the device was seen on, one of ours: the
// device stays on it until the next rotation. It reports whether there was one.
func (r *Ring) Keep() bool {
	if r.rec.Current.Origin != OriginImported || !r.Settled() {
		return false
	}
	r.rec.Current.Origin, r.dirty = OriginRandom, true
	return true
}

// Move says that the device was verified at another place, by an operator or a
// declared topology. Without it, no key of the device is ever shown there.
func (r *Ring) Move(to ib.Place) {
	if r.rec.Place != to {
		r.rec.Place, r.dirty = to, true
		r.Again()
	}
}

// Retire destroys the keys of a device that left: after the record is saved,
// nothing has them but backups made before.
func (r *Ring) Retire() {
	floor := r.rec.Newest()
	r.rec = Record{Kind: r.rec.Kind, GUID: r.rec.GUID, Retired: true, Floor: floor}
	r.dirty, r.belief, r.commit = true, unknown, false
}

// Again drops all knowledge of the key on the device: its port came up, its lease ran out, or an operator asks for another
// try.
func (r *Ring) Again() { r.belief, r.asked, r.sets = unknown, 0, 0 }

// Now returns the key for the headers of MADs to the device, if it is known to be right. It returns false while the key is
// changing. Hold other MADs of the class until then: a device without dual keys accepts only one.
func (r *Ring) Now(place ib.Place, verified bool) (Key, bool) {
	if r.withheld(place, verified) {
		return Key{}, false
	}
	switch r.belief {
	case onCurrent:
		return r.rec.Current.Key, true
	case open:
		return Key{}, true
	default:
		return Key{}, false
	}
}

// IsKnown reports whether it is known which key the device has, or that it has none. It says nothing about the place.
func (r *Ring) IsKnown() bool { return r.belief == onCurrent || r.belief == open }

func (r *Ring) withheld(place ib.Place, verified bool) bool {
	return !verified || !r.rec.Place.IsZero() && r.rec.Place != place
}

// Settled reports whether the device was seen on Current, and no change is due.
func (r *Ring) Settled() bool {
	return r.belief == onCurrent && r.rec.Pending.IsZero() && !r.commit && !r.dirty
}

// Open reports whether the device was seen to hold no key, and no change is due. Then a key planned now is the one it gets,
// and not the one it had.
func (r *Ring) Open() bool { return r.belief == open && r.rec.Pending.IsZero() && !r.dirty }

// NextEpoch returns the epoch of a first key, or of one after the device was retired. In a rotation the Target has the
// epoch.
func (r *Ring) NextEpoch() Epoch { return r.rec.Newest() + 1 }
