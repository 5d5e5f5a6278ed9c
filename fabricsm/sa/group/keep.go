package group

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

// found makes a group.
func (r *Registry) found(g *Group, a portindex.Asker) {
	if r.mlids.take(g) {
		c := r.change() // a LID that is released in the same request is Gone first, then Made
		c.Made = append(c.Made, g.MLID)
	}
	if !g.Fixed {
		r.made[g.PKey.Base()]++
	}
	r.put(g)
	r.save(factOfGroup(g))
	r.notify(mad.TrapMulticastCreated, g)
	r.tell(Event{Kind: Made, Asker: a, MGID: g.MGID, MLID: g.MLID, PKey: g.PKey})
}

// drop deletes a group with all its members.
func (r *Registry) drop(g *Group, a portindex.Asker, why Reason) {
	for _, m := range g.members.All {
		r.forget(g.MGID, m)
		r.save(factOfMember(g, Member{GUID: m.GUID}))
	}
	if !g.Fixed {
		r.uncount(g.PKey)
	}
	r.groups = r.groups.Without(g.MGID)
	if r.mlids.release(g) {
		c := r.change()
		n := len(c.Made)
		c.Made = slices.DeleteFunc(c.Made, func(l ib.LID) bool { return l == g.MLID })
		if len(c.Made) == n { // the Subnet Manager knows it
			c.Gone = append(c.Gone, g.MLID)
		}
	} else {
		for _, m := range g.members.All {
			r.rejoin(g.MLID, m.Port)
		}
	}
	r.save(sm.Fact{Kind: sm.FactSAGroup, Name: groupName(g.MGID)})
	r.notify(mad.TrapMulticastDeleted, g)
	r.tell(Event{Kind: Deleted, Reason: why, Asker: a, MGID: g.MGID, MLID: g.MLID, PKey: g.PKey})
}

func (r *Registry) uncount(k ib.PKey) {
	if r.made[k.Base()]--; r.made[k.Base()] <= 0 {
		delete(r.made, k.Base())
	}
}

// seat makes a port a member of a group, or changes how it is one.
func (r *Registry) seat(g *Group, m Member, a portindex.Asker) {
	if _, had := g.Member(m.GUID); !had {
		r.remember(g.MGID, m)
	}
	r.put(g.with(m))
	r.save(factOfMember(g, m))
	r.rejoin(g.MLID, m.Port)
	r.tell(Event{Kind: Joined, Asker: a, MGID: g.MGID, MLID: g.MLID, PKey: g.PKey, Port: m.GUID})
}

// unseat removes states of a member, or the member itself if no State is left. A group that no member keeps alive is
// deleted.
func (r *Registry) unseat(g *Group, m Member, a portindex.Asker, why Reason) {
	if m.State == 0 {
		r.forget(g.MGID, m)
	}
	g = g.with(m)
	r.put(g)
	r.save(factOfMember(g, m))
	r.rejoin(g.MLID, m.Port)
	r.tell(Event{Kind: Left, Reason: why, Asker: a, MGID: g.MGID, MLID: g.MLID, PKey: g.PKey, Port: m.GUID})
	if g.full == 0 && !g.Fixed {
		r.drop(g, a, NoReason)
	}
}

// remember counts a membership.
func (r *Registry) remember(mgid ib.GID, m Member) {
	r.ports[m.Port] = append(r.ports[m.Port], seat{mgid, m.GUID})
	r.cfg.Limits.Add(trust.Groups, m.GUID)
}

// forget removes a membership from the counts.
func (r *Registry) forget(mgid ib.GID, m Member) {
	s := slices.DeleteFunc(r.ports[m.Port], func(s seat) bool { return s == seat{mgid, m.GUID} })
	if r.ports[m.Port] = s; len(s) == 0 {
		delete(r.ports, m.Port)
	}
	if !slices.ContainsFunc(s, func(s seat) bool { return s.guid == m.GUID }) {
		delete(r.unseen, m.GUID)
	}
	r.cfg.Limits.Remove(trust.Groups, m.GUID)
}

// rejoin marks the membership of a port in a multicast LID as changed, so that the Subnet Manager gets it.
func (r *Registry) rejoin(lid ib.LID, port ib.GUID) {
	if p := (place{lid, port}); !r.isDirty[p] {
		r.isDirty[p] = true
		r.dirty = append(r.dirty, p)
	}
}

// partIn returns the join state of a port in a multicast LID. It combines the states of all its GUIDs in all groups that
// share the LID.
func (r *Registry) partIn(lid ib.LID, port ib.GUID) (state ib.JoinState) {
	for _, s := range r.ports[port] {
		if g := r.Group(s.mgid); g != nil && g.MLID == lid {
			m, _ := g.Member(s.guid)
			state |= m.State
		}
	}
	return state
}

// save has a fact saved; the last of a name counts.
func (r *Registry) save(f sm.Fact) { r.out.Save = append(r.out.Save, f) }

func (r *Registry) tell(e Event) { r.out.Events = append(r.out.Events, e) }

func (r *Registry) notify(trap mad.TrapNum, g *Group) {
	if r.fabric == nil {
		return
	}
	lid, guid := r.fabric.Issuer()
	r.out.Notices = append(r.out.Notices, registry.AboutGID(trap, g.MGID, lid, ib.MakeGID(r.cfg.Prefix, guid), g.PKey))
}
