package isolation

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"portcullis/api/fabric/records"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

// Change is a record of a grant that was written, or removed.
type Change struct {
	Key   string
	Grant *records.Grant // nil: it is removed
}

// With returns what is declared with other grants, and shares the rest. It reports false if that takes more than the owner and the P_Keys of
// ports in the inventory: then an Intent is to be made of all records.
func (in *Intent) With(changes []Change) (*Intent, bool) {
	if !slices.ContainsFunc(changes, func(c Change) bool { return !in.has(c) }) {
		return in, true
	}
	next := *in
	next.holdings = in.clone()
	next.ends, next.issued = slices.Clone(in.ends), maps.Clone(in.issued)
	ports, bases := map[ib.GUID]int{}, map[ib.PKey]bool{}
	var s step
	places := map[ib.Place]bool{}
	for i := range changes {
		k, err := records.ParseKey(changes[i].Key)
		if err != nil {
			return nil, false
		}
		at, known := in.byPort[k.GUID]
		if !known || at < 0 {
			return nil, false
		}
		ports[k.GUID], bases[k.PKey.Base()] = at, true
		places[k.Place], places[in.ends[at].place] = true, true
		next.replace(&changes[i], k)
	}
	for place := range places {
		in.forgetIn(&next.holdings, place)
		for i := range next.at[place] {
			next.explain(&next.at[place][i])
		}
	}
	for guid, at := range ports {
		next.find(guid)
		e := &next.ends[at]
		owner := next.ownerOf(guid, e.idle)
		if owner.Kind != e.owner.Kind {
			return nil, false
		}
		e.owner, next.issued[guid] = owner, owner
		for _, g := range e.alias {
			if in.byPort[g] != alias { // it was issued to another port, too, which may count
				return nil, false
			}
			next.issued[g] = owner
		}
	}
	for base := range bases {
		delete(next.owns, base)
	}
	for x := range next.shares {
		if bases[x.base] {
			next.own(x.base, x.tenant)
		}
	}
	for base := range bases {
		if was, is := in.owns[base], next.owns[base]; was != is {
			s.bases = append(s.bases, base)
		}
	}
	s.places = slices.Collect(maps.Keys(places))
	next.line, next.step = in.line.add(in.step, s)
	return &next, true
}

// has reports whether a grant is already as it was written.
func (in *Intent) has(c Change) bool {
	k, err := records.ParseKey(c.Key)
	if err != nil {
		return false
	}
	i := slices.IndexFunc(in.of[k.GUID], func(h holding) bool { return h.name == c.Key })
	if i < 0 || c.Grant == nil {
		return i < 0 && c.Grant == nil
	}
	return in.of[k.GUID][i].Grant == *c.Grant
}

// forgetIn has other holdings forget what grants of this Intent explain at a switch port.
func (in *Intent) forgetIn(hs *holdings, place ib.Place) {
	was := hs.at[place]
	hs.at[place] = in.at[place]
	hs.forget(place)
	if hs.at[place] = was; len(was) == 0 {
		delete(hs.at, place)
	}
}

// replace has a grant be as it was written.
func (hs *holdings) replace(c *Change, k records.Key) {
	without := func(list []holding) []holding {
		list = slices.Clone(list)
		i := slices.IndexFunc(list, func(h holding) bool { return h.name == c.Key })
		if i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		return list
	}
	for i := range hs.of[k.GUID] {
		if h := &hs.of[k.GUID][i]; h.name == c.Key {
			hs.share(h, -1)
			break
		}
	}
	of, at := without(hs.of[k.GUID]), without(hs.at[k.Place])
	if c.Grant != nil {
		h := holding{c.Key, k, *c.Grant}
		hs.share(&h, 1)
		of, at = append(of, h), append(at, h)
		slices.SortFunc(of, byName)
		slices.SortFunc(at, byName)
	}
	hs.of[k.GUID], hs.at[k.Place] = of, at
	if len(of) == 0 {
		delete(hs.of, k.GUID)
	}
	if len(at) == 0 {
		delete(hs.at, k.Place)
	}
}

// Equal reports whether two Intents declare the same, however they were made.
func (in *Intent) Equal(other *Intent) bool {
	if in == other || in == nil || other == nil {
		return in == other
	}
	a, b := *in, *other
	a.line, b.line, a.step, b.step = nil, nil, 0, 0
	return reflect.DeepEqual(&a, &b)
}

// Moved returns the places at which this Intent declares other owners or P_Keys than an earlier one. It reports false if that is not known, or
// if more differs.
func (in *Intent) Moved(was *Intent) ([]ib.Place, bool) {
	s, ok := in.since(was)
	return s.places, ok
}

func (in *Intent) since(was *Intent) (step, bool) {
	if in == was {
		return step{}, true
	}
	if was == nil || in.line != was.line || was.step > in.step {
		return step{}, false
	}
	return in.line.between(was.step, in.step)
}

// sold returns the owners that have, or had, a port that is of another one now.
func (in *Intent) sold(was *Intent) map[proof.Owner]bool {
	if in == was {
		return nil
	}
	out := map[proof.Owner]bool{}
	for i := range in.ends {
		if a, b := was.ends[i].owner, in.ends[i].owner; a != b {
			out[a], out[b] = true, true
		}
	}
	return out
}

// step is in what an Intent differs from the one that it was made of.
type step struct {
	places []ib.Place
	bases  []ib.PKey // P_Keys that have another tenant, or have one now, or none any more
}

// mostSteps is how many steps a line has. A proof that is older is not built on.
const mostSteps = 1024

// line is the steps from one Intent to others. Two Intents may be made of the same one: then only the first is on its line.
type line struct {
	mu    sync.Mutex
	steps []step
}

// add adds a step to the first ones. It returns the line, a new one if this one goes on otherwise or is full, and its number of steps.
func (l *line) add(after int, s step) (*line, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after != len(l.steps) || after == mostSteps {
		return &line{}, 0
	}
	l.steps = append(l.steps, s)
	return l, after + 1
}

// between returns the steps from one to another as one.
func (l *line) between(from, to int) (all step, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to > len(l.steps) {
		return step{}, false
	}
	for _, s := range l.steps[from:to] {
		all.places, all.bases = append(all.places, s.places...), append(all.bases, s.bases...)
	}
	return all, true
}
