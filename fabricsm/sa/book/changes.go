package book

import (
	"iter"

	"portcullis/fabricsm/ib"
)

// Changed visits the port GUIDs of end ports that came, went, or are not as they were
// in an older book, nil for none; some of them twice, in no order. Of a book and the
// one that it was made after it costs what changed; else all are compared.
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
