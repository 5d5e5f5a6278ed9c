package group

import (
	"cmp"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/topo"
)

// Follow updates the view of the fabric. Members leave if their port is gone, or if it may no longer be a member.
func (r *Registry) Follow(f registry.Fabric) (e Effects) {
	defer r.begin(&e)()
	was := r.fabric
	r.fabric = f
	for port := range f.Changed(was) {
		if len(r.ports) == 0 {
			break
		}
		r.review(port)
	}
	if f.Settled() {
		for _, guid := range slices.Sorted(maps.Keys(r.unseen)) {
			port := r.unseen[guid]
			r.settle(port, guid)
		}
		clear(r.unseen)
	}
	if top := f.Ceiling(); top != r.top {
		r.top = top
		r.checkCeiling()
	}
	return e
}

// review looks at the memberships of a port that came, went or changed.
func (r *Registry) review(port ib.GUID) {
	for _, s := range slices.Clone(r.ports[port]) {
		e := r.fabric.ByGUID(s.guid)
		switch {
		case e == nil && s.guid != port && r.fabric.ByGUID(port) != nil:
			r.unseen[s.guid] = port // its alias GUIDs may be being read
		case e == nil && r.unseen[s.guid] != 0:
		case e == nil:
			r.leave(s.mgid, s.guid, PortGone)
		case e.GUID != port:
			r.leave(s.mgid, s.guid, PortGone) // the alias GUID is another port's now
		default:
			delete(r.unseen, s.guid)
			r.recheck(s, e)
		}
	}
}

// recheck ends a membership that is no longer allowed. If the P_Key is only not seen because tables are being read, the
// membership waits until the fabric is known.
func (r *Registry) recheck(s seat, e *portindex.EndPort) {
	g := r.Group(s.mgid)
	switch why := r.suits(g, e); {
	case why == NoReason, (why == SmallMTU || why == TooSlow) && e.Home == topo.None:
	case why == NotInPartition && !r.fabric.Settled() && !r.fabric.Lacks(e, g.PKey):
		r.unseen[s.guid] = e.GUID
	default:
		r.leave(s.mgid, s.guid, why)
	}
}

// leave ends a membership.
func (r *Registry) leave(mgid ib.GID, guid ib.GUID, why Reason) {
	g := r.Group(mgid)
	m, _ := g.Member(guid)
	m.State = 0
	r.unseat(g, m, portindex.Asker{}, why)
}

// settle judges the memberships of a GUID that were kept until the fabric is known.
func (r *Registry) settle(port, guid ib.GUID) {
	e := r.fabric.ByGUID(guid)
	for _, s := range slices.Clone(r.ports[port]) {
		switch {
		case s.guid != guid:
		case e == nil || e.GUID != port:
			r.leave(s.mgid, guid, PortGone)
		default:
			r.recheck(s, e)
		}
	}
}

// checkCeiling reports groups whose multicast LID is too high for the smallest switch.
func (r *Registry) checkCeiling() {
	for _, lid := range slices.Sorted(maps.Keys(r.mlids.used)) {
		if lid >= r.top {
			r.tell(Event{Kind: Problem, Reason: CeilingTooLow, MLID: lid})
		}
	}
}

// Input is all groups for the Subnet Manager, after a start.
func (r *Registry) Input() *sm.GroupsSet {
	in := &sm.GroupsSet{MLIDs: slices.Sorted(maps.Keys(r.mlids.used))}
	for port := range r.ports {
		lids := make(map[ib.LID]bool)
		for _, s := range r.ports[port] {
			if lid := r.Group(s.mgid).MLID; !lids[lid] {
				lids[lid] = true
				in.Joins = append(in.Joins, multicast.Join{MLID: lid, GUID: port, State: r.partIn(lid, port)})
			}
		}
	}
	slices.SortFunc(in.Joins, func(a, b multicast.Join) int {
		return cmp.Or(cmp.Compare(a.MLID, b.MLID), cmp.Compare(a.GUID, b.GUID))
	})
	return in
}
