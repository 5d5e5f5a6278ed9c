package path

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
)

// RecordSize is the length of a PathRecord in a table, in bytes.
const RecordSize = 64

const (
	// mostPairs is the number of pairs of LIDs that a Get tries before it stops, when ports have many LIDs because of
	// LMC.
	mostPairs = 512
	// mostSteps is how far a Get looks that leaves an end open.
	mostSteps = 1 << 17
)

// Get answers a Get of a PathRecord. With StatusOK the record replaces the query. It does not allocate if the query names
// both ends.
//
//   - StatusInsufficientComponents: half a ServiceID, or an untrusted requester leaves
//     the destination open.
//   - StatusInvalidRequest: an invalid value, or GID and LID of an end contradict.
//   - StatusInvalidGID: a GID of a subnet to which no route is known.
//   - StatusNoRecords: no port has the GID or LID, or there is no path, or the requester
//     may not know of it.
//   - StatusNoResources: an end is left open, and none was found in bounded time.
//   - StatusDenied: both ends are left open, there is no path from the requester, and
//     Config.FullWorld does not allow a further search.
//
// If an end is left open, Get returns one of all paths, from the requester if possible. An untrusted requester gets only
// paths from itself.
func (e *Engine) Get(b *portindex.Book, groups Groups, a *portindex.Asker, m *mad.MAD) (status mad.Status, steps int) {
	var q query
	q.begin(e, b, a)
	q.mask = m.ComponentMask()
	if mad.Decode(m.SAData(), &q.rec) != nil {
		return mad.StatusInvalidRequest, 0
	}
	status = q.get(groups, m.SAData())
	return status, q.steps
}

// get answers a query for one path.
func (q *query) get(groups Groups, dst []byte) mad.Status {
	if s := q.valid(); s != mad.StatusOK {
		return s
	}
	var out mad.PathRecord
	if q.toGroup() {
		if !q.group(groups, &out) {
			return mad.StatusNoRecords
		}
		return encode(dst, &out)
	}
	src, dest, status := q.sides()
	switch {
	case status != mad.StatusOK:
		return status
	case src.port == nil || dest.port == nil:
		return q.getOpen(&src, &dest, dst)
	}
	p := pairsOf(&src, &dest)
	for range mostPairs {
		slid, dlid, ok := p.next()
		if !ok {
			break
		}
		if q.path(&src, &dest, slid, dlid, &out) {
			out.Preference = p.preference()
			return encode(dst, &out)
		}
	}
	return mad.StatusNoRecords
}

func encode(dst []byte, r *mad.PathRecord) mad.Status {
	if mad.Encode(dst, r) != nil {
		return mad.StatusInvalidRequest
	}
	return mad.StatusOK
}

// getOpen answers a query for one path that leaves an end open.
func (q *query) getOpen(src, dest *end, dst []byte) mad.Status {
	s, status := q.search(src, dest)
	if status != mad.StatusOK {
		return status
	}
	n, done := s.Step(dst, mostSteps)
	q.steps = s.Steps()
	switch {
	case n > 0:
		return mad.StatusOK
	case done:
		return s.Status()
	default:
		return mad.StatusNoResources
	}
}

// pairs visits the pairs of LIDs of two ends: first those that are as far from the
// first LID of the one as of the other, which share nothing, then the others.
type pairs struct {
	slid, dlid ib.LID // the first ones
	n, m       int    // how many
	i, j       int    // the last pair
	begun      bool   // there is one
	rest       bool   // it is of the second kind
}

func pairsOf(s, d *end) pairs { return pairs{slid: s.lid, dlid: d.lid, n: s.lids, m: d.lids} }

func (p *pairs) next() (slid, dlid ib.LID, ok bool) {
	if !p.rest {
		if p.begun {
			p.i, p.j = p.i+1, p.j+1
		}
		if p.begun = true; p.i < p.n && p.j < p.m {
			return p.slid + ib.LID(p.i), p.dlid + ib.LID(p.j), true
		}
		p.rest, p.i, p.j = true, 0, 0
	}
	for {
		if p.j++; p.j >= p.m {
			p.i, p.j = p.i+1, 0
		}
		switch {
		case p.i >= p.n:
			return 0, 0, false
		case p.i != p.j:
			return p.slid + ib.LID(p.i), p.dlid + ib.LID(p.j), true
		}
	}
}

// preference is that of the last pair.
func (p *pairs) preference() uint8 {
	if p.rest {
		return 2
	}
	return 0
}
