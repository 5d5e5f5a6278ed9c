package registry

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/sm"
)

// Saved returns the non-empty facts of a kind, ordered by name. The saved facts may come in any order.
func Saved(facts []sm.Fact, kind sm.FactKind) (of []sm.Fact) {
	for i := range facts {
		if f := &facts[i]; f.Kind == kind && !f.TakesBack() {
			of = append(of, *f)
		}
	}
	slices.SortFunc(of, func(a, b sm.Fact) int { return cmp.Compare(a.Name, b.Name) })
	return of
}
