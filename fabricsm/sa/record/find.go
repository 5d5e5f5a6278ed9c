package record

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
)

// Query is a query for records.
type Query struct {
	Attr   mad.AttrID
	Method mad.Method // Get or GetTable
	Mod    uint32
	Mask   mad.ComponentMask
	Data   [mad.SADataSize]byte // begins with a record
}

// QueryOf reads a query from an SA MAD.
func QueryOf(m *mad.MAD) (q Query) {
	q = Query{Attr: m.Attr(), Method: m.Method(), Mod: m.Mod(), Mask: m.ComponentMask()}
	copy(q.Data[:], m.SAData())
	return q
}

// Answers reports whether this package has the records of an attribute.
func Answers(a mad.AttrID) bool { return known(a) }

// Find looks for the records that match a query and that the requester may know. The status is StatusOK,
// StatusUnsupportedMethodAttr for any other query, or StatusInvalidRequest for records that are only for trusted
// requesters.
//
// A trusted requester sees all records. Others see those of their own port and of ports that share a partition with it, and
// of a switch if its port 0 shares one. For a link, both ends must be visible.
func Find(b *portindex.Book, a *portindex.Asker, q *Query) (c Cursor, status mad.Status) {
	switch {
	case !known(q.Attr) || q.Method != mad.MethodGet && q.Method != mad.MethodGetTable:
		return c, mad.StatusUnsupportedMethodAttr
	case q.Attr == mad.AttrPKeyTableRecord && !a.Trusted:
		return c, mad.StatusInvalidRequest
	}
	c = Cursor{book: b, size: mad.RecordSize(q.Attr), query: *q, trusted: a.Trusted, me: b.EndPort(a.Port)}
	if c.done = b.View == nil; !c.done {
		c.begin()
	}
	return c, mad.StatusOK
}

// One answers a Get. It writes the matching record to dst and returns its length. Otherwise the status is StatusNoRecords,
// StatusTooManyRecords, or that of Find.
func One(b *portindex.Book, a *portindex.Asker, q *Query, dst []byte) (n int, status mad.Status) {
	c, status := Find(b, a, q)
	if status != mad.StatusOK {
		return 0, status
	}
	n, found := c.Next(dst)
	if !found {
		return 0, mad.StatusNoRecords
	}
	var other [maxRecord]byte
	if _, more := c.Next(other[:]); more {
		return 0, mad.StatusTooManyRecords
	}
	return n, mad.StatusOK
}

// Cursor makes the records of an answer one by one: by LID, those of a LID by port and block. Subnet Managers are an
// exception: ours is the first. A cursor keeps the book that it was made with, and returns its contents.
type Cursor struct {
	book    *portindex.Book
	size    int   // of a record; 0: there are none
	query   Query // without the LID that was looked up
	trusted bool
	me      *portindex.EndPort // port of the requester; nil: unknown

	// Which end ports are looked at: one, or all from a base LID on.
	one  *portindex.EndPort
	next ib.LID
	far  *portindex.EndPort // LinkRecords only: the other end, nil: any
	back bool               // LinkRecords only: towards the end port, not from it

	// The current end port, nil for none, and the span to try for it: pairs of numbers, whose meaning depends on the kind.
	end   *portindex.EndPort
	node  *topo.Node
	i, j  span
	steps int
	done  bool
}

// span is a range of numbers: at and those after it, below end.
type span struct{ at, end int }

// only leaves one number of a span, or none.
func (s span) only(n int) span {
	if n < s.at || n >= s.end {
		return span{}
	}
	return span{n, n + 1}
}

// maxRecord is the length of the longest record.
const maxRecord = 112

// lidComponent is the first component of all these records: the LID that they begin
// with.
const lidComponent mad.ComponentMask = 1

