package path

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
)

// query is a query for paths, with its requester. It lives for one answer.
type query struct {
	e       *Engine
	b       *portindex.Book
	me      *portindex.EndPort // port of the requester; nil: unknown
	trusted bool
	mask    mad.ComponentMask
	rec     mad.PathRecord
	steps   int // looks at P_Keys for the rights of the requester, and links that were followed
}

// begin sets the requester.
func (q *query) begin(e *Engine, b *portindex.Book, a *portindex.Asker) {
	q.e, q.b, q.me, q.trusted = e, b, b.EndPort(a.Port), a.Trusted
}

// Components that have a meaning only together.
const serviceID = mad.PathComponentServiceID8MSB | mad.PathComponentServiceID56LSB

// valid judges the single values of a query.
func (q *query) valid() mad.Status {
	switch half := q.mask & serviceID; {
	case q.mask.Has(mad.PathComponentMTUSelector|mad.PathComponentMTU) && (q.rec.MTU < ib.MTU256 || q.rec.MTU > ib.MTU4096):
		return mad.StatusInvalidRequest
	case q.mask.Has(mad.PathComponentRateSelector|mad.PathComponentRate) && q.rec.Rate.Mbps() == 0:
		return mad.StatusInvalidRequest
	case q.toGroup() && q.mask.Has(mad.PathComponentDGID|mad.PathComponentDLID) && q.rec.DLID != 0 && !q.rec.DLID.IsMulticast():
		return mad.StatusInvalidRequest
	case half != 0 && half != serviceID:
		return mad.StatusInsufficientComponents
	}
	return mad.StatusOK
}

// toGroup reports whether a query is for the path to a multicast group.
func (q *query) toGroup() bool {
	return q.mask.Has(mad.PathComponentDGID) && q.rec.DGID.IsMulticast() || q.mask.Has(mad.PathComponentDLID) && q.rec.DLID.IsMulticast()
}

// sees returns an end port if the requester may know of it. e is nil if there is none; then the same work is done for
// decoy.
func (q *query) sees(e, decoy *portindex.EndPort) *portindex.EndPort {
	if q.trusted {
		return e
	}
	who := e
	if e == nil {
		who = decoy
	}
	if q.me == nil || who == nil {
		return nil
	}
	sees, keys := portindex.Looks(q.me, who, e == nil)
	if sees && e != nil {
		return e
	}
	q.steps += keys
	return nil
}

func (q *query) byGUID(g ib.GUID) *portindex.EndPort {
	if q.trusted {
		return q.b.ByGUID(g)
	}
	return q.sees(q.b.ByGUID(g), q.b.Decoy(g))
}

func (q *query) byLID(lid ib.LID) *portindex.EndPort {
	if q.trusted {
		return q.b.ByLID(lid)
	}
	return q.sees(q.b.ByLID(lid), q.b.Decoy(ib.GUID(lid)))
}

// end is an end port as one side of paths.
type end struct {
	port    *portindex.EndPort
	gid     ib.GID
	lid     ib.LID // the first
	lids    int    // how many
	foreign bool   // gid is of another subnet, and port is a router
}

// endOf returns a side with all LIDs of an end port, under one of its GUIDs.
func (q *query) endOf(e *portindex.EndPort, g ib.GUID) end {
	return end{port: e, gid: ib.MakeGID(q.e.cfg.Prefix, g), lid: e.LID, lids: 1 << e.LMC}
}

// side finds one side of paths by GID, LID or both. Without either port is nil and the
// status OK.
func (q *query) side(gid *ib.GID, lid ib.LID, hasGID, hasLID, dest bool) (s end, status mad.Status) {
	if hasGID {
		if s, status = q.named(gid, dest); status != mad.StatusOK {
			return end{}, status
		}
	}
	if !hasLID {
		return s, mad.StatusOK
	}
	at := q.byLID(lid)
	switch {
	case at == nil:
		return end{}, mad.StatusNoRecords
	case s.port == nil:
		s = q.endOf(at, at.GUID)
	case s.port != at:
		return end{}, mad.StatusInvalidRequest
	}
	s.lid, s.lids = lid, 1
	return s, mad.StatusOK
}

// named finds one side of paths by GID.
func (q *query) named(gid *ib.GID, dest bool) (end, mad.Status) {
	prefix := gid.Prefix()
	if prefix != q.e.cfg.Prefix && prefix != ib.DefaultPrefix {
		if !dest {
			return end{}, mad.StatusInvalidGID
		}
		return q.router(gid)
	}
	g := gid.GUID()
	e := q.byGUID(g)
	if e == nil {
		return end{}, mad.StatusNoRecords
	}
	return q.endOf(e, g), mad.StatusOK
}

