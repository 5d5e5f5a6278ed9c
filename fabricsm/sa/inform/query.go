package inform

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/book"
	"portcullis/fabricsm/sa/registry"
)

// Query is a Get or GetTable of InformInfoRecord.
type Query struct {
	in      Snapshot
	fabric  registry.Fabric
	from    *book.EndPort
	trusted bool
	prefix  ib.Prefix
	mask    mad.ComponentMask
	want    [recordSize]byte

	last  key
	begun bool
	done  bool
	steps int
}

// recordSize is the size of an InformInfoRecord with its padding, in bytes.
const recordSize = 64

// Query finds the subscriptions of those whom an asker at an end port may know of.
// fabric says who is where.
func (s Snapshot) Query(fabric registry.Fabric, a book.Asker, prefix ib.Prefix, rec *mad.InformInfoRecord, mask mad.ComponentMask) Query {
	q := Query{in: s, fabric: fabric, from: fabric.EndPort(a.Port), trusted: a.Trusted, prefix: prefix, mask: mask}
	q.done = q.from == nil || mad.Encode(q.want[:], rec) != nil
	return q
}

var _ registry.Cursor = (*Query)(nil)

// Next implements registry.Cursor. A record has mad.RecordSize bytes.
func (q *Query) Next(dst []byte) (int, bool) {
	const some = 1 << 20
	for {
		if n, done := q.Step(dst, some); n > 0 || done {
			return n, n > 0
		}
	}
}

// Steps is how many steps were taken so far.
func (q *Query) Steps() int { return q.steps }

// Step is Next for those who must not take long: it looks at a bounded number of
// subscriptions. Without a record, done says whether there is none left.
func (q *Query) Step(dst []byte, most int) (n int, done bool) {
	if len(dst) < recordSize {
		q.done = true
	}
	for ; most > 0 && !q.done; most-- {
		q.steps++
		s, ok := q.next()
		if !ok {
			q.done = true
			break
		}
		if !q.visible(s) {
			continue
		}
		out := mad.InformInfoRecord{SubscriberGID: ib.MakeGID(q.prefix, s.As), Enum: s.Enum, InformInfo: s.Info}
		if !q.trusted {
			out.QPN = 0
		}
		clear(dst[:recordSize])
		if mad.Encode(dst, &out) == nil && mad.MatchRecord(mad.AttrInformInfoRecord, q.mask, q.want[:], dst) {
			return recordSize, false
		}
	}
	return 0, q.done
}

func (q *Query) next() (s *Subscription, ok bool) {
	if q.begun {
		q.last, s, ok = q.in.all.After(q.last)
	} else {
		q.last, s, ok = q.in.all.First()
	}
	q.begun = true
	return s, ok
}

func (q *Query) visible(s *Subscription) bool {
	if q.trusted {
		return true
	}
	e := q.fabric.ByGUID(s.As)
	return e != nil && book.Sees(q.from, e, false)
}
