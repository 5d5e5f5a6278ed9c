package threats

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/administration"
	"portcullis/fabricsm/drill/leaks"
)

// All lists the drills, in the order of their threats.
func All() []drill.Drill {
	list := slices.Concat(partitionDrills(), identityDrills(), smpDrills(), mkeyDrills(), classDrills(), administration.FloodDrills(), administration.LapseDrills(), administration.KnowledgeDrills(), administration.RegistrationDrills(), administration.MulticastDrills(), administration.ServiceDrills(), evidenceDrills(), physicalDrills(), sightDrills(), serviceDrills(), leaks.Drills())
	slices.SortStableFunc(list, func(a, b drill.Drill) int { return number(a.ID) - number(b.ID) })
	return list
}

// Replace returns a list with some drills replaced: drills of the fabric alone by those that need more than it.
func Replace(list, by []drill.Drill) []drill.Drill {
	out := slices.Clone(list)
	for i := range out {
		if at := slices.IndexFunc(by, func(d drill.Drill) bool { return d.ID == out[i].ID }); at >= 0 {
			out[i] = by[at]
		}
	}
	return out
}

// Pick returns the drills of a list that are named: "T17", "t17", "17" or "T1-T16"; "all" names every one. A range may
// begin and end with a threat that has no drill, if there is any between.
func Pick(list []drill.Drill, names []string) ([]drill.Drill, error) {
	picked := make(map[string]bool)
	for _, name := range names {
		first, last, isRange := strings.Cut(name, "-")
		if !isRange {
			last = first
		}
		from, to, found := number(first), number(last), false
		if name == "all" {
			from, to = 1, math.MaxInt
		}
		for _, d := range list {
			if n := number(d.ID); from > 0 && from <= n && n <= to {
				picked[d.ID], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("no drill %q: want T17, T1-T16 or all; drill list shows what there is", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(d drill.Drill) bool { return !picked[d.ID] }), nil
}

// number is that of a threat, 0 for none.
func number(id string) int {
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.ToUpper(id), "T"), 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}
