package path

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
)

// multi visits the pairs of ends of a MultiPathRecord.
type multi struct {
	src, dst    []end
	independent bool
	second      bool // independent: the first path of each pair was given
	first       bool // the path at hand is the first of its pair
	k           int  // pairs that were visited
}

// GetMulti answers a GetMulti. With StatusOK the cursor returns PathRecords between all sources and destinations, at most
// NumbPath of them. data is the query of all segments: the record and the GIDs after it.
//
// IndependenceSelector 1 sets the order: first paths between different ports, one for each pair, those without a common
// port before others. Then the further paths follow that LMC provides. The routes through switches are not checked for
// common parts.
//
// The status is as for Get. It is StatusInsufficientComponents without the counts of GIDs, and StatusInvalidRequest if they
// are 0 or data ends before the GIDs do. A GID that no port has, or that the requester may not know, has no paths. For a
// trusted requester a GID that no port has is StatusInvalidGID.
func (e *Engine) GetMulti(b *portindex.Book, a *portindex.Asker, mask mad.ComponentMask, data []byte) (c Cursor, status mad.Status) {
	var r mad.MultiPathRecord
	const counts = mad.MultiPathComponentSGIDCount | mad.MultiPathComponentDGIDCount
	q := &c.q
	q.begin(e, b, a)
	if mad.Decode(data, &r) != nil {
		return Cursor{}, mad.StatusInvalidRequest
	}
	q.take(&r, mask)
	switch status := q.valid(); {
	case status != mad.StatusOK:
		return Cursor{}, status
	case !mask.Has(counts):
		return Cursor{}, mad.StatusInsufficientComponents
	case r.SGIDCount == 0 || r.DGIDCount == 0:
		return Cursor{}, mad.StatusInvalidRequest
	}
	x := &multi{independent: mask.Has(mad.MultiPathComponentIndependenceSelector) && r.IndependenceSelector == 1}
	for i := range int(r.SGIDCount) + int(r.DGIDCount) {
		gid, ok := mad.MultiPathGID(data, i)
		if !ok {
			return Cursor{}, mad.StatusInvalidRequest
		}
		dest := i >= int(r.SGIDCount)
		s, status := q.named(&gid, dest)
		switch {
		case status == mad.StatusNoRecords && q.trusted:
			return Cursor{}, mad.StatusInvalidGID
		case status == mad.StatusNoRecords:
		case status != mad.StatusOK:
			return Cursor{}, status
		case dest:
			x.dst = append(x.dst, s)
		default:
			x.src = append(x.src, s)
		}
	}
	c.multi, c.want, c.most = x, unlimited, unlimited
	if mask.Has(mad.MultiPathComponentNumbPath) {
		c.most = int(r.NumbPath)
	}
	return c, mad.StatusOK
}

// take converts a query for many paths to the form for one path.
func (q *query) take(r *mad.MultiPathRecord, mask mad.ComponentMask) {
	q.rec = mad.PathRecord{
		ServiceID: r.ServiceID(), RawTraffic: r.RawTraffic, FlowLabel: r.FlowLabel, HopLimit: r.HopLimit, TClass: r.TClass,
		Reversible: r.Reversible, NumbPath: r.NumbPath, PKey: r.PKey, QoSClass: r.QoSClass, SL: r.SL,
		MTUSelector: r.MTUSelector, MTU: r.MTU, RateSelector: r.RateSelector, Rate: r.Rate,
		PacketLifeTimeSelector: r.PacketLifeTimeSelector, PacketLifeTime: r.PacketLifeTime,
	}
	for _, c := range [...][2]mad.ComponentMask{
		{mad.MultiPathComponentRawTraffic, mad.PathComponentRawTraffic},
		{mad.MultiPathComponentFlowLabel, mad.PathComponentFlowLabel},
		{mad.MultiPathComponentHopLimit, mad.PathComponentHopLimit},
		{mad.MultiPathComponentTClass, mad.PathComponentTClass},
		{mad.MultiPathComponentReversible, mad.PathComponentReversible},
		{mad.MultiPathComponentNumbPath, mad.PathComponentNumbPath},
		{mad.MultiPathComponentPKey, mad.PathComponentPKey},
		{mad.MultiPathComponentQoSClass, mad.PathComponentQoSClass},
		{mad.MultiPathComponentSL, mad.PathComponentSL},
		{mad.MultiPathComponentMTUSelector, mad.PathComponentMTUSelector},
		{mad.MultiPathComponentMTU, mad.PathComponentMTU},
		{mad.MultiPathComponentRateSelector, mad.PathComponentRateSelector},
		{mad.MultiPathComponentRate, mad.PathComponentRate},
		{mad.MultiPathComponentPacketLifeTimeSelector, mad.PathComponentPacketLifeTimeSelector},
		{mad.MultiPathComponentPacketLifeTime, mad.PathComponentPacketLifeTime},
		{mad.MultiPathComponentServiceID8MSB, mad.PathComponentServiceID8MSB},
		{mad.MultiPathComponentServiceID56LSB, mad.PathComponentServiceID56LSB},
	} {
		if mask.Has(c[0]) {
			q.mask |= c[1]
		}
	}
}

// next sets the next two ends. False: there are none.
func (x *multi) next(c *Cursor) bool {
	n, m := len(x.src), len(x.dst)
	if x.k == n*m {
		if !x.independent || x.second {
			return false
		}
		x.k, x.second = 0, true
	}
	if n*m == 0 {
		return false
	}
	i, j := x.k/m, x.k%m
	if x.independent { // along diagonals
		round := x.k / min(n, m)
		at := x.k % min(n, m)
		if n <= m {
			i, j = at, (at+round)%m
		} else {
			i, j = (at+round)%n, at
		}
	}
	x.k++
	c.src1, c.dst1 = x.src[i], x.dst[j]
	x.first = x.second
	if c.want = unlimited; x.independent && !x.second {
		c.want = 1
	}
	return true
}

// skips reports whether a path was returned before.
func (x *multi) skips() bool {
	if x == nil || !x.first {
		return false
	}
	x.first = false
	return true
}
