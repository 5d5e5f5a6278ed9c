package verify

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
)

// order returns the places of facts by switch and port, so that the same facts lead to the same changes.
func order(facts map[ib.Place]Seen) []ib.Place {
	places := make([]ib.Place, 0, len(facts))
	for at := range facts {
		places = append(places, at)
	}
	slices.SortFunc(places, func(a, b ib.Place) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
	})
	return places
}
