package review

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
)

// Wanted is a membership that the restored state grants.
type Wanted struct {
	Host  string
	GUID  ib.GUID
	Place ib.Place
	PKey  ib.PKey // with the membership bit
}

// Kind says which side has a membership.
type Kind string

// Kinds of differences.
const (
	StateOnly  Kind = "state-only"  // the restored state grants it, and the switch port does not have it
	FabricOnly Kind = "fabric-only" // the switch port has it, and the restored state does not grant it
	OtherForm  Kind = "other-form"  // both have it, one as a full and one as a limited membership
	Unseen     Kind = "unseen"      // the restored state grants it, and no port is seen at the place
)

// Difference is a membership on which state and fabric do not agree.
type Difference struct {
	Kind  Kind
	Host  string  // of the grant, or by the place's or the port's place in inventory; empty: inventory has none
	GUID  ib.GUID // of the port; zero: none is seen
	Place ib.Place
	PKey  ib.PKey // as the fabric has it for FabricOnly, else as the state does
}

// Owner returns the host of a port by its GUID, or else of a place; empty: inventory has none.
type Owner func(guid ib.GUID, place ib.Place) string

// Compare returns the differences by place, GUID and P_Key, and how many memberships both sides have. seen reports
// whether a port with a GUID is seen at a place.
func Compare(wanted []Wanted, found []Found, owner Owner, seen func(ib.GUID, ib.Place) bool) (differ []Difference, agreed int) {
	at := make(map[ib.Place]*Found, len(found))
	for i := range found {
		at[found[i].Place] = &found[i]
	}
	type slot struct {
		place ib.Place
		key   ib.PKey
	}
	explained := make(map[slot]bool, len(wanted))
	for _, w := range wanted {
		explained[slot{w.Place, w.PKey.Base()}] = true
		d := Difference{Host: w.Host, GUID: w.GUID, Place: w.Place, PKey: w.PKey}
		switch has := at[w.Place].form(w.PKey); {
		case has == w.PKey:
			agreed++
			continue
		case has != 0:
			d.Kind = OtherForm
		case !seen(w.GUID, w.Place):
			d.Kind = Unseen
		default:
			d.Kind = StateOnly
		}
		differ = append(differ, d)
	}
	for _, f := range found {
		for _, k := range f.PKeys {
			if !explained[slot{f.Place, k.Base()}] {
				differ = append(differ, Difference{Kind: FabricOnly, Host: owner(f.GUID, f.Place), GUID: f.GUID, Place: f.Place, PKey: k})
			}
		}
	}
	slices.SortFunc(differ, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port), cmp.Compare(a.GUID, b.GUID),
			cmp.Compare(a.PKey, b.PKey), cmp.Compare(a.Kind, b.Kind))
	})
	return differ, agreed
}

// form returns a P_Key as a switch port holds it, 0 if it does not.
func (f *Found) form(k ib.PKey) ib.PKey {
	if f == nil {
		return 0
	}
	if i := slices.IndexFunc(f.PKeys, func(have ib.PKey) bool { return have.Base() == k.Base() }); i >= 0 {
		return f.PKeys[i]
	}
	return 0
}
