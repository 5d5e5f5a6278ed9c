package group

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
)

// Fixed is a group of the configuration. It is there without members, and no client
// makes, changes or ends it.
type Fixed struct {
	MGID ib.GID
	Params
}

// IPoIBQKey is the Q_Key that IPoIB broadcast groups have by default.
const IPoIBQKey = 0x0B1B

// IPoIB returns the default broadcast group of a partition: 2048 bytes, 10 Gb/s, service level 0. Scope 0 means link-local.
func IPoIB(k ib.PKey, scope uint8) Fixed {
	if scope == 0 {
		scope = scopeLinkLocal
	}
	f := Fixed{
		MGID:   Broadcast(k, scope),
		Params: Params{PKey: k.Full(), QKey: IPoIBQKey, MTU: ib.MTU2048, Rate: ib.Rate10, PacketLifeTime: 18},
	}
	if scope != scopeLinkLocal {
		f.HopLimit = 0xFF
	}
	return f
}

// SetFixed replaces the groups of the configuration. A group that is no longer configured stays if a member keeps it alive.
// A group that changes keeps the members that fit. Call it after the first Follow.
func (r *Registry) SetFixed(all []Fixed) (e Effects) {
	if r.fabric == nil {
		return e // the valid parameters are unknown
	}
	defer r.begin(&e)()
	want := make(map[ib.GID]*Fixed, len(all))
	for i := range all {
		f := &all[i]
		if want[f.MGID] == nil && f.MGID.IsMulticast() && f.PKey.Valid() {
			want[f.MGID] = f
			r.fix(f)
		}
	}
	var rest []*Group
	for _, g := range r.groups.All {
		if g.Fixed && want[g.MGID] == nil {
			rest = append(rest, g)
		}
	}
	for _, g := range rest {
		free := *g
		free.Fixed = false
		r.made[free.PKey.Base()]++
		r.put(&free)
		if r.save(factOfGroup(&free)); free.full == 0 {
			r.drop(&free, portindex.Asker{}, NoReason)
		}
	}
	return e
}

// SetTrust changes Config.Trust.
func (r *Registry) SetTrust(o trust.Options) { r.cfg.Trust = o }

// fix creates or changes a group of the configuration.
func (r *Registry) fix(f *Fixed) {
	g, params := r.Group(f.MGID), f.Params
	if sl, must := r.fabric.GroupSL(); must {
		params.SL = sl
	}
	if g == nil {
		g = &Group{MGID: f.MGID, Params: params, Fixed: true, members: registry.NewMap[ib.GUID, Member](compareGUIDs)}
		if g.MLID = r.choose(g, 0, false); g.MLID == 0 {
			r.tell(Event{Kind: Problem, Reason: NoMLID, MGID: f.MGID, PKey: f.PKey})
			return
		}
		r.found(g, portindex.Asker{})
		return
	}
	if g.Fixed && g.Params == params {
		return
	}
	n := *g
	n.Fixed, n.Params = true, params
	if !g.Fixed {
		r.uncount(g.PKey)
	}
	moved := r.relocate(g, &n)
	r.put(&n)
	r.save(factOfGroup(&n))
	for _, m := range g.members.All {
		if port := r.fabric.ByGUID(m.GUID); port != nil {
			if why := r.suits(&n, port); why != NoReason {
				r.leave(n.MGID, m.GUID, why)
				continue
			}
		}
		if moved {
			r.rejoin(n.MLID, m.Port)
		}
	}
}

// relocate assigns another multicast LID to a changed group, if the group cannot keep its LID because other groups share
// it.
func (r *Registry) relocate(g, n *Group) (moved bool) {
	if likeness(&g.Params) == likeness(&n.Params) {
		return false
	}
	if r.mlids.release(g) {
		r.mlids.take(n)
		return false
	}
	for _, m := range g.members.All {
		r.rejoin(g.MLID, m.Port)
	}
	if n.MLID = r.choose(n, 0, false); n.MLID == 0 {
		n.MLID, n.Params = g.MLID, g.Params // no room: it stays as it was
		r.mlids.take(n)
		r.tell(Event{Kind: Problem, Reason: NoMLID, MGID: n.MGID, PKey: n.PKey})
		return false
	}
	if r.mlids.take(n) {
		r.change().Made = append(r.change().Made, n.MLID)
	}
	r.notify(mad.TrapMulticastDeleted, g) // members have to ask for the new one
	r.notify(mad.TrapMulticastCreated, n)
	return true
}
