package inventory

import (
	"maps"
	"slices"
)

// Delta is what an import does to the objects of one kind.
type Delta[T any] struct {
	Added     []T          // by key
	Changed   []Revised[T] // by key
	Removed   []T          // by key
	Unchanged int          // objects that the files name and that already are so
}

// Revised is one stored object that the files change.
type Revised[T any] struct {
	Before, After T
	Fields        []string // what changes, one sentence each
}

// Thing is what an import does to one object that is no host.
type Thing struct {
	Kind   Kind
	What   string   // ThingAdded, ThingChanged or ThingRemoved
	ID     string   // of a cable both ends, in words
	Fields []string // of ThingChanged
}

// What an import does to an object.
const (
	ThingAdded   = "added"
	ThingChanged = "changed"
	ThingRemoved = "removed"
)

// object is what an import needs to know of T.
type object[T any] interface {
	*T
	key() string
	words(l *Locator) string
	facts(l *Locator) []attribute
}

// decl is one declared object and its place.
type decl[T any] struct {
	at    spot
	value T
}

// kept is the objects of one kind, by key, before and after an import.
type kept[T any, P object[T]] struct {
	was, next map[string]T
	at        map[string]spot // where the files declare it
}

func newKept[T any, P object[T]](stored []T, decls []decl[T]) kept[T, P] {
	k := kept[T, P]{was: make(map[string]T, len(stored)), next: make(map[string]T, len(stored)), at: map[string]spot{}}
	for i := range stored {
		key := P(&stored[i]).key()
		k.was[key], k.next[key] = stored[i], stored[i]
	}
	for i := range decls {
		key := P(&decls[i].value).key()
		k.next[key], k.at[key] = decls[i].value, decls[i].at
	}
	return k
}

// all returns the objects after the import, by key.
func (k *kept[T, P]) all() []T {
	out := make([]T, 0, len(k.next))
	for _, key := range slices.Sorted(maps.Keys(k.next)) {
		out = append(out, k.next[key])
	}
	return out
}

func (k *kept[T, P]) delta(l *Locator) (d Delta[T]) {
	for _, key := range slices.Sorted(maps.Keys(k.next)) {
		after := k.next[key]
		before, known := k.was[key]
		if !known {
			d.Added = append(d.Added, after)
			continue
		}
		fields := diffAttributes(P(&before).facts(l), P(&after).facts(l))
		if _, named := k.at[key]; len(fields) > 0 {
			d.Changed = append(d.Changed, Revised[T]{before, after, fields})
		} else if named {
			d.Unchanged++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.was)) {
		if _, there := k.next[key]; !there {
			d.Removed = append(d.Removed, k.was[key])
		}
	}
	return d
}

// things lists what d does, with the locations before and after the import.
func things[T any, P object[T]](d *Delta[T], kind Kind, was, now *Locator) (out []Thing) {
	for i := range d.Added {
		out = append(out, Thing{kind, ThingAdded, P(&d.Added[i]).words(now), nil})
	}
	for i := range d.Changed {
		out = append(out, Thing{kind, ThingChanged, P(&d.Changed[i].After).words(now), d.Changed[i].Fields})
	}
	for i := range d.Removed {
		out = append(out, Thing{kind, ThingRemoved, P(&d.Removed[i]).words(was), nil})
	}
	return out
}

// twice reports objects that the files declare more than once.
func twice[T any, P object[T]](r *report, kind Kind, decls []decl[T]) {
	first := map[string]spot{}
	for i := range decls {
		key := P(&decls[i].value).key()
		if at, there := first[key]; there {
			r.add(decls[i].at, "%s %s is declared twice, first at %v", kind, quote(key), at)
			continue
		}
		first[key] = decls[i].at
	}
}
