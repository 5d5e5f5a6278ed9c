package portindex

import (
	"iter"

	"portcullis/fabricsm/ib"
)

// Changed visits the port GUIDs of end ports that appeared, disappeared or changed since an older book, which may be nil.
// It visits some GUIDs twice, in no order. If the older book is the direct predecessor, the cost is proportional to the
// changes. Otherwise it compares all end ports.
func (b *Book) Changed(old *Book) iter.Seq[ib.GUID] {
	return func(yield func(ib.GUID) bool) {
		if old != nil && b.after == old.id() {
			for _, e := range b.shaken {
				if !yield(e.GUID) {
					return
				}
			}
			return
		}
		for _, e := range b.EndPorts() {
			if (old == nil || old.EndPort(e.Port) != e) && !yield(e.GUID) {
				return
			}
		}
		if old == nil {
			return
		}
		for _, e := range old.EndPorts() {
			if b.EndPort(e.Port) != e && !yield(e.GUID) {
				return
			}
		}
	}
}

// identity names a book without keeping it.
type identity struct {
	maker *maker
	turn  int
}

func (b *Book) id() identity { return identity{b.maker, b.turn} }
