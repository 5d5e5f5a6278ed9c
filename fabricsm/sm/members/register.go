// Package members keeps which ports are to be members of which partitions, as intents say it, and how far each membership
// was proven.
//
// It knows neither tables nor devices. Package pkeys compares it with those.
package members

import (
	"cmp"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/fault"
)

// Membership is the grant of a P_Key to a port at a place, or the removal of one.
type Membership struct {
	partition.Member
	Leaving bool   // to be proven absent
	Applied bool   // it was reported to be in force
	Held    bool   // granted only once the switch port was read with it
	kept    bool   // the intent does not name it; the switch port had it
	round   uint32 // the last intent that names it, of those that replace all
}

// Refused names the problem of a membership that is not honoured.
func (ms *Membership) Refused() fault.Key {
	return fault.Key{Kind: fault.MembershipRefused, GUID: ms.GUID, PKey: ms.PKey.Base(), Place: ms.Place}
}

// IsTenant reports whether a P_Key is that of a tenant's partition.
func IsTenant(k ib.PKey) bool { return k.Valid() && k.Base() != ib.DefaultPKeyLimited }

// compare orders memberships by what they are about. Whether full or limited is a property of a membership, and does not
// make it another one.
func compare(a, b *Membership) int {
	return cmp.Or(cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.PKey.Base(), b.PKey.Base()),
		cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
}

// Register is all that intents have said. Use New.
type Register struct {
	ready    bool // an intent has come, or is not waited for any longer
	intent   bool
	revision int64
	keep     bool // what switch ports have and the intent does not name stays
	takeover takeover

	byGUID   map[ib.GUID][]*Membership // grants and removals by port GUID, sorted
	byPlace  map[ib.Place][]ib.GUID    // GUIDs that name the place, sorted
	hosts    map[ib.Place]bool         // where nothing but a host is believed
	hostList []ib.Place                // the same, as it came
	total    int                       // memberships
	round    uint32                    // counts intents that replace all
	changed  []*Membership             // by the intent that is being taken
	wishes   []partition.Member        // room for those of one port
}

// New returns a register without an intent.
func New() *Register {
	return &Register{byGUID: make(map[ib.GUID][]*Membership), byPlace: make(map[ib.Place][]ib.GUID)}
}

// IsReady reports whether an intent has come, or is not waited for any longer.
func (r *Register) IsReady() bool { return r.ready }

// StopWaiting has the register ready from now on. It reports whether it was not before.
func (r *Register) StopWaiting() bool {
	was := r.ready
	r.ready = true
	return !was
}

// HasIntent reports whether an intent has come.
func (r *Register) HasIntent() bool { return r.intent }

// Revision returns the revision of the intent in force.
func (r *Register) Revision() int64 { return r.revision }

// Keeps reports whether ports may keep P_Keys that the intent does not name.
func (r *Register) Keeps() bool { return r.keep || r.takeover.open }

// Reviews reports whether switch ports keep all P_Keys that the intent does not name.
func (r *Register) Reviews() bool { return r.keep }

// IsEmpty reports whether nothing is wanted, nor to be proven, of any port.
func (r *Register) IsEmpty() bool { return len(r.byGUID) == 0 }

// Of returns the grants and removals of a GUID, sorted. The list is valid until the register changes.
func (r *Register) Of(guid ib.GUID) []*Membership { return r.byGUID[guid] }

// Has reports whether anything is wanted, or to be proven, of a GUID.
func (r *Register) Has(guid ib.GUID) bool { return len(r.byGUID[guid]) > 0 }

// GUIDs returns those of which something is wanted or to be proven, sorted.
func (r *Register) GUIDs() []ib.GUID { return slices.Sorted(maps.Keys(r.byGUID)) }

// GUIDsAt returns those of which something is wanted or to be proven at a place, sorted. The list is valid until the
// register changes.
func (r *Register) GUIDsAt(pl ib.Place) []ib.GUID { return r.byPlace[pl] }

// HasAt reports whether anything is wanted, or to be proven, of a place.
func (r *Register) HasAt(pl ib.Place) bool { return len(r.byPlace) > 0 && len(r.byPlace[pl]) > 0 }

// IsForHost reports whether only a host belongs at a place.
func (r *Register) IsForHost(pl ib.Place) bool { return r.hosts[pl] || r.HasAt(pl) }

// IsGranted reports whether a key is granted to a port at a place, full or limited as k is; with anyhow, in either form.
func (r *Register) IsGranted(pl ib.Place, k ib.PKey, anyhow bool) bool {
	for _, g := range r.byPlace[pl] {
		for _, ms := range r.byGUID[g] {
			if !ms.Leaving && ms.Place == pl && (ms.PKey == k || anyhow && ms.PKey.Base() == k.Base()) {
				return true
			}
		}
	}
	return false
}

// IsEntitled reports whether a grant names a GUID at a place.
func (r *Register) IsEntitled(guid ib.GUID, pl ib.Place) bool {
	for _, ms := range r.byGUID[guid] {
		if !ms.Leaving && ms.Place == pl {
			return true
		}
	}
	return false
}

// Wishes returns what is granted to a GUID. The result is valid until the next call.
func (r *Register) Wishes(guid ib.GUID) []partition.Member {
	r.wishes = r.wishes[:0]
	for _, ms := range r.byGUID[guid] {
		if !ms.Leaving && !ms.Held {
			r.wishes = append(r.wishes, ms.Member)
		}
	}
	return r.wishes
}

// Unprove forgets which memberships were reported to be in force. Another SM may have changed them, so they are reported
// again when they were read back again.
func (r *Register) Unprove() {
	for _, list := range r.byGUID {
		for _, ms := range list {
			ms.Applied = false
		}
	}
}

// find returns the membership of a grant, full or limited, nil without one.
func (r *Register) find(g partition.Member) *Membership {
	for _, ms := range r.byGUID[g.GUID] {
		if ms.PKey.Base() == g.PKey.Base() && ms.Place == g.Place {
			return ms
		}
	}
	return nil
}

// add adds a membership that is not there.
func (r *Register) add(in Membership) *Membership {
	ms := &in
	list := r.byGUID[ms.GUID]
	i, _ := slices.BinarySearchFunc(list, ms, compare)
	r.byGUID[ms.GUID] = slices.Insert(list, i, ms)
	guids := r.byPlace[ms.Place]
	if i, ok := slices.BinarySearch(guids, ms.GUID); !ok {
		r.byPlace[ms.Place] = slices.Insert(guids, i, ms.GUID)
	}
	r.total++
	r.changed = append(r.changed, ms)
	return ms
}

// Remove drops a membership that is proven to be gone.
func (r *Register) Remove(ms *Membership) {
	same := func(o *Membership) bool { return compare(o, ms) == 0 }
	list := slices.DeleteFunc(r.byGUID[ms.GUID], same)
	r.total--
	if len(list) == 0 {
		delete(r.byGUID, ms.GUID)
	} else {
		r.byGUID[ms.GUID] = list
	}
	if slices.ContainsFunc(list, func(o *Membership) bool { return o.Place == ms.Place }) {
		return
	}
	guids := r.byPlace[ms.Place]
	if i, ok := slices.BinarySearch(guids, ms.GUID); ok {
		guids = slices.Delete(guids, i, i+1)
	}
	if len(guids) == 0 {
		delete(r.byPlace, ms.Place)
	} else {
		r.byPlace[ms.Place] = guids
	}
}
