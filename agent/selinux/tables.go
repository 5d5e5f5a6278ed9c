package selinux

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
)

// CheckTables wants a label for every P_Key that a labelled port's table holds.
// One without is open to every domain that may use what has no label.
func (p *Policy) CheckTables(tables map[EndPort][]ib.PKey) error {
	labelled := map[ib.PKey]bool{ib.DefaultPKeyFull.Base(): true}
	for _, part := range p.Partitions {
		labelled[part.PKey.Base()] = true
	}
	_, ports := p.ordered()
	var errs []error
	for _, e := range ports {
		keys := slices.Clone(tables[e])
		slices.SortFunc(keys, func(a, b ib.PKey) int { return cmp.Compare(a.Base(), b.Base()) })
		for _, k := range keys {
			if k.Base() != 0 && !labelled[k.Base()] {
				errs = append(errs, fmt.Errorf("port %d of device %s: P_Key %v is in its table and has no label", e.Port, e.Device, k))
			}
		}
	}
	return errors.Join(errs...)
}