// begin looks up the LID of a query. Any LID of a port names the port, also by its LMC. The time does not show an untrusted
// requester whether a port has the LID.
func (c *Cursor) begin() {
	q := &c.query
	if q.Mask.Has(lidComponent) {
		q.Mask &^= lidComponent
		c.lookFor(c.book.ByLID(ib.LID(binary.BigEndian.Uint16(q.Data[:]))))
	}
	switch {
	case q.Attr == mad.AttrLinkRecord && q.Mask.Has(mad.LinkComponentToLID):
		q.Mask &^= mad.LinkComponentToLID
		c.far = c.book.ByLID(ib.LID(binary.BigEndian.Uint16(q.Data[linkToLID:])))
		if c.one == nil || c.far == nil {
			c.back = true
			c.lookFor(c.far)
		}
	case c.one == nil && q.Attr == mad.AttrNodeRecord && q.Mask.Has(mad.NodeComponentPortGUID):
		c.lookFor(c.book.ByGUID(ib.GUID(binary.BigEndian.Uint64(q.Data[nodePortGUID:]))))
	}
	if q.Attr == mad.AttrSMInfoRecord {
		c.i.end = 1 + len(c.book.View.Others) // these do not go by end ports
	}
}

// lookFor restricts the answer to one end port; nil means to none.
func (c *Cursor) lookFor(e *portindex.EndPort) {
	c.one = e
	if e == nil {
		c.done = true
		c.sees(c.me)
	}
}

// sees reports whether the requester may know of an end port.
func (c *Cursor) sees(e *portindex.EndPort) bool {
	switch {
	case c.trusted:
		return e != nil
	case c.me == nil || e == nil:
		return false
	default:
		return portindex.Sees(c.me, e, true)
	}
}

// Steps returns how many looks at records and at end ports the cursor has taken: the cost of the query.
func (c *Cursor) Steps() int { return c.steps }

// RecordSize is the length of each record in bytes.
func (c *Cursor) RecordSize() int { return c.size }

// Next writes the next record to dst, which must hold RecordSize bytes, and returns its length. It returns false when there
// is none left.
func (c *Cursor) Next(dst []byte) (n int, ok bool) {
	const some = 1 << 20
	for {
		if n, done := c.Step(dst, some); n > 0 || done {
			return n, n > 0
		}
	}
}

// Step is Next for callers that must not take long: it looks at a bounded number of records. Without a record, done is true
// if there is none left.
func (c *Cursor) Step(dst []byte, most int) (n int, done bool) {
	if c.size == 0 || len(dst) < c.size {
		return 0, true
	}
	dst = dst[:c.size]
	for ; most > 0 && !c.done; most-- {
		c.steps++
		switch {
		case c.j.at < c.j.end:
			clear(dst)
			j := c.j.at
			c.j.at++
			if !c.make(dst, c.i.at-1, j) || !c.matches(dst) {
				continue
			}
			c.finish(dst)
			return c.size, false
		case c.i.at < c.i.end:
			c.j = c.inner(c.i.at)
			c.i.at++
		case c.query.Attr == mad.AttrSMInfoRecord:
			c.done = true
		default:
			c.advance()
		}
	}
	return 0, c.done
}

// advance goes on to the next end port.
func (c *Cursor) advance() {
	e := c.one
	switch {
	case e == nil:
		e = c.book.From(c.next)
	case c.end != nil:
		e = nil
	}
	if c.end = e; e == nil {
		c.done = true
		return
	}
	c.next = e.LID + 1
	if c.sees(e) {
		c.node = c.book.View.Fabric.Node(e.Node)
		c.i, c.j = c.outer(), span{}
	}
}

// matches reports whether a record matches the query.
func (c *Cursor) matches(r []byte) bool {
	switch q := &c.query; {
	case q.Mask == 0:
		return true
	case q.Attr == mad.AttrPortInfoRecord:
		return mad.MatchPortInfo(q.Mod, q.Mask, q.Data[:], r)
	case q.Attr != mad.AttrSMInfoRecord && !c.isSwitch():
		return mad.MatchRecord(q.Attr, q.Mask&^portsOf(q.Attr), q.Data[:], r)
	default:
		return mad.MatchRecord(q.Attr, q.Mask, q.Data[:], r)
	}
}

// portsOf returns the components that have a meaning only for switches. For a host the LID names the port, and clients
// leave the number 0.
func portsOf(attr mad.AttrID) mad.ComponentMask {
	switch attr {
	case mad.AttrVLArbitrationRecord:
		return mad.VLArbitrationComponentOutputPortNum
	case mad.AttrSLtoVLRecord:
		return mad.SLtoVLComponentInputPortNum | mad.SLtoVLComponentOutputPortNum
	default:
		return 0
	}
}
