package aliases

import (
	"iter"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Shown is what views show of aliases. It is immutable.
type Shown struct{ ByPort map[topo.PortID][]ib.GUID }

// Show returns the aliases that were read back, by port.
func (t *Table) Show() *Shown {
	if !t.stale {
		return t.shown
	}
	t.stale = false
	shown := &Shown{ByPort: make(map[topo.PortID][]ib.GUID)}
	for guid, a := range t.byPort {
		if p, ok := t.fabric.PortByGUID(guid); ok && a.told {
			shown.ByPort[p] = slices.Clone(a.given)
		}
	}
	t.shown = shown
	return shown
}

// Of returns the aliases of a port as they were read back. It must not be written to.
func (s *Shown) Of(p topo.PortID) []ib.GUID {
	if s == nil {
		return nil
	}
	return s.ByPort[p]
}

// Changed visits the ports whose aliases differ from those of an older list, nil for none, some of them twice, in no order.
// Without a change it costs nothing.
func (s *Shown) Changed(was *Shown) iter.Seq[topo.PortID] {
	return func(yield func(topo.PortID) bool) {
		if s == was {
			return
		}
		for _, side := range []*Shown{was, s} {
			if side == nil {
				continue
			}
			for p := range side.ByPort {
				if !slices.Equal(was.Of(p), s.Of(p)) && !yield(p) {
					return
				}
			}
		}
	}
}
