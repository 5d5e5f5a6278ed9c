package members

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
)

// Takeover has ports keep the P_Keys of tenants with which they are read first, until a person has decided about them.
type Takeover struct {
	// Open has a port keep what its tables had at the first read, if no list of the intent has its GUID or its place. A switch
	// port without a port behind it keeps all. Once an intent had it false, it stays so.
	Open bool
	// Except are base P_Keys that are never kept.
	Except []ib.PKey
}

// takeover is what the register knows of a takeover.
type takeover struct {
	open   bool
	over   bool // it was false once, which does not change
	except map[ib.PKey]bool
}

// TakeOver takes what an intent says of the takeover.
func (r *Register) TakeOver(t Takeover) {
	r.takeover.over = r.takeover.over || !t.Open
	r.takeover.open = !r.takeover.over
	r.takeover.except = nil
	if !r.takeover.open {
		return
	}
	r.takeover.except = make(map[ib.PKey]bool, len(t.Except))
	for _, k := range t.Except {
		r.takeover.except[k.Base()] = true
	}
}

// TakesOver reports whether a takeover is open.
func (r *Register) TakesOver() bool { return r.takeover.open }

// IsInheritable reports whether a takeover lets a port keep a P_Key, as far as that depends on the P_Key.
func (r *Register) IsInheritable(k ib.PKey) bool {
	return r.takeover.open && IsTenant(k) && !r.takeover.except[k.Base()]
}

// Inherit records P_Keys that a port had as its memberships, as long as the takeover is open, or until an intent has them. Each
// partition is named once. It does nothing where something is recorded of the port or of the place: that was decided.
func (r *Register) Inherit(guid ib.GUID, pl ib.Place, keys []ib.PKey) (kept []ib.PKey) {
	if r.isDecided(guid, pl) {
		return nil
	}
	for _, k := range keys {
		if r.IsInheritable(k) {
			r.add(Membership{Member: partition.Member{GUID: guid, PKey: k, Place: pl}, kept: true, round: r.round})
			kept = append(kept, k)
		}
	}
	r.changed = nil // no intent has changed it
	return slices.Clip(kept)
}

// isDecided reports whether an intent names a port, or any port at a place. That another place shows the GUID decides nothing.
func (r *Register) isDecided(guid ib.GUID, pl ib.Place) bool {
	named := func(ms *Membership) bool { return !ms.kept }
	return slices.ContainsFunc(r.byGUID[guid], named) || slices.ContainsFunc(r.byPlace[pl], func(g ib.GUID) bool {
		return slices.ContainsFunc(r.byGUID[g], func(ms *Membership) bool { return ms.Place == pl && named(ms) })
	})
}

// stays reports whether a membership that the intent does not name stays.
func (r *Register) stays(ms *Membership) bool {
	return ms.kept && (r.keep || r.IsInheritable(ms.PKey))
}
