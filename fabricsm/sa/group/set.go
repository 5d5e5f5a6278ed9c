package group

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
)

// request is a Set or Delete under way.
type request struct {
	asker portindex.Asker
	rec   *mad.MCMemberRecord
	mask  mad.ComponentMask

	from *portindex.EndPort // of the requester
	port *portindex.EndPort // of the PortGID, nil: unknown
	guid ib.GUID            // of the PortGID

	verdict trust.Verdict // not trust.OK: it is dropped
}

// Set joins a group, and makes it if it is not there.
func (r *Registry) Set(a portindex.Asker, rec *mad.MCMemberRecord, mask mad.ComponentMask) (ans Answer) {
	defer r.begin(&ans.Effects)()
	q := request{asker: a, rec: rec, mask: mask}
	if why := r.admit(&q); why != NoReason || q.verdict != trust.OK {
		return r.refuse(&ans, &q, why)
	}
	if mask.Has(mad.MCMemberComponentPKey) && !rec.PKey.Valid() {
		return r.refuse(&ans, &q, InvalidPKey)
	}
	var why Reason
	g := r.known(&q)
	if g == nil {
		g, why = r.plan(&q)
	} else {
		why = r.mayJoin(g, &q)
	}
	if why != NoReason {
		return r.refuse(&ans, &q, why)
	}
	m, had := g.Member(q.guid)
	was, own := m, registry.IsOwn(&a, q.port, q.guid)
	if !had {
		q.verdict = r.cfg.Limits.Room(&r.cfg.Trust, trust.Groups, q.guid, a.Trusted)
	}
	switch {
	case had && r.notYours(m, &q):
		return r.refuse(&ans, &q, NotYours)
	case had && m.Proxy && own:
		m.Proxy, m.By = false, q.from.GUID // it took over the membership that was made for it
	case had:
	case q.verdict != trust.OK:
		return r.refuse(&ans, &q, NoReason)
	default:
		m = Member{GUID: q.guid, Port: q.port.GUID, Proxy: !own, By: q.from.GUID}
	}
	if r.Group(g.MGID) == nil {
		r.found(g, a)
	}
	if m.State |= rec.JoinState; m != was {
		r.seat(g, m, a)
	}
	ans.Record = r.record(g, &m)
	ans.Record.PortGID = rec.PortGID
	return ans
}

// Delete leaves a group, or clears some of the join states.
func (r *Registry) Delete(a portindex.Asker, rec *mad.MCMemberRecord, mask mad.ComponentMask) (ans Answer) {
	defer r.begin(&ans.Effects)()
	q := request{asker: a, rec: rec, mask: mask}
	if why := r.admit(&q); why != NoReason || q.verdict != trust.OK {
		return r.refuse(&ans, &q, why)
	}
	g := r.known(&q)
	if g == nil {
		return r.refuse(&ans, &q, NotMember)
	}
	m, ok := g.Member(q.guid)
	switch {
	case !ok || m.State&rec.JoinState != rec.JoinState:
		return r.refuse(&ans, &q, NotMember)
	case r.notYours(m, &q):
		return r.refuse(&ans, &q, NotYours)
	}
	m.State &^= rec.JoinState
	ans.Record = r.record(g, &m)
	ans.Record.PortGID = rec.PortGID
	r.unseat(g, m, a, NoReason)
	return ans
}

// admit makes the checks that joins and leaves share.
func (r *Registry) admit(q *request) Reason {
	if r.fabric != nil {
		q.from = r.fabric.EndPort(q.asker.Port)
	}
	if q.from == nil {
		q.verdict = trust.UnknownSource
		return NoReason
	}
	if !q.mask.Has(mad.MCMemberJoin) {
		return MissingComponents
	}
	if p := q.rec.PortGID.Prefix(); p != r.cfg.Prefix && p != ib.DefaultPrefix {
		return ForeignPrefix
	}
	q.guid = q.rec.PortGID.GUID()
	q.port = r.fabric.ByGUID(q.guid)
	// A requester that may not act for others does not learn which ports exist.
	if q.verdict = r.actsFor(q); q.verdict != trust.OK {
		return NoReason
	}
	switch {
	case q.port == nil:
		return UnknownPort
	case q.rec.JoinState&^0xF != 0 || q.rec.JoinState == 0:
		return NoJoinState
	}
	if q.port != q.from {
		if _, ok := portindex.Common(q.from, q.port); !ok {
			return NoPartition
		}
	}
	return NoReason
}

