package members

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
)

// Replacement is an intent that replaces all before it, while it is taken: grants first, then those that are held, then
// those that are to be absent. Only what differs from before counts as changed. To find that costs a look-up for each.
type Replacement struct {
	r     *Register
	named int // memberships that it names
}

// Replace begins to take an intent that replaces all before it. keep: switch ports keep P_Keys that it does not name.
func (r *Register) Replace(keep bool) Replacement {
	r.round++
	r.keep = keep
	return Replacement{r: r}
}

// Grant takes a grant. Where both forms of a membership are named, the limited one counts.
func (x *Replacement) Grant(g partition.Member) {
	if !x.hasLesser(g) {
		x.name(x.r.Grant(g))
	}
}

// hasLesser reports whether the intent already has the membership in its limited form.
func (x *Replacement) hasLesser(g partition.Member) bool {
	if !g.PKey.IsFull() {
		return false
	}
	ms := x.r.find(g)
	return ms != nil && ms.round == x.r.round && !ms.PKey.IsFull()
}

// name records that the intent names a membership. It reports whether this is the first time.
func (x *Replacement) name(ms *Membership) bool {
	if ms.round == x.r.round {
		return false
	}
	ms.round = x.r.round
	x.named++
	return true
}

// Hold takes a membership that is granted where it is found.
func (x *Replacement) Hold(g partition.Member) {
	ms := x.r.find(g)
	switch {
	case ms == nil:
		ms = x.r.add(Membership{Member: g, Held: true})
	case ms.round == x.r.round:
		return // granted, too: that counts
	case ms.Leaving:
		ms.PKey, ms.Leaving, ms.Applied, ms.Held = g.PKey, false, false, true
		x.r.changed = append(x.r.changed, ms)
	}
	x.name(ms)
	ms.kept = false
}

// Deny takes a membership that is to be proven absent.
func (x *Replacement) Deny(g partition.Member) {
	ms := x.r.find(g)
	if ms == nil {
		ms = x.r.add(Membership{Member: g, Leaving: true})
	}
	ms.kept = false
	if x.name(ms) {
		x.r.leave(ms)
	}
}

// End withdraws all that the intent does not name.
func (x *Replacement) End() {
	r := x.r
	if x.named >= r.total {
		return
	}
	for _, list := range r.byGUID {
		for _, ms := range list {
			if ms.round != r.round && !r.stays(ms) {
				r.leave(ms)
			}
		}
	}
}

// Grant adds a grant and returns the membership. A grant with the other membership bit than before changes it.
func (r *Register) Grant(g partition.Member) *Membership {
	ms := r.find(g)
	switch {
	case ms == nil:
		return r.add(Membership{Member: g})
	case ms.Leaving || ms.PKey != g.PKey || ms.Held || ms.kept: // the last is reported again, to the one who granted it
		ms.PKey, ms.Leaving, ms.Applied, ms.Held = g.PKey, false, false, false
		r.changed = append(r.changed, ms)
	}
	ms.kept = false
	return ms
}

// Withdraw takes a grant back. One that does not exist is ignored.
func (r *Register) Withdraw(g partition.Member) {
	if ms := r.find(g); ms != nil {
		ms.kept = false
		r.leave(ms)
	}
}

// leave withdraws a membership that is granted.
func (r *Register) leave(ms *Membership) {
	if !ms.Leaving {
		ms.Leaving, ms.Applied = true, false
		r.changed = append(r.changed, ms)
	}
}

// Intended ends the taking of an intent. It returns the memberships that the intent has changed, and reports whether it is
// the first intent.
func (r *Register) Intended(revision int64) (changed []*Membership, first bool) {
	first = !r.intent
	r.intent, r.revision = true, revision
	changed = r.changed
	r.changed = nil
	slices.SortFunc(changed, compare)
	return slices.Compact(changed), first
}

// SetHosts replaces the places where only a host belongs. It returns those that were not among them before.
func (r *Register) SetHosts(places []ib.Place) (added []ib.Place) {
	if slices.Equal(places, r.hostList) {
		return nil
	}
	before := r.hosts
	r.hostList = slices.Clone(places)
	r.hosts = make(map[ib.Place]bool, len(places))
	for _, pl := range places {
		r.hosts[pl] = true
	}
	for _, pl := range places {
		if !before[pl] {
			added = append(added, pl)
		}
	}
	return added
}
