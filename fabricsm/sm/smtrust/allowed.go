package smtrust

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// Allowed names another Subnet Manager that this one works with.
type Allowed struct {
	GUID  ib.GUID  // port GUID
	Place ib.Place // switch port it must be cabled to; zero: wherever the GUID is seen
}

// Parse reads "GUID" or "GUID@SWITCH/PORT".
func Parse(s string) (a Allowed, err error) {
	guid, place, pinned := strings.Cut(s, "@")
	if a.GUID, err = ib.ParseGUID(guid); err != nil || !a.GUID.Valid() {
		return Allowed{}, fmt.Errorf("allowed subnet manager %q: want PORT-GUID or PORT-GUID@SWITCH-GUID/PORT", s)
	}
	if pinned {
		if a.Place, err = ib.ParsePlace(place); err != nil {
			return Allowed{}, fmt.Errorf("allowed subnet manager %q: %w", s, err)
		}
	}
	return a, nil
}

// UnmarshalText reads what Parse does.
func (a *Allowed) UnmarshalText(b []byte) (err error) {
	*a, err = Parse(string(b))
	return err
}

// MarshalText writes what UnmarshalText reads.
func (a Allowed) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String is what Parse reads.
func (a Allowed) String() string {
	if a.Place.IsZero() {
		return a.GUID.String()
	}
	return a.GUID.String() + "@" + a.Place.String()
}

// admits reports whether an end port is the one that is named, at its place.
func (a *Allowed) admits(guid ib.GUID, place ib.Place) bool {
	return a.GUID == guid && (a.Place.IsZero() || a.Place == place)
}

// Sibling is another instance of the same service, which was master with the facts that this one loads. The registrations
// of hosts are in those facts, so none has to be renewed when this instance takes over. At its place it stays a full member
// of the default partition, so that a change of masters writes no P_Key.
//
// The place is part of it: a GUID alone can be forged.
type Sibling struct {
	GUID  ib.GUID  // port GUID
	Place ib.Place // switch port that it is cabled to
}
