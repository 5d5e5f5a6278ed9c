package records

import (
	"context"
	"slices"

	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// Adopted is a membership that an adoption keeps, or that is not yet proven absent. Its grant is in the ledger under the same key.
type Adopted struct {
	Adoption string `json:"adoption"`
	Device   string `json:"device,omitempty"` // as it described itself
	Cause    string `json:"cause,omitempty"`  // why it ended, of package adoption
}

// Adoptions holds memberships of adoptions, by the key of the grant.
func Adoptions() store.Collection[Adopted] {
	return store.NewCollection[Adopted]("adoption-members", 1)
}

// AdoptedOf returns the keys of adopted memberships of some ports, and of those at some places. A grant of one of them may be another
// by now.
func AdoptedOf(ctx context.Context, r store.Reader, ports []ib.GUID, places []ib.Place) ([]Key, error) {
	all, _, err := Adoptions().List(ctx, r, "")
	if err != nil {
		return nil, err
	}
	var out []Key
	for i := range all {
		k, err := ParseKey(all[i].Key)
		if err != nil {
			return nil, err
		}
		if slices.Contains(ports, k.GUID) || slices.Contains(places, k.Place) {
			out = append(out, k)
		}
	}
	return out, nil
}
