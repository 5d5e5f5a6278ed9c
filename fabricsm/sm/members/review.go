package members

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
)

// A state that was restored from a backup is older than the fabric. Later grants and withdrawals are in the tables of the
// devices, but in no record. Until an operator has compared the two, an intent may hold memberships, which are granted only
// where the switch port was read with the P_Key. It may also keep those that it does not name. A membership that a switch
// port was once seen to have stays granted, also when the switch loses its tables.

// Agree takes the P_Keys that the switch port at a place was read with. Memberships that are held there are granted from
// now on, full or limited as they are in the table. It reports whether there were any.
func (r *Register) Agree(pl ib.Place, keys []ib.PKey) (any bool) {
	for _, guid := range r.byPlace[pl] {
		for _, ms := range r.byGUID[guid] {
			if !ms.Held || ms.Place != pl {
				continue
			}
			same := func(k ib.PKey) bool { return IsTenant(k) && k.Base() == ms.PKey.Base() }
			if i := slices.IndexFunc(keys, same); i >= 0 {
				ms.PKey, ms.Held, any = keys[i], false, true
			}
		}
	}
	return any
}

// Keep records the tenants' P_Keys of a switch port that no membership of the place is about, as memberships of the port
// behind it. It reports whether there were any.
func (r *Register) Keep(guid ib.GUID, pl ib.Place, keys []ib.PKey) (any bool) {
	for _, k := range keys {
		if IsTenant(k) && !r.isAbout(pl, k) {
			r.add(Membership{Member: partition.Member{GUID: guid, PKey: k, Place: pl}, kept: true, round: r.round})
			r.changed = nil // no intent has changed it
			any = true
		}
	}
	return any
}

// Explains reports whether a membership of a port, or of any port at a place, is of a partition, also one that is to go or is
// held. One that was kept, and goes without that an intent ever named it, explains nothing.
func (r *Register) Explains(guid ib.GUID, pl ib.Place, k ib.PKey) bool {
	explains := func(ms *Membership) bool { return ms.PKey.Base() == k.Base() && !(ms.kept && ms.Leaving) }
	return slices.ContainsFunc(r.byGUID[guid], explains) || slices.ContainsFunc(r.byPlace[pl], func(g ib.GUID) bool {
		return slices.ContainsFunc(r.byGUID[g], func(ms *Membership) bool { return ms.Place == pl && explains(ms) })
	})
}

// isAbout reports whether a membership of a place, of any port and also one that is to go, is of a partition.
func (r *Register) isAbout(pl ib.Place, k ib.PKey) bool {
	return slices.ContainsFunc(r.byPlace[pl], func(g ib.GUID) bool {
		return slices.ContainsFunc(r.byGUID[g], func(ms *Membership) bool { return ms.Place == pl && ms.PKey.Base() == k.Base() })
	})
}
