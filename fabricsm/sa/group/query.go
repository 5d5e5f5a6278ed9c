package group

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/book"
	"portcullis/fabricsm/sa/registry"
)

// record gives the record of a group, or with m that of a member.
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

// Query is a Get or GetTable of MCMemberRecord: a record for each group, without its
// members, or for who is trusted one for each member. It is a registry.Cursor.
type Query struct {
	in      Snapshot
	pkeys   []ib.PKey
	own     ib.GUID // GUID of the asker
	trusted bool
	prefix  ib.Prefix
	rec     mad.MCMemberRecord
	mask    mad.ComponentMask

	group *Group  // of the last record
	port  ib.GUID // likewise, of a member
	inner bool    // group has more members
	done  bool
}

// Query finds what an asker at an end port may see of groups whose P_Key it has. Who is
// not trusted can name no PortGID but its own.
func (s Snapshot) Query(a book.Asker, from *book.EndPort, prefix ib.Prefix, rec *mad.MCMemberRecord, mask mad.ComponentMask) Query {
	q := Query{in: s, pkeys: from.PKeys, own: a.As, trusted: a.Trusted, prefix: prefix, rec: *rec, mask: mask}
	if mask.Has(mad.MCMemberComponentPortGID) {
		p := rec.PortGID.Prefix()
		q.done = p != prefix && p != ib.DefaultPrefix || !a.Trusted && rec.PortGID.GUID() != a.As
	}
	return q
}

var _ registry.Cursor = (*Query)(nil)

// Next implements registry.Cursor.
func (q *Query) Next(dst []byte) (int, bool) {
	for !q.done {
		rec, ok := q.next()
		if !ok {
			q.done = true
			return 0, false
		}
		if !q.matches(&rec) {
			continue
		}
		if err := mad.Encode(dst, &rec); err != nil {
			q.done = true // dst is too short
			return 0, false
		}
		return mad.LayoutOf[mad.MCMemberRecord]().Size(), true
	}
	return 0, false
}

// next gives the next record that may be seen at all, whether it was asked for or not.
func (q *Query) next() (rec mad.MCMemberRecord, ok bool) {
	for {
		if q.inner {
			if m, more := q.member(); more {
				return recordOf(q.group, &m, q.prefix), true
			}
			q.inner = false
		}
		if q.group = q.nextGroup(); q.group == nil {
			return rec, false
		}
		switch {
		case !q.visible(q.group):
		case q.trusted:
			q.inner, q.port = true, 0
		case q.mask.Has(mad.MCMemberComponentPortGID):
			if _, in := q.group.Member(q.own); in {
				return recordOf(q.group, nil, q.prefix), true
			}
		default:
			return recordOf(q.group, nil, q.prefix), true
		}
	}
}

// nextGroup gives the group after the last, the only one if an MGID is given.
func (q *Query) nextGroup() (g *Group) {
	switch {
	case q.mask.Has(mad.MCMemberComponentMGID) && q.group != nil:
	case q.mask.Has(mad.MCMemberComponentMGID):
		g = q.in.Group(q.rec.MGID)
	case q.group == nil:
		_, g, _ = q.in.groups.First()
	default:
		_, g, _ = q.in.groups.After(q.group.MGID)
	}
	return g
}

// member gives the member after the last, the only one if a PortGID is given.
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

// matches compares a record with what is asked for. Of groups whose members are not
// shown neither are members' components.
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
