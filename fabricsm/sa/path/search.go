package path

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
)

// Search looks for the one path that answers a Get with an open end: from the requester if there is one, otherwise the
// first by LID. For an untrusted requester the search does not go further. It keeps the book that it was made with.
type Search struct {
	parts  [2]Cursor
	n, at  int        // how many there are, and which is in use
	status mad.Status // if there is none
}

// Searches reports whether a Get of a PathRecord may have to look at many ends: then use Search. Other Gets cost as much as
// one pair of ports.
func Searches(a *portindex.Asker, mask mad.ComponentMask) bool {
	const src, dst = mad.PathComponentSGID | mad.PathComponentSLID, mad.PathComponentDGID | mad.PathComponentDLID
	return a.Trusted && (mask&src == 0 || mask&dst == 0)
}

// Search answers such a Get step by step; without a record Status returns the reason. For the path to a group ok is false:
// use Get.
func (e *Engine) Search(b *portindex.Book, a *portindex.Asker, m *mad.MAD) (s Search, status mad.Status, ok bool) {
	var q query
	q.begin(e, b, a)
	q.mask = m.ComponentMask()
	if mad.Decode(m.SAData(), &q.rec) != nil {
		return s, mad.StatusInvalidRequest, true
	}
	if status := q.valid(); status != mad.StatusOK || q.toGroup() {
		return s, status, status != mad.StatusOK
	}
	src, dest, status := q.sides()
	if status == mad.StatusOK {
		s, status = q.search(&src, &dest)
	}
	return s, status, true
}

// search begins one for two sides of which one is open.
func (q *query) search(src, dest *end) (s Search, status mad.Status) {
	switch {
	case q.trusted:
	case dest.port == nil:
		return s, mad.StatusInsufficientComponents
	case q.me == nil:
		return s, mad.StatusNoRecords
	}
	s.status = mad.StatusNoRecords
	if src.port == nil && q.me != nil {
		s.add(Cursor{q: *q, src: side{one: q.endOf(q.me, q.me.GUID)}, dst: sideOf(dest)})
		if !q.trusted {
			return s, mad.StatusOK
		}
	}
	c := Cursor{q: *q, src: sideOf(src), dst: sideOf(dest)}
	if refused := c.open(); refused != mad.StatusOK {
		s.status = refused
	} else {
		s.add(c)
	}
	return s, mad.StatusOK
}

func (s *Search) add(c Cursor) {
	c.want, c.most = 1, 1
	s.parts[s.n] = c
	s.n++
}

// Step is as that of Cursor. There is one record at most.
func (s *Search) Step(dst []byte, most int) (n int, done bool) {
	for limit := s.Steps() + most; s.at < s.n; s.at++ {
		left := limit - s.Steps()
		if left <= 0 {
			return 0, false
		}
		n, done := s.parts[s.at].Step(dst, left)
		switch {
		case n > 0:
			s.at = s.n
			return n, false
		case !done:
			return 0, false
		}
	}
	return 0, true
}

// Steps is as that of Cursor.
func (s *Search) Steps() (n int) {
	for i := range s.n {
		n += s.parts[i].Steps()
	}
	return n
}

// Status returns the reason if there is no record.
func (s *Search) Status() mad.Status { return s.status }
