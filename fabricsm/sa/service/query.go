package service

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
)

// Query is a Get or GetTable of ServiceRecord.
type Query struct {
	registry.Walk
	in      Snapshot
	fabric  registry.Fabric
	now     time.Time
	from    *portindex.EndPort
	trusted bool
	mask    mad.ComponentMask
	want    [recordSize]byte

	last  RID
	one   *ib.ServiceID // the only one that matches the query
	looks int           // at records of one
}

// quantum is the unit to which looks at the records of one ServiceID are rounded up for an untrusted requester. So the
// response time does not show whether others have up to as many records.
const quantum = 16

// A ServiceRecord in bytes, and its ServiceKey.
const (
	recordSize = 176
	keyAt      = 32
	keySize    = 16
)

// Query finds the records with a current lease that a requester at an end port may see. fabric has the location of the
// ports.
func (s Snapshot) Query(now time.Time, fabric registry.Fabric, a portindex.Asker, rec *mad.ServiceRecord, mask mad.ComponentMask) Query {
	q := Query{in: s, fabric: fabric, now: now, from: fabric.EndPort(a.Port), trusted: a.Trusted, mask: mask}
	q.Done = q.from == nil || mad.Encode(q.want[:], rec) != nil
	if mask.Has(mad.ServiceComponentServiceID) {
		id := rec.ServiceID
		q.one, q.last.ID = &id, id // no record has GUID 0
	}
	return q
}

var _ registry.Cursor = (*Query)(nil)

// Step implements registry.Cursor. A record has mad.RecordSize bytes.
func (q *Query) Step(dst []byte, most int) (n int, done bool) {
	return q.Take(dst, recordSize, most, q.write)
}

// write moves on by one record, and writes it if it matches the query.
func (q *Query) write(dst []byte) bool {
	rid, rec, ok := q.next()
	q.looks++
	if !ok {
		if q.Done = q.one == nil || q.trusted || q.looks%quantum == 0; !q.Done {
			q.decoy()
		}
		return false
	}
	q.last = rid
	if !q.visible(rec) {
		return false
	}
	// A query with the right key finds the record, but the answer does not show the key.
	out := shown(rec, q.now, true)
	if mad.Encode(dst, &out) != nil || !mad.MatchRecord(mad.AttrServiceRecord, q.mask, q.want[:], dst) {
		clear(dst)
		return false
	}
	if !q.trusted {
		clear(dst[keyAt:][:keySize])
	}
	return true
}

func (q *Query) next() (RID, *Record, bool) {
	var rid RID
	var rec *Record
	var ok bool
	if q.last == (RID{}) {
		rid, rec, ok = q.in.records.First()
	} else {
		rid, rec, ok = q.in.records.After(q.last)
	}
	return rid, rec, ok && (q.one == nil || *q.one == rid.ID)
}

// decoy does the same work on a record as for a requested record of another port.
func (q *Query) decoy() {
	if _, rec, ok := q.in.records.First(); ok {
		q.visible(rec)
	}
}

// visible reports whether a record is in force and the requester may know of it.
func (q *Query) visible(r *Record) bool {
	if !r.Expires.IsZero() && !q.now.Before(r.Expires) {
		return false
	}
	if q.trusted {
		return true
	}
	port := q.fabric.ByGUID(r.GUID)
	switch {
	case port == nil:
		return false
	case port.Port == q.from.Port:
		return true
	case r.Open:
		return portindex.Sees(q.from, port, true)
	}
	mine, ok := q.from.Holds(r.PKey)
	its, has := port.Holds(r.PKey)
	return ok && has && mine.Matches(its)
}
