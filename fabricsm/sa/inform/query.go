package inform

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
)

// Query is a Get or GetTable of InformInfoRecord.
type Query struct {
	registry.Walk
	in      Snapshot
	fabric  registry.Fabric
	from    *portindex.EndPort
	trusted bool
	prefix  ib.Prefix
	mask    mad.ComponentMask
	want    [recordSize]byte

	last  key
	begun bool
}

// recordSize is the size of an InformInfoRecord with its padding, in bytes.
const recordSize = 64

// Query finds the subscriptions of the ports that a requester at an end port may know. fabric has the location of the
// ports.
func (s Snapshot) Query(fabric registry.Fabric, a portindex.Asker, prefix ib.Prefix, rec *mad.InformInfoRecord, mask mad.ComponentMask) Query {
	q := Query{in: s, fabric: fabric, from: fabric.EndPort(a.Port), trusted: a.Trusted, prefix: prefix, mask: mask}
	q.Done = q.from == nil || mad.Encode(q.want[:], rec) != nil
	return q
}

var _ registry.Cursor = (*Query)(nil)

// Step implements registry.Cursor. A record has mad.RecordSize bytes.
func (q *Query) Step(dst []byte, most int) (n int, done bool) {
	return q.Take(dst, recordSize, most, q.write)
}

// write moves on by one subscription, and writes its record if it matches the query.
func (q *Query) write(dst []byte) bool {
	s, ok := q.next()
	if !ok {
		q.Done = true
		return false
	}
	if !q.visible(s) {
		return false
	}
	out := mad.InformInfoRecord{SubscriberGID: ib.MakeGID(q.prefix, s.As), Enum: s.Enum, InformInfo: s.Info}
	if !q.trusted {
		out.QPN = 0
	}
	clear(dst)
	return mad.Encode(dst, &out) == nil && mad.MatchRecord(mad.AttrInformInfoRecord, q.mask, q.want[:], dst)
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
	return e != nil && portindex.Sees(q.from, e, false)
}
