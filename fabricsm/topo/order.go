package topo

import (
	"cmp"
	"slices"
	"sort"

	"portcullis/fabricsm/ib"
)

// order lists ids by (GUID, id), in pages that snapshots share. No page is empty,
// and none is written to once it is in an order. The zero order is empty.
type order[ID ~int32] struct {
	pages [][]ID
	n     int
}

// orderPage is the length of the longest page, and orderFill how long pages are
// made, so that there is room.
const (
	orderPage = 256
	orderFill = 192
)

// all returns the ids in a slice of their own.
func (o *order[ID]) all() []ID {
	if o.n == 0 {
		return nil
	}
	return slices.Concat(o.pages...)
}

// keyed is how the ids of an order are compared.
type keyed[ID ~int32] func(ID) ib.GUID

func (guid keyed[ID]) compare(a, b ID) int {
	return cmp.Or(cmp.Compare(guid(a), guid(b)), cmp.Compare(a, b))
}

// from returns the place of the first id that is not before a GUID: a page and an index in it, beyond the last page if
// there is none.
func (o *order[ID]) from(guid keyed[ID], g ib.GUID) (page, at int) {
	page = sort.Search(len(o.pages), func(i int) bool { return guid(o.pages[i][len(o.pages[i])-1]) >= g })
	if page == len(o.pages) {
		return page, 0
	}
	p := o.pages[page]
	return page, sort.Search(len(p), func(i int) bool { return guid(p[i]) >= g })
}

// first returns the first id with a GUID, None if there is none.
func (o *order[ID]) first(guid keyed[ID], g ib.GUID) ID {
	if page, at := o.from(guid, g); page < len(o.pages) && guid(o.pages[page][at]) == g {
		return o.pages[page][at]
	}
	return None
}

// with returns the ids that have a GUID, in order. They must not be written to.
func (o *order[ID]) with(guid keyed[ID], g ib.GUID) []ID {
	page, at := o.from(guid, g)
	if page == len(o.pages) {
		return nil
	}
	p := o.pages[page]
	end := at
	for end < len(p) && guid(p[end]) == g {
		end++
	}
	found := p[at:end:end]
	for page++; end == len(p) && page < len(o.pages) && guid(o.pages[page][0]) == g; page++ {
		p, end = o.pages[page], 0 // a GUID is claimed twice: the page ends among equals
		for end < len(p) && guid(p[end]) == g {
			end++
		}
		found = slices.Concat(found, p[:end])
	}
	return found
}

// edit is a change of an order: the ids in moved have other GUIDs, or are live
// where they were not, or the other way round.
type edit[ID ~int32] struct {
	was, is         keyed[ID]
	wasLive, isLive func(ID) bool
	moved           []ID
}

// manyMoved is how many ids must move, beside one in so many of all, before the
// whole is merged.
const manyMoved = 16

// apply returns the order after a change. It costs what the pages cost that change, or, where much has moved, a merge of
// the whole.
func (o *order[ID]) apply(e *edit[ID]) order[ID] {
	slices.Sort(e.moved)
	e.moved = slices.Compact(e.moved)
	if len(e.moved) > manyMoved+o.n/manyMoved {
		return o.merged(e)
	}
	next := order[ID]{pages: slices.Clone(o.pages), n: o.n}
	for _, id := range e.moved {
		if e.wasLive(id) {
			next.remove(e.was, id)
		}
	}
	for _, id := range e.moved {
		if e.isLive(id) {
			next.insert(e.is, id)
		}
	}
	return next
}

// pageOf returns the page where an id is or belongs, and the place in it.
func (o *order[ID]) pageOf(key keyed[ID], id ID) (page, at int, found bool) {
	page = sort.Search(len(o.pages), func(i int) bool { return key.compare(o.pages[i][len(o.pages[i])-1], id) >= 0 })
	if page == len(o.pages) {
		return page, 0, false
	}
	at, found = slices.BinarySearchFunc(o.pages[page], id, key.compare)
	return page, at, found
}

// remove takes an id out. The directory is this order's own, the pages are not.
func (o *order[ID]) remove(key keyed[ID], id ID) {
	page, at, found := o.pageOf(key, id)
	if !found {
		return
	}
	o.n--
	p := o.pages[page]
	left := len(p) - 1
	switch {
	case left == 0:
		o.pages = slices.Delete(o.pages, page, page+1)
	case left < orderPage/4 && page+1 < len(o.pages) && left+len(o.pages[page+1]) <= orderFill:
		joined := slices.Concat(p[:at], p[at+1:], o.pages[page+1])
		o.pages = slices.Replace(o.pages, page, page+2, joined)
	default:
		o.pages[page] = slices.Concat(p[:at], p[at+1:])
	}
}

// insert puts an id in. The directory is this order's own, the pages are not.
func (o *order[ID]) insert(key keyed[ID], id ID) {
	o.n++
	page, at, _ := o.pageOf(key, id)
	if page == len(o.pages) {
		if page--; page < 0 {
			o.pages = [][]ID{{id}}
			return
		}
		at = len(o.pages[page])
	}
	p := o.pages[page]
	p = slices.Concat(p[:at], []ID{id}, p[at:])
	if len(p) <= orderPage {
		o.pages[page] = p
		return
	}
	half := len(p) / 2
	o.pages = slices.Replace(o.pages, page, page+1, slices.Clone(p[:half]), slices.Clone(p[half:]))
}

// merged returns the order after a large change. It costs a sort of the moved ids and one pass over all.
func (o *order[ID]) merged(e *edit[ID]) order[ID] {
	fresh := slices.DeleteFunc(slices.Clone(e.moved), func(id ID) bool { return !e.isLive(id) })
	slices.SortFunc(fresh, e.is.compare)
	out := make([]ID, 0, o.n+len(fresh))
	for _, p := range o.pages {
		for _, id := range p {
			if _, ok := slices.BinarySearch(e.moved, id); ok {
				continue
			}
			for len(fresh) > 0 && e.is.compare(fresh[0], id) < 0 {
				out, fresh = append(out, fresh[0]), fresh[1:]
			}
			out = append(out, id)
		}
	}
	out = append(out, fresh...)
	next := order[ID]{n: len(out)}
	for p := range slices.Chunk(out, orderFill) {
		next.pages = append(next.pages, p)
	}
	return next
}
