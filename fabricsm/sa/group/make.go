package group

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/registry"
)

// plan returns the group that a request for an unknown group creates.
func (r *Registry) plan(q *request) (*Group, Reason) {
	rec := q.rec
	if !q.mask.Has(mad.MCMemberCreate) {
		return nil, MissingComponents
	}
	g := &Group{
		MGID: rec.MGID,
		Params: Params{
			PKey: rec.PKey, QKey: rec.QKey, SL: rec.SL, TClass: rec.TClass, FlowLabel: rec.FlowLabel,
		},
		members: registry.NewMap[ib.GUID, Member](compareGUIDs),
	}
	if sl, must := r.fabric.GroupSL(); must {
		g.SL = sl
	}
	if q.mask.Has(mad.MCMemberComponentHopLimit) {
		g.HopLimit = rec.HopLimit
	}
	if k, ok := q.port.Holds(rec.PKey); !ok {
		return nil, NotInPartition
	} else if !k.Matches(rec.PKey) {
		return nil, BothLimited
	}
	if k, _ := q.port.Holds(rec.PKey); r.cfg.Trust.Model && !q.asker.Trusted && k == ib.DefaultPKeyLimited && !isIPoIB(rec.MGID) {
		return nil, NotFull // all tenants are limited members here: they would see groups of each other
	}
	for _, check := range []func(*Group, *request) Reason{r.named, r.realize, r.mayMake} {
		if why := check(g, q); why != NoReason {
			return nil, why
		}
	}
	return g, NoReason
}