func (r *Registry) actsFor(q *request) trust.Verdict {
	switch {
	case r.cfg.Guard != nil:
		return r.cfg.Guard.ActsFor(&q.asker, q.port, q.guid)
	case q.asker.Trusted || registry.IsOwn(&q.asker, q.port, q.guid):
		return trust.OK
	default:
		return trust.Proxy
	}
}

// known returns the group that a request names, or nil if there is none that the requester may know.
func (r *Registry) known(q *request) *Group {
	g := r.Group(q.rec.MGID)
	if q.asker.Trusted {
		return g
	}
	of := g
	if g == nil {
		of = nobodys
	}
	if !r.cfg.Policy.Knows(q.from, of.PKey) {
		return nil
	}
	return g
}

// mayJoin checks the parameters and the port of a request for an existing group.
func (r *Registry) mayJoin(g *Group, q *request) Reason {
	if !r.agrees(g, q) {
		return ParamsDiffer
	}
	return r.suits(g, q.port)
}

// agrees reports whether the parameters of a request match the group.
func (r *Registry) agrees(g *Group, q *request) bool {
	rec, has := q.rec, q.mask.Has
	_, must := r.fabric.GroupSL() // then a group may have another SL than the request
	switch {
	case has(mad.MCMemberComponentPKey) && rec.PKey.Base() != g.PKey.Base(),
		has(mad.MCMemberComponentPKey) && !rec.PKey.IsFull() && !g.PKey.IsFull(),
		has(mad.MCMemberComponentMTUSelector|mad.MCMemberComponentMTU) && !rec.MTUSelector.MTU(rec.MTU, g.MTU),
		has(mad.MCMemberComponentRateSelector|mad.MCMemberComponentRate) && !rec.RateSelector.Rate(rec.Rate, g.Rate),
		has(mad.MCMemberComponentPacketLifeTimeSelector|mad.MCMemberComponentPacketLifeTime) && !rec.PacketLifeTimeSelector.PacketLifeTime(rec.PacketLifeTime, g.PacketLifeTime):
		return false
	case r.cfg.NoJoinValidation:
		return true
	default:
		return !(has(mad.MCMemberComponentQKey) && rec.QKey != g.QKey ||
			has(mad.MCMemberComponentTClass) && rec.TClass != g.TClass ||
			has(mad.MCMemberComponentSL) && rec.SL != g.SL && !must ||
			has(mad.MCMemberComponentFlowLabel) && rec.FlowLabel != g.FlowLabel ||
			has(mad.MCMemberComponentHopLimit) && rec.HopLimit != g.HopLimit)
	}
}

// suits returns the reason why a port cannot be in a group.
func (r *Registry) suits(g *Group, e *portindex.EndPort) Reason {
	if why := r.cfg.Policy.Partition(g, e); why != NoReason {
		return why
	}
	return r.cfg.Policy.Link(g, e)
}

// notYours reports whether a requester may not change a membership.
func (r *Registry) notYours(m Member, q *request) bool {
	own := q.asker.Trusted || registry.IsOwn(&q.asker, q.port, m.GUID)
	return !r.cfg.Policy.Changes(m, own, q.from.GUID)
}

// refuse answers no, or nothing.
func (r *Registry) refuse(ans *Answer, q *request, why Reason) Answer {
	no := Answer{Verdict: q.verdict, Status: why.status()}
	if q.verdict == trust.OK {
		no.Events = append(ans.Events, Event{Kind: Refused, Reason: why, Asker: q.asker, MGID: q.rec.MGID, PKey: q.rec.PKey, Port: q.guid})
	}
	return no
}
