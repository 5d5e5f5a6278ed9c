package path

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
)

// Cursor makes the paths of an answer one by one. It keeps the book that it was made with, and returns its contents.
type Cursor struct {
	q        query
	src, dst side
	src1     end // the ends whose paths are being made
	dst1     end
	pairs    pairs
	on       bool // src1, dst1 and pairs are in use
	picked   bool // src1 is
	want     int  // paths between two ends
	each     int  // how many are still wanted of these
	most     int  // of all
	multi    *multi

	group mad.PathRecord // the only record, of a group
	only  bool
	done  bool
	rows  int
	loops int
}

// side is one side of paths: an end, or all.
type side struct {
	one   end
	all   bool
	given bool               // the one was given, or of all
	from  ib.LID             // end ports from this LID on are to come
	port  *portindex.EndPort // whose GUIDs are being given
	alias int                // of them, the next; its port GUID came first
}

func sideOf(e *end) side { return side{one: *e, all: e.port == nil} }

// unlimited is more paths than there are.
const unlimited = 1 << 40

// GetTable answers a GetTable of PathRecords. With StatusOK the cursor returns them. The status is as for Get, but no
// records or many records are no error. Between each two GIDs there are as many paths as NumbPath says, or all.
func (e *Engine) GetTable(b *portindex.Book, groups Groups, a *portindex.Asker, m *mad.MAD) (c Cursor, status mad.Status) {
	q := &c.q
	q.begin(e, b, a)
	q.mask = m.ComponentMask()
	if mad.Decode(m.SAData(), &q.rec) != nil {
		return Cursor{}, mad.StatusInvalidRequest
	}
	if status := q.valid(); status != mad.StatusOK {
		return Cursor{}, status
	}
	c.want, c.most = unlimited, unlimited
	if q.mask.Has(mad.PathComponentNumbPath) {
		c.want = int(q.rec.NumbPath)
	}
	if q.toGroup() {
		c.only, c.done = true, !q.group(groups, &c.group)
		return c, mad.StatusOK
	}
	src, dst, status := q.sides()
	if status == mad.StatusNoRecords {
		c.done = true
		return c, mad.StatusOK
	}
	c.src, c.dst = sideOf(&src), sideOf(&dst)
	if status == mad.StatusOK {
		status = c.open()
	}
	if status != mad.StatusOK {
		return Cursor{}, status
	}
	return c, mad.StatusOK
}

// open judges which ends are left open.
func (c *Cursor) open() mad.Status {
	if c.src.all && c.dst.all && !c.q.e.cfg.FullWorld {
		c.done = true
		return mad.StatusDenied
	}
	return mad.StatusOK
}

// RecordSize is the length of each record in bytes.
func (c *Cursor) RecordSize() int { return RecordSize }

// Steps is how much was looked at: pairs of ends and of LIDs, P_Keys, and links that
// were followed.
func (c *Cursor) Steps() int { return c.loops + c.q.steps }

// Next writes the next record to dst, which must have RecordSize bytes, and returns its length. It returns false when there
// is none left. It does not allocate.
func (c *Cursor) Next(dst []byte) (n int, ok bool) {
	for {
		n, done := c.Step(dst, 1<<16)
		if n > 0 || done {
			return n, n > 0
		}
	}
}

// Step is Next for callers that must not block: it takes at most about the given number of steps. Without a record, done is
// true if there is none left.
func (c *Cursor) Step(dst []byte, most int) (n int, done bool) {
	if c.done || len(dst) < RecordSize || c.q.e == nil {
		return 0, true
	}
	if c.only {
		c.done = true
		return c.give(dst, &c.group)
	}
	for limit := c.Steps() + most; c.Steps() < limit; {
		c.loops++
		if c.rows >= c.most || !c.on && !c.nextEnds() {
			c.done = true
			return 0, true
		}
		if !c.on {
			continue
		}
		slid, dlid, ok := c.pairs.next()
		if !ok || c.each <= 0 {
			c.on = false
			continue
		}
		var out mad.PathRecord
		if !c.q.path(&c.src1, &c.dst1, slid, dlid, &out) {
			continue
		}
		c.each--
		if c.multi.skips() {
			continue
		}
		out.Preference = c.pairs.preference()
		return c.give(dst, &out)
	}
	return 0, false
}

func (c *Cursor) give(dst []byte, r *mad.PathRecord) (n int, done bool) {
	if mad.Encode(dst, r) != nil {
		return 0, true
	}
	c.rows++
	return RecordSize, false
}

// nextEnds goes on to the next two ends, or a step nearer to them. False: there are no
// more.
func (c *Cursor) nextEnds() bool {
	if c.multi != nil {
		if !c.multi.next(c) {
			return false
		}
	} else {
		if !c.picked {
			found, more := c.src.next(&c.q, &c.src1)
			c.picked = found
			return more
		}
		found, more := c.dst.next(&c.q, &c.dst1)
		if !more {
			c.picked, c.dst = false, side{one: c.dst.one, all: c.dst.all}
		}
		if !found {
			return true
		}
	}
	c.pairs = pairsOf(&c.src1, &c.dst1)
	c.on, c.each = true, c.want
	return true
}

// next returns the next end of a side, or comes a step nearer to it. more is false when there is none left.
func (s *side) next(q *query, to *end) (found, more bool) {
	if !s.all {
		if s.given {
			return false, false
		}
		s.given, *to = true, s.one
		return true, true
	}
	if s.port != nil {
		for ; s.alias < len(s.port.Aliases); s.alias++ {
			g := s.port.Aliases[s.alias]
			if g != 0 && q.b.ByGUID(g) == s.port && g != s.port.GUID {
				s.alias++
				*to = q.endOf(s.port, g)
				return true, true
			}
		}
		s.port = nil
	}
	e := q.b.From(s.from)
	if e == nil {
		return false, false
	}
	s.from = e.LID + 1
	if q.sees(e, nil) == nil {
		return false, true
	}
	s.port, s.alias = e, 0
	*to = q.endOf(e, e.GUID)
	return true, true
}
