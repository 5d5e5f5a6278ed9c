package alias

import (
	"iter"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/registry"
)

// Snapshot is all that was given at one moment. It is immutable. The zero Snapshot has
// nothing.
type Snapshot struct{ given registry.Map[ib.GUID, given] }

// Given has the aliases of a port.
type Given struct {
	Port    ib.GUID
	Place   ib.Place  // where it was when that was given
	Aliases []ib.GUID // entries of GUIDInfo from 1 on, 0 for unused ones
}

// Now returns the current aliases of all ports.
func (r *Registry) Now() Snapshot { return Snapshot{r.given} }

// Len is the number of ports that were given any.
func (s Snapshot) Len() int { return s.given.Len() }

// Above visits the aliases of ports above a GUID, by GUID.
func (s Snapshot) Above(port ib.GUID) iter.Seq[Given] {
	return func(yield func(Given) bool) {
		for p, g := range s.given.Above(port) {
			if !yield(Given{p, g.place, slices.Clone(g.aliases)}) {
				return
			}
		}
	}
}