// router finds the router to the subnet of a GID.
func (q *query) router(gid *ib.GID) (end, mad.Status) {
	prefix := gid.Prefix()
	for _, r := range q.e.cfg.Routes {
		if r.Prefix != 0 && r.Prefix != prefix {
			continue
		}
		var e *portindex.EndPort
		if r.Router != 0 {
			e = q.b.ByGUID(r.Router)
		} else if all := q.b.Routers(); len(all) > 0 {
			e = all[0]
		}
		if e == nil || e.Type != ib.NodeRouter || q.sees(e, nil) == nil {
			return end{}, mad.StatusNoRecords
		}
		s := q.endOf(e, e.GUID)
		s.gid, s.foreign = *gid, true
		return s, mad.StatusOK
	}
	return end{}, mad.StatusInvalidGID
}

// sides finds both sides of paths, of which each may be left open.
func (q *query) sides() (src, dst end, status mad.Status) {
	src, status = q.side(&q.rec.SGID, q.rec.SLID, q.mask.Has(mad.PathComponentSGID), q.mask.Has(mad.PathComponentSLID), false)
	if status != mad.StatusOK {
		return src, dst, status
	}
	dst, status = q.side(&q.rec.DGID, q.rec.DLID, q.mask.Has(mad.PathComponentDGID), q.mask.Has(mad.PathComponentDLID), true)
	return src, dst, status
}

// path finds the path between two LIDs, and writes the fields that differ from the query to out. It returns false if there
// is none that matches the query.
func (q *query) path(s, d *end, slid, dlid ib.LID, out *mad.PathRecord) bool {
	x, y := s.port, d.port
	var level *qos.Level
	if q.e.cfg.Policy != nil {
		level = q.level(x, y)
	}
	key, ok := q.pkey(x, y, level)
	if !ok {
		return false
	}
	sl, ok := q.sl(x, y, slid, dlid, key, level)
	if !ok {
		return false
	}
	there, back, ok := q.ways(x, y, slid, dlid)
	if !ok {
		return false
	}
	reversible := back.mtu != 0
	must := q.mask.Has(mad.PathComponentReversible) && q.rec.Reversible
	if must && !reversible {
		return false
	}
	life := q.e.cfg.PacketLifeTime
	if x == y {
		life = 0
	}
	v := values{there, life}
	if reversible {
		v.way = there.and(back)
	}
	if !q.fit(&v, level) {
		if !reversible || must {
			return false
		}
		reversible, v = false, values{there, life}
		if !q.fit(&v, level) {
			return false
		}
	}
	raw := q.mask.Has(mad.PathComponentRawTraffic) && q.rec.RawTraffic
	*out = mad.PathRecord{
		DGID: d.gid, SGID: s.gid, DLID: dlid, SLID: slid, RawTraffic: raw, Reversible: reversible, PKey: key, SL: sl,
		MTUSelector: mad.SelectExactly, MTU: v.mtu, RateSelector: mad.SelectExactly, Rate: v.rate,
		PacketLifeTimeSelector: mad.SelectExactly, PacketLifeTime: v.life,
	}
	if raw {
		out.PKey = 0 // raw packets carry none
	}
	if d.foreign {
		out.HopLimit = 255
	}
	return true
}

// level returns the level of service of paths between two end ports.
func (q *query) level(x, y *portindex.EndPort) *qos.Level {
	ask := qos.Query{
		From: x.Groups, To: y.Groups,
		Class: q.rec.QoSClass, HasClass: q.mask.Has(mad.PathComponentQoSClass),
		Service: uint64(q.rec.ServiceID), HasService: q.mask.Has(serviceID),
		PKey: q.rec.PKey, HasPKey: q.mask.Has(mad.PathComponentPKey),
	}
	return q.e.cfg.Policy.Level(&ask)
}

// pkey returns the P_Key of a path as the source has it: the requested one, or the first with which both ports can
// communicate.
func (q *query) pkey(x, y *portindex.EndPort, level *qos.Level) (ib.PKey, bool) {
	raw := q.mask.Has(mad.PathComponentRawTraffic) && q.rec.RawTraffic
	if !raw && q.mask.Has(mad.PathComponentPKey) {
		k, ok := x.Holds(q.rec.PKey)
		return k, ok && k.Valid() && y.Matches(k) && (level == nil || level.Allows(k))
	}
	if level == nil || raw {
		return portindex.Common(x, y)
	}
	for _, k := range x.PKeys {
		if y.Matches(k) && level.Allows(k) {
			return k, true
		}
	}
	return 0, false
}

