package main

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// wantedKeys is the table a port must hold: limited member of the default
// partition, and full member of its tenant's partition if it has one.
func wantedKeys(tenant ib.PKey) []ib.PKey {
	if !tenant.Valid() {
		return []ib.PKey{ib.DefaultPKeyLimited}
	}
	return []ib.PKey{ib.DefaultPKeyLimited, tenant.Full()}
}

// sameKeys compares two tables as sets.
func sameKeys(a, b []ib.PKey) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// proof is one table read by smpquery and its expected content.
type proof struct {
	what  string // "host-1-hca-1", "leaf-1 port 3"
	found []ib.PKey
	want  []ib.PKey
}

func (p proof) ok() bool { return sameKeys(p.found, p.want) }
