package path

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// linkLocal is the scope of groups that stay in the subnet.
const linkLocal = 2

// Group has the properties of a path to a multicast group.
type Group struct {
	MLID           ib.LID
	PKey           ib.PKey
	MTU            ib.MTU
	Rate           ib.Rate
	PacketLifeTime ib.ExpTime
	SL             ib.SL
	FlowLabel      uint32
	HopLimit       uint8
	TClass         uint8
}

// Groups knows the multicast groups. It must not allocate.
type Groups interface {
	PathGroup(mgid ib.GID) (g Group, ok bool)
}

// group returns the path to a multicast group. The requester, and the source if the query names one, must be in the
// partition of the group. It returns false if there is none.
func (q *query) group(groups Groups, out *mad.PathRecord) bool {
	var g Group
	known := false
	if groups != nil && q.mask.Has(mad.PathComponentDGID) {
		g, known = groups.PathGroup(q.rec.DGID)
	}
	if !known {
		g.PKey = ib.DefaultPKeyLimited // the same work is done for an unknown group
	}
	from, status := q.side(&q.rec.SGID, q.rec.SLID, q.mask.Has(mad.PathComponentSGID), q.mask.Has(mad.PathComponentSLID), false)
	may := q.trusted
	if !q.trusted && q.me != nil {
		q.steps++
		may = q.me.Matches(g.PKey)
	}
	if !known || !may || status != mad.StatusOK || from.port != nil && !from.port.Matches(g.PKey) || !q.matches(&g) {
		return false
	}
	v := values{way{g.MTU, g.Rate}, g.PacketLifeTime}
	if !q.fit(&v, nil) {
		return false
	}
	*out = mad.PathRecord{
		DGID: q.rec.DGID, DLID: g.MLID, FlowLabel: g.FlowLabel, HopLimit: 255, TClass: g.TClass, Reversible: true, NumbPath: 1,
		PKey: g.PKey, SL: g.SL, MTUSelector: mad.SelectExactly, MTU: v.mtu, RateSelector: mad.SelectExactly, Rate: v.rate,
		PacketLifeTimeSelector: mad.SelectExactly, PacketLifeTime: v.life,
	}
	if scope := q.rec.DGID[1] & 0xF; scope == linkLocal {
		out.HopLimit = g.HopLimit
	}
	if from.port != nil {
		out.SGID, out.SLID = from.gid, from.lid
	}
	return true
}

// matches compares a group with the query.
func (q *query) matches(g *Group) bool {
	is := func(c mad.ComponentMask, same bool) bool { return same || !q.mask.Has(c) }
	return is(mad.PathComponentDLID, q.rec.DLID == g.MLID || q.rec.DLID == 0) &&
		is(mad.PathComponentPKey, q.rec.PKey.Base() == g.PKey.Base()) &&
		is(mad.PathComponentSL, q.rec.SL == g.SL) &&
		is(mad.PathComponentFlowLabel, q.rec.FlowLabel == g.FlowLabel) &&
		is(mad.PathComponentHopLimit, q.rec.HopLimit == g.HopLimit) &&
		is(mad.PathComponentTClass, q.rec.TClass == g.TClass) &&
		is(mad.PathComponentNumbPath, q.rec.NumbPath != 0)
}
