package layered

import (
	"cmp"
	"slices"
)

// order keeps the edges of a layer in an order in which each stands before
// those that are used right after it, while steps are added and taken away
// (Pearce and Kelly, "A dynamic topological sort algorithm"). Taking away needs
// nothing done. Adding a step that the order agrees with costs nothing either.
type order struct {
	d      *dealer
	place  []int32 // by edge
	seen   []int32 // by edge: the search that saw it last
	search int32

	ahead, behind []int32 // edges that a search found
	places        []int32
}

func newOrder(d *dealer) *order {
	n := len(d.g.To)
	o := &order{d: d, place: make([]int32, n), seen: make([]int32, n)}
	o.reset()
	return o
}

func (o *order) reset() {
	for e := range o.place {
		o.place[e] = int32(e)
	}
}

// after moves an edge behind another. It returns false if steps lead from it back to that other: together they would close
// a cycle.
func (o *order) after(e, next int32) bool {
	from, to := o.place[next], o.place[e]
	if to < from {
		return true
	}
	o.search++
	if !o.lookAhead(next, to) {
		return false
	}
	o.lookBehind(e, from)
	o.shuffle()
	return true
}

// lookAhead finds what follows an edge and stands before or at a place. It
// reports false if what stands there is among it.
func (o *order) lookAhead(e, last int32) bool {
	g, d := o.d.g, o.d
	o.ahead = append(o.ahead[:0], e)
	o.seen[e] = o.search
	for i := 0; i < len(o.ahead); i++ {
		x := o.ahead[i]
		row := g.Row[g.To[x]]
		for k := d.first[x]; k < d.first[x+1]; k++ {
			y := row + k - d.first[x]
			if d.count[k] == 0 || o.seen[y] == o.search || o.place[y] > last {
				continue
			}
			if o.place[y] == last {
				return false
			}
			o.seen[y] = o.search
			o.ahead = append(o.ahead, y)
		}
	}
	return true
}

// lookBehind finds what an edge follows and stands behind a place.
func (o *order) lookBehind(e, first int32) {
	g, d := o.d.g, o.d
	o.behind = append(o.behind[:0], e)
	o.seen[e] = o.search
	for i := 0; i < len(o.behind); i++ {
		x := o.behind[i]
		s := d.from[x]
		for k := g.Row[s]; k < g.Row[s+1]; k++ {
			y := d.reverse[k]
			if o.seen[y] == o.search || o.place[y] < first || d.count[d.step(y, x)] == 0 {
				continue
			}
			o.seen[y] = o.search
			o.behind = append(o.behind, y)
		}
	}
}

// shuffle puts the steps found behind before the steps found ahead, in the places that they have together.
func (o *order) shuffle() {
	byPlace := func(a, b int32) int { return cmp.Compare(o.place[a], o.place[b]) }
	slices.SortFunc(o.behind, byPlace)
	slices.SortFunc(o.ahead, byPlace)
	o.behind = append(o.behind, o.ahead...)
	o.places = o.places[:0]
	for _, e := range o.behind {
		o.places = append(o.places, o.place[e])
	}
	slices.Sort(o.places)
	for i, e := range o.behind {
		o.place[e] = o.places[i]
	}
}
