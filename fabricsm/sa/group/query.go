package group

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
)

// record returns the record of a group, or with m that of a member.
func (r *Registry) record(g *Group, m *Member) mad.MCMemberRecord {
	return recordOf(g, m, r.cfg.Prefix)
}

func recordOf(g *Group, m *Member, p ib.Prefix) mad.MCMemberRecord {
	rec := mad.MCMemberRecord{
		MGID: g.MGID, QKey: g.QKey, MLID: g.MLID, MTUSelector: mad.SelectExactly, MTU: g.MTU, TClass: g.TClass, PKey: g.PKey,
		RateSelector: mad.SelectExactly, Rate: g.Rate, PacketLifeTimeSelector: mad.SelectExactly, PacketLifeTime: g.PacketLifeTime,
		SL: g.SL, FlowLabel: g.FlowLabel, HopLimit: g.HopLimit, Scope: scopeOf(g.MGID),
	}
	if m != nil {
		rec.PortGID, rec.JoinState, rec.ProxyJoin = ib.MakeGID(p, m.GUID), m.State, m.Proxy
	}
	return rec
}

// Query is a Get or GetTable of MCMemberRecord. It returns a record for each group whose P_Key the requester has, without
// its members. For a trusted requester it returns one for each member of any group.
type Query struct {
	registry.Walk
	in      Snapshot
	pkeys   []ib.PKey
	own     ib.GUID // GUID of the requester
	trusted bool
	prefix  ib.Prefix
	rec     mad.MCMemberRecord
	mask    mad.ComponentMask

	group *Group  // of the last record
	port  ib.GUID // likewise, of a member
	inner bool    // group has more members
}

// Query returns the records that the requester at an end port may see. An untrusted requester can name only its own
// PortGID.
func (s Snapshot) Query(a portindex.Asker, from *portindex.EndPort, prefix ib.Prefix, rec *mad.MCMemberRecord, mask mad.ComponentMask) Query {
	q := Query{in: s, pkeys: from.PKeys, own: a.As, trusted: a.Trusted, prefix: prefix, rec: *rec, mask: mask}
	if mask.Has(mad.MCMemberComponentPortGID) {
		p := rec.PortGID.Prefix()
		q.Done = p != prefix && p != ib.DefaultPrefix || !a.Trusted && rec.PortGID.GUID() != a.As
	}
	return q
}

var _ registry.Cursor = (*Query)(nil)

// Step implements registry.Cursor. A record has mad.RecordSize bytes.
func (q *Query) Step(dst []byte, most int) (n int, done bool) {
	return q.Take(dst, mad.RecordSize(mad.AttrMCMemberRecord), most, q.write)
}

// write moves on by one group or member, and writes its record if it matches the query.
func (q *Query) write(dst []byte) bool {
	rec, ok := q.look()
	if !ok || !q.matches(&rec) {
		return false
	}
	clear(dst)
	return mad.Encode(dst, &rec) == nil // a group that does not fit a record is not shown
}

// look moves to the next member or group, and returns its record if the requester may see it.
func (q *Query) look() (rec mad.MCMemberRecord, ok bool) {
	if q.inner {
		m, more := q.member()
		if q.inner = more; more {
			return recordOf(q.group, &m, q.prefix), true
		}
		return rec, false
	}
	switch q.group = q.nextGroup(); {
	case q.group == nil:
		q.Done = true
		return rec, false
	case q.trusted:
		q.inner, q.port = true, 0
		return rec, false
	case !q.visible(q.group):
		return rec, false
	}
	if q.mask.Has(mad.MCMemberComponentPortGID) {
		if _, in := q.group.Member(q.own); !in {
			return rec, false
		}
	}
	return recordOf(q.group, nil, q.prefix), true
}

// nobodys stands for a group that does not exist; no port has its P_Key. The same work is done for it, so the response time
// does not show whether a group exists.
var nobodys = &Group{}

// nextGroup returns the group after the last one, or the only one if the request names an MGID.
func (q *Query) nextGroup() (g *Group) {
	switch {
	case q.mask.Has(mad.MCMemberComponentMGID) && q.group != nil:
	case q.mask.Has(mad.MCMemberComponentMGID):
		if g = q.in.Group(q.rec.MGID); g == nil && !q.trusted {
			g = nobodys
		}
	case q.group == nil:
		_, g, _ = q.in.groups.First()
	default:
		_, g, _ = q.in.groups.After(q.group.MGID)
	}
	return g
}

// member returns the member after the last one, or the only one if the request names a PortGID.
func (q *Query) member() (Member, bool) {
	if q.mask.Has(mad.MCMemberComponentPortGID) {
		m, ok := q.group.Member(q.rec.PortGID.GUID())
		ok = ok && q.port == 0
		q.port = m.GUID
		return m, ok
	}
	_, m, ok := q.group.members.After(q.port) // no member has GUID 0
	q.port = m.GUID
	return m, ok
}

func (q *Query) visible(g *Group) bool {
	for _, k := range q.pkeys {
		if k.Base() == g.PKey.Base() {
			return true
		}
	}
	return false
}

// matches compares a record with the query. If the members of a group are not shown, their components do not match either.
func (q *Query) matches(rec *mad.MCMemberRecord) bool {
	want, has := &q.rec, q.mask.Has
	return !(has(mad.MCMemberComponentQKey) && rec.QKey != want.QKey ||
		has(mad.MCMemberComponentMLID) && rec.MLID != want.MLID ||
		has(mad.MCMemberComponentMTUSelector|mad.MCMemberComponentMTU) && !want.MTUSelector.MTU(want.MTU, rec.MTU) ||
		has(mad.MCMemberComponentTClass) && rec.TClass != want.TClass ||
		has(mad.MCMemberComponentPKey) && rec.PKey != want.PKey ||
		has(mad.MCMemberComponentRateSelector|mad.MCMemberComponentRate) && !want.RateSelector.Rate(want.Rate, rec.Rate) ||
		has(mad.MCMemberComponentPacketLifeTimeSelector|mad.MCMemberComponentPacketLifeTime) && !want.PacketLifeTimeSelector.PacketLifeTime(want.PacketLifeTime, rec.PacketLifeTime) ||
		has(mad.MCMemberComponentSL) && rec.SL != want.SL ||
		has(mad.MCMemberComponentFlowLabel) && rec.FlowLabel != want.FlowLabel ||
		has(mad.MCMemberComponentHopLimit) && rec.HopLimit != want.HopLimit ||
		has(mad.MCMemberComponentScope) && rec.Scope != want.Scope ||
		has(mad.MCMemberComponentJoinState) && rec.JoinState != want.JoinState ||
		has(mad.MCMemberComponentProxyJoin) && rec.ProxyJoin != want.ProxyJoin)
}
