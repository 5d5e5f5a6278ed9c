package sm

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// compareGrants orders grants by what they are about. Whether full or limited is a
// property of a membership, and does not make it another one.
func compareGrants(a, b Grant) int {
	return cmp.Or(cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.PKey.Base(), b.PKey.Base()),
		cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
}

// setIntent replaces all that is wanted. Only what differs from before is
// looked at; to find that costs a look-up for each grant.
func (c *Core) setIntent(in *Intent) {
	m := &c.members
	m.round++
	m.keep = in.Keep
	named := 0
	for _, g := range in.Grants {
		if m.lesser(g) {
			continue
		}
		if ms := m.want(g); ms.round != m.round {
			ms.round = m.round
			named++
		}
	}
	named += m.setHeld(in.Held)
	for _, g := range in.Absent {
		ms := m.find(g)
		if ms == nil {
			ms = m.add(membership{Grant: g, leaving: true})
		}
		if ms.round != m.round {
			ms.round = m.round
			named++
			m.leave(ms)
		}
	}
	if named < m.total {
		for _, list := range m.byGUID {
			for _, ms := range list {
				if ms.round != m.round && !(ms.kept && m.keep) {
					m.leave(ms)
				}
			}
		}
	}
	c.setHosts(in.Hosts)
	c.intended(in.Revision)
}

// changeIntent changes what is wanted, at a cost that does not grow with it.
func (c *Core) changeIntent(in *IntentChanged) {
	m := &c.members
	for _, g := range in.Withdraw {
		if ms := m.find(g); ms != nil {
			m.leave(ms)
		}
	}
	for _, g := range in.Grant {
		m.want(g)
	}
	c.intended(in.Revision)
}

// intended looks at the memberships that an intent has changed.
func (c *Core) intended(revision int64) {
	m := &c.members
	first := !m.intent
	m.intent, m.revision = true, revision
	c.viewDue = true
	changed := m.changed
	m.changed = nil
	slices.SortFunc(changed, func(a, b *membership) int { return compareGrants(a.Grant, b.Grant) })
	for _, ms := range slices.Compact(changed) {
		now := *ms // looking at it may remove it
		c.lookAt(&now)
	}
	if first {
		c.stopWaiting()
	}
}

// want adds a grant and returns the membership. A grant with the other membership bit than before changes it.
func (m *members) want(g Grant) *membership {
	ms := m.find(g)
	switch {
	case ms == nil:
		return m.add(membership{Grant: g})
	case ms.leaving || ms.PKey != g.PKey || ms.held:
		ms.PKey, ms.leaving, ms.applied, ms.held = g.PKey, false, false, false
		m.changed = append(m.changed, ms)
	}
	ms.kept = false
	return ms
}

// lesser reports whether the intent which is being taken already has the membership in its limited form: where both forms
// are named, the limited one counts.
func (m *members) lesser(g Grant) bool {
	if !g.PKey.IsFull() {
		return false
	}
	ms := m.find(g)
	return ms != nil && ms.round == m.round && !ms.PKey.IsFull()
}

// leave withdraws a membership that is granted.
func (m *members) leave(ms *membership) {
	if !ms.leaving {
		ms.leaving, ms.applied = true, false
		m.changed = append(m.changed, ms)
	}
}

// find returns the membership of a grant, full or limited, nil without one.
func (m *members) find(g Grant) *membership {
	for _, ms := range m.byGUID[g.GUID] {
		if ms.PKey.Base() == g.PKey.Base() && ms.Place == g.Place {
			return ms
		}
	}
	return nil
}

// add adds a membership that is not there.
func (m *members) add(in membership) *membership {
	ms := &in
	list := m.byGUID[ms.GUID]
	i, _ := slices.BinarySearchFunc(list, ms, func(a, b *membership) int { return compareGrants(a.Grant, b.Grant) })
	m.byGUID[ms.GUID] = slices.Insert(list, i, ms)
	m.name(ms)
	m.total++
	m.changed = append(m.changed, ms)
	return ms
}

func (m *members) name(ms *membership) {
	guids := m.byPlace[ms.Place]
	if i, ok := slices.BinarySearch(guids, ms.GUID); !ok {
		m.byPlace[ms.Place] = slices.Insert(guids, i, ms.GUID)
	}
}

// remove drops a membership that is proven to be gone.
func (m *members) remove(ms *membership) {
	same := func(o *membership) bool { return compareGrants(o.Grant, ms.Grant) == 0 }
	list := slices.DeleteFunc(m.byGUID[ms.GUID], same)
	m.total--
	if len(list) == 0 {
		delete(m.byGUID, ms.GUID)
	} else {
		m.byGUID[ms.GUID] = list
	}
	if slices.ContainsFunc(list, func(o *membership) bool { return o.Place == ms.Place }) {
		return
	}
	guids := m.byPlace[ms.Place]
	if i, ok := slices.BinarySearch(guids, ms.GUID); ok {
		guids = slices.Delete(guids, i, i+1)
	}
	if len(guids) == 0 {
		delete(m.byPlace, ms.Place)
	} else {
		m.byPlace[ms.Place] = guids
	}
}

// setHosts replaces the places where only a host belongs.
func (c *Core) setHosts(places []ib.Place) {
	if slices.Equal(places, c.members.hostList) {
		return
	}
	before := c.members.hosts
	c.members.hostList = slices.Clone(places)
	c.members.hosts = make(map[ib.Place]bool, len(places))
	for _, pl := range places {
		c.members.hosts[pl] = true
	}
	for _, pl := range places {
		if !before[pl] {
			c.expel(pl)
		}
	}
}

// lookAt marks the ports that a membership concerns for work, at once if access is removed.
func (c *Core) lookAt(ms *membership) {
	mark := c.q.Mark
	if ms.leaving {
		mark = c.q.MarkUrgent
	}
	c.faults.Clear(ms.refused())
	if sp := c.topo.SwitchPortAt(ms.Place); sp != topo.None {
		c.expel(ms.Place)
		mark(work.OnPort(work.PKey, sp))
	}
	if h, ok := c.byPort[ms.GUID]; ok {
		if sp := c.topo.Peer(h); sp != topo.None {
			mark(work.OnPort(work.PKey, sp))
		}
		mark(work.OnPort(work.PKey, h))
	}
	c.judge(ms.GUID)
}
