package smtrust

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// Allowed names another Subnet Manager that this one works with. The zero Allowed names none: a list of it alone allows no other.
type Allowed struct {
	GUID  ib.GUID  // port GUID
	Place ib.Place // switch port it must be cabled to; zero: wherever the GUID is seen
}

// none is how the zero Allowed is written.
const none = "none"

// Parse reads "GUID", "GUID@SWITCH/PORT" or "none".
func Parse(s string) (a Allowed, err error) {
	if s == none {
		return Allowed{}, nil
	}
	guid, place, pinned := strings.Cut(s, "@")
	if a.GUID, err = ib.ParseGUID(guid); err != nil || !a.GUID.Valid() {
		return Allowed{}, fmt.Errorf("allowed subnet manager %q: want PORT-GUID, PORT-GUID@SWITCH-GUID/PORT or none", s)
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
	switch {
	case a == Allowed{}:
		return none
	case a.Place.IsZero():
		return a.GUID.String()
	}
	return a.GUID.String() + "@" + a.Place.String()
}

// admits reports whether an end port is the one that is named, at its place.
func (a *Allowed) admits(guid ib.GUID, place ib.Place) bool {
	return a.GUID != 0 && a.GUID == guid && (a.Place.IsZero() || a.Place == place)
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