// sl returns the service level of a path.
func (q *query) sl(x, y *portindex.EndPort, slid, dlid ib.LID, key ib.PKey, level *qos.Level) (ib.SL, bool) {
	var sl ib.SL
	asked := q.mask.Has(mad.PathComponentSL)
	switch {
	case asked:
		if sl = q.rec.SL; level != nil && level.HasSL && level.SL != sl {
			return 0, false
		}
	case level != nil && level.HasSL:
		sl = level.SL
	case q.e.cfg.Partitions != nil:
		sl = q.e.cfg.Partitions[key.Base()]
	}
	must, all := q.b.Routes.SL(slid, dlid)
	switch {
	case all:
		return sl, !q.drops(x, y, sl)
	case asked && sl != must:
		return 0, false
	default:
		return must, true
	}
}

// drops reports whether packets of a service level are dropped between two end ports.
func (q *query) drops(x, y *portindex.EndPort, sl ib.SL) bool {
	if !q.e.cfg.QoS.Enabled || x == y {
		return false
	}
	var kind qos.Kind
	switch {
	case x.Type == ib.NodeRouter:
		kind = qos.Router
	case x.Type != ib.NodeSwitch:
		kind = qos.CA
	case q.b.View.Fabric.Node(x.Node).EnhancedPort0:
		kind = qos.SwitchPort0
	default:
		kind = qos.SwitchExternal // port 0 has no lanes of its own
	}
	return q.e.drops[kind][sl] || x.Home != topo.None && q.e.drops[qos.SwitchExternal][sl]
}

// values are the values that selectors choose.
type values struct {
	way
	life ib.ExpTime
}

// fit lowers values to the limits of a level and of the query. It returns false if they cannot match the query.
func (q *query) fit(v *values, level *qos.Level) bool {
	if level != nil {
		if level.MTULimit != 0 {
			v.mtu = min(v.mtu, level.MTULimit)
		}
		if level.RateLimit != 0 && level.RateLimit.Compare(v.rate) < 0 {
			v.rate = level.RateLimit
		}
		if level.HasLife && v.life != 0 {
			v.life = ib.ExpTime(level.PacketLife)
		}
	}
	v.rate = q.e.atMost[v.rate&63]
	return v.rate != 0 && q.fitMTU(v) && q.fitRate(v) && q.fitLife(v)
}

func (q *query) fitMTU(v *values) bool {
	if !q.mask.Has(mad.PathComponentMTUSelector | mad.PathComponentMTU) {
		return true
	}
	asked := q.rec.MTU
	switch q.rec.MTUSelector {
	case mad.SelectGreater:
		return v.mtu > asked
	case mad.SelectLess:
		v.mtu = min(v.mtu, asked-1)
		return v.mtu >= ib.MTU256
	case mad.SelectExactly:
		ok := v.mtu >= asked
		v.mtu = asked
		return ok
	default:
		return true
	}
}

func (q *query) fitRate(v *values) bool {
	if !q.mask.Has(mad.PathComponentRateSelector | mad.PathComponentRate) {
		return true
	}
	asked := q.rec.Rate
	order := v.rate.Compare(asked)
	switch q.rec.RateSelector {
	case mad.SelectGreater:
		return order > 0
	case mad.SelectLess:
		if order >= 0 {
			v.rate = q.e.atMost[q.e.below[asked&63]&63]
		}
		return v.rate != 0
	case mad.SelectExactly:
		return order == 0
	default:
		return true
	}
}

func (q *query) fitLife(v *values) bool {
	if !q.mask.Has(mad.PathComponentPacketLifeTimeSelector | mad.PathComponentPacketLifeTime) {
		return true
	}
	asked := q.rec.PacketLifeTime
	switch q.rec.PacketLifeTimeSelector {
	case mad.SelectGreater:
		return v.life > asked
	case mad.SelectLess:
		if v.life >= asked {
			if asked <= 1 {
				return false
			}
			v.life = asked - 1
		}
		return true
	case mad.SelectExactly:
		ok := v.life >= asked
		v.life = asked
		return ok
	default:
		return true
	}
}