func compareGUIDs(a, b ib.GUID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// named checks the GID of a new group, or chooses it. The scope in the GID counts: some clients send a different scope
// beside it.
func (r *Registry) named(g *Group, q *request) Reason {
	if g.MGID == (ib.GID{}) {
		s := uint8(scopeLinkLocal)
		if q.mask.Has(mad.MCMemberComponentScope) {
			s = q.rec.Scope
		}
		if s == 0 || s == 0xF {
			return InvalidMGID // reserved scopes
		}
		g.MGID = r.chooseMGID(s)
		return NoReason
	}
	switch {
	case !validMGID(g.MGID):
		return InvalidMGID
	case isIPoIB(g.MGID) && !r.cfg.NoIPoIBValidation:
		return r.asBroadcast(g, q)
	case r.Group(g.MGID) != nil:
		return NotInPartition // a group that the requester may not know
	default:
		return NoReason
	}
}

// asBroadcast checks a new IPoIB group against the broadcast group of its partition
// (RFC 4391, 10). A broadcast group is made by the configuration, not by clients.
func (r *Registry) asBroadcast(g *Group, q *request) Reason {
	if pkeyOf(g.MGID) != g.PKey.Full() {
		return NotAsBroadcast
	}
	b := r.Group(Broadcast(g.PKey, scopeOf(g.MGID)))
	switch {
	case b == nil:
		return NoBroadcast
	case b.QKey != g.QKey || b.PKey.Base() != g.PKey.Base() || b.TClass != g.TClass || b.SL != g.SL || b.FlowLabel != g.FlowLabel,
		q.mask.Has(mad.MCMemberComponentHopLimit) && b.HopLimit != g.HopLimit:
		return NotAsBroadcast
	}
	g.HopLimit = b.HopLimit
	return NoReason
}

// realize sets MTU, rate and lifetime of a new group, within the limits of the creating port.
func (r *Registry) realize(g *Group, q *request) Reason {
	rec, mtu, rate := q.rec, q.port.LinkMTU, q.port.LinkRate.AtMost(r.cfg.MaxRate)
	g.MTU, g.Rate, g.PacketLifeTime = mtu, rate, r.cfg.PacketLifeTime
	if d := r.cfg.DefaultMTU; d != 0 {
		g.MTU = min(g.MTU, d)
	}
	if d := r.cfg.DefaultRate; d != 0 && d.Compare(g.Rate) < 0 {
		g.Rate = d
	}
	ok := true
	if q.mask.Has(mad.MCMemberComponentMTUSelector | mad.MCMemberComponentMTU) {
		g.MTU, ok = chooseMTU(rec.MTUSelector, rec.MTU, mtu)
	}
	if ok && q.mask.Has(mad.MCMemberComponentRateSelector|mad.MCMemberComponentRate) {
		g.Rate, ok = chooseRate(rec.RateSelector, rec.Rate, rate)
	}
	if ok && q.mask.Has(mad.MCMemberComponentPacketLifeTimeSelector|mad.MCMemberComponentPacketLifeTime) {
		g.PacketLifeTime, ok = chooseLifeTime(rec.PacketLifeTimeSelector, rec.PacketLifeTime, r.cfg.PacketLifeTime)
	}
	if b := r.model(g); b != nil {
		return r.imitate(g, b, q)
	}
	if !ok || g.MTU.Bytes() == 0 || g.Rate.Mbps() == 0 {
		return Unrealizable
	}
	return NoReason
}

// model returns the broadcast group that a new IPoIB group must match, or nil if it need not match one.
func (r *Registry) model(g *Group) *Group {
	if !isIPoIB(g.MGID) || r.cfg.NoIPoIBValidation {
		return nil
	}
	return r.Group(Broadcast(g.PKey, scopeOf(g.MGID)))
}

// imitate sets MTU and rate of a new IPoIB group to those of the broadcast group, which every port supports. With
// lower values the group would keep out other ports, which ask for those of the broadcast group (RFC 4391, 4).
func (r *Registry) imitate(g, b *Group, q *request) Reason {
	rec := q.rec
	g.MTU, g.Rate = b.MTU, b.Rate
	switch {
	case q.mask.Has(mad.MCMemberComponentMTUSelector|mad.MCMemberComponentMTU) && !rec.MTUSelector.MTU(rec.MTU, b.MTU),
		q.mask.Has(mad.MCMemberComponentRateSelector|mad.MCMemberComponentRate) && !rec.RateSelector.Rate(rec.Rate, b.Rate):
		return NotAsBroadcast
	default:
		return r.suits(g, q.port)
	}
}

// chooseMTU returns the largest MTU that the request allows and the port supports.
func chooseMTU(s mad.Selector, asked, have ib.MTU) (ib.MTU, bool) {
	// Clients that want any MTU ask for one above 0.
	if asked.Bytes() == 0 && s != mad.SelectBest && (s != mad.SelectGreater || asked != 0) {
		return 0, false
	}
	for m := have; m >= ib.MTU256; m-- {
		if s.MTU(asked, m) {
			return m, true
		}
	}
	return 0, false
}

// chooseRate returns the highest rate that the request allows and the port supports.
func chooseRate(s mad.Selector, asked, have ib.Rate) (best ib.Rate, ok bool) {
	// Clients that want any rate ask for one above a code that is below all.
	if asked.Mbps() == 0 && s != mad.SelectBest && (s != mad.SelectGreater || asked > ib.Rate2_5) {
		return 0, false
	}
	for m := range ib.Rate2400 + 1 {
		if m.Mbps() != 0 && m.Compare(have) <= 0 && s.Rate(asked, m) && m.Compare(best) > 0 {
			best = m
		}
	}
	return best, best != 0
}

// chooseLifeTime returns the lifetime that the request allows and that is nearest to the usual one.
func chooseLifeTime(s mad.Selector, asked, usual ib.ExpTime) (ib.ExpTime, bool) {
	const most = 0x3F
	switch {
	case s == mad.SelectExactly:
		return asked, true
	case s.PacketLifeTime(asked, usual):
		return usual, true
	case s == mad.SelectGreater && asked < most:
		return asked + 1, true
	case s == mad.SelectLess && asked > 0:
		return asked - 1, true
	default:
		return 0, false
	}
}

// mayMake checks that there is room for a new group, and assigns a multicast LID to it.
func (r *Registry) mayMake(g *Group, q *request) Reason {
	if !keepsAlive(q.rec.JoinState) {
		return NotFull
	}
	if r.groups.Len() >= r.cfg.MaxGroups {
		return TooManyGroups
	}
	if !q.asker.Trusted && r.made[g.PKey.Base()] >= r.quota(g.PKey) {
		return PartitionQuota
	}
	asked := ib.LID(0)
	if q.mask.Has(mad.MCMemberComponentMLID) {
		asked = q.rec.MLID
	}
	if g.MLID = r.choose(g, asked, !q.asker.Trusted); g.MLID == 0 {
		return NoMLID
	}
	return NoReason
}

// quota is how many groups a partition may have.
func (r *Registry) quota(k ib.PKey) int {
	if r.cfg.Quota != nil {
		if most := r.cfg.Quota(k.Full()); most > 0 {
			return most
		}
	}
	return max(1, r.cfg.MaxGroups/8)
}
