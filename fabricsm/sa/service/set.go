package service

import (
	"maps"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
)

// mandatory lists the components that a Set needs. A Delete names its record by the same fields and P_Key, with or without
// the mask: clients delete the record that a Get returned.
const mandatory = mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID

// request is a Set or Delete under way.
type request struct {
	asker portindex.Asker
	rec   *mad.ServiceRecord
	mask  mad.ComponentMask

	from    *portindex.EndPort // of the requester
	port    *portindex.EndPort // of the ServiceGID; nil: no port has it
	rid     RID
	key     ib.ServiceKey // that it shows
	verdict trust.Verdict // not trust.OK: it is dropped
}

// Set registers a service, or replaces the record with the same RID.
func (r *Registry) Set(now time.Time, a portindex.Asker, rec *mad.ServiceRecord, mask mad.ComponentMask) (ans Answer) {
	r.out = &ans.Effects
	q := request{asker: a, rec: rec, mask: mask}
	if why := r.admit(&q); why != NoReason || q.verdict != trust.OK {
		return refuse(&q, why)
	}
	if why := q.place(); why != NoReason {
		return refuse(&q, why)
	}
	old := r.Get(q.rid)
	if old != nil && !old.Expires.IsZero() && !now.Before(old.Expires) {
		old = nil // it is expired but not yet removed; put replaces it
	}
	switch {
	case !r.mayName(&q, rec), old != nil && !r.mayName(&q, &old.Record):
		return refuse(&q, NoReason)
	case old != nil && !r.opens(&q, old):
		return refuse(&q, WrongKey)
	case r.Get(q.rid) != nil:
	case r.records.Len() >= r.cfg.MaxRecords:
		return refuse(&q, TooMany)
	default:
		if q.verdict = r.cfg.Limits.Room(&r.cfg.Trust, trust.Services, q.rid.GUID, a.Trusted); q.verdict != trust.OK {
			return refuse(&q, NoReason)
		}
	}
	kind := Replaced
	if old == nil {
		kind = Registered
	}
	n := &Record{RID: q.rid, Record: *rec, Open: !mask.Has(mad.ServiceComponentServicePKey)}
	if n.Open {
		n.Home = homeOf(q.port)
	}
	n.Record.ServicePKey, n.Record.ServiceKey = q.rid.PKey, q.key
	n.Expires = r.expiry(now, &q)
	n.Record.ServiceLease = n.lease(now)
	r.put(n)
	r.out.Save = append(r.out.Save, factOf(n))
	r.out.Events = append(r.out.Events, Event{Kind: kind, Asker: a, RID: n.RID, Name: nameOf(rec)})
	ans.Record = shown(n, now, a.Trusted)
	return ans
}

// expiry returns the time at which a record expires if it is registered now.
func (r *Registry) expiry(now time.Time, q *request) time.Time {
	lease := uint32(mad.LeaseForever)
	if q.mask.Has(mad.ServiceComponentServiceLease) {
		lease = q.rec.ServiceLease
	}
	length := time.Duration(lease) * time.Second
	if !q.asker.Trusted && length > r.cfg.MaxLease {
		length = r.cfg.MaxLease
	} else if lease == mad.LeaseForever {
		return time.Time{}
	}
	return now.Add(length)
}

// Delete takes a record back.
func (r *Registry) Delete(now time.Time, a portindex.Asker, rec *mad.ServiceRecord, mask mad.ComponentMask) (ans Answer) {
	r.out = &ans.Effects
	q := request{asker: a, rec: rec, mask: mask | mandatory}
	if why := r.admit(&q); why != NoReason || q.verdict != trust.OK {
		return refuse(&q, why)
	}
	if rec.ServicePKey.Valid() {
		q.rid.PKey = rec.ServicePKey
	}
	old := r.Get(q.rid)
	switch {
	case old == nil:
		return refuse(&q, NotFound)
	case !r.mayName(&q, &old.Record):
		return refuse(&q, NoReason)
	case !r.opens(&q, old):
		return refuse(&q, WrongKey)
	}
	ans.Record = shown(old, now, a.Trusted)
	r.remove(old, Event{Kind: Deleted, Asker: a})
	return ans
}

// admit makes the checks that both share.
func (r *Registry) admit(q *request) Reason {
	if r.fabric != nil {
		q.from = r.fabric.EndPort(q.asker.Port)
	}
	if q.from == nil {
		q.verdict = trust.UnknownSource
		return NoReason
	}
	if !q.mask.Has(mandatory) {
		return MissingComponents
	}
	// Some clients leave the prefix of their own GID out.
	if p := q.rec.ServiceGID.Prefix(); p != r.cfg.Prefix && p != ib.DefaultPrefix && p != 0 {
		return ForeignPrefix
	}
	q.rid = RID{q.rec.ServiceID, q.rec.ServiceGID.GUID(), ib.DefaultPKeyFull}
	q.port = r.fabric.ByGUID(q.rid.GUID)
	if q.mask.Has(mad.ServiceComponentServiceKey) {
		q.key = q.rec.ServiceKey
	}
	// A requester that may not act for others does not learn which ports exist.
	q.verdict = r.actsFor(q, q.port)
	return NoReason
}

// place checks the ports of a request, and sets the P_Key.
func (q *request) place() Reason {
	if q.port == nil {
		return UnknownPort
	}
	if q.port != q.from && !q.asker.Trusted {
		if _, ok := portindex.Common(q.from, q.port); !ok {
			return NoPartition
		}
	}
	if !q.mask.Has(mad.ServiceComponentServicePKey) {
		return NoReason
	}
	q.rid.PKey = q.rec.ServicePKey
	if !q.rid.PKey.Valid() {
		return InvalidPKey
	}
	_, mine := q.from.Holds(q.rid.PKey)
	if _, its := q.port.Holds(q.rid.PKey); !its || !mine && !q.asker.Trusted {
		return NotInPartition
	}
	return NoReason
}

func (r *Registry) actsFor(q *request, port *portindex.EndPort) trust.Verdict {
	switch {
	case r.cfg.Guard != nil:
		return r.cfg.Guard.ActsFor(&q.asker, port, q.rid.GUID)
	case q.asker.Trusted || registry.IsOwn(&q.asker, port, q.rid.GUID):
		return trust.OK
	default:
		return trust.Proxy
	}
}

// mayName reports whether the request shows the key that the name of a record needs.
func (r *Registry) mayName(q *request, rec *mad.ServiceRecord) bool {
	if r.cfg.Names != nil {
		q.verdict = r.cfg.Names.Check(&r.cfg.Trust, rec.ServiceName[:], q.key, q.asker.Trusted)
	}
	return q.verdict == trust.OK
}

// opens reports whether a request shows the key of a record. A record without an effective key needs none.
func (r *Registry) opens(q *request, rec *Record) bool {
	key := rec.Record.ServiceKey
	return key.IsZero() || r.cfg.IgnoreKeys || q.asker.Trusted || key.Equal(q.key)
}

// refuse answers no, or nothing.
func refuse(q *request, why Reason) Answer {
	no := Answer{Verdict: q.verdict, Status: why.status()}
	if q.verdict == trust.OK {
		no.Events = []Event{{Kind: Refused, Reason: why, Asker: q.asker, RID: q.rid, Name: nameOf(q.rec)}}
	}
	return no
}

// shown returns a record as a requester may see it.
func shown(r *Record, now time.Time, trusted bool) mad.ServiceRecord {
	rec := r.Record
	rec.ServiceLease = r.lease(now)
	if !trusted {
		rec.ServiceKey = ib.ServiceKey{}
	}
	return rec
}

// Follow updates the view of the fabric. Records of a port that surely no longer has their P_Key are dropped.
func (r *Registry) Follow(f registry.Fabric) (e Effects) {
	r.out = &e
	was := r.fabric
	r.fabric = f
	if len(r.ports) == 0 {
		return e
	}
	for guid := range f.Changed(was) {
		r.review(guid)
		for _, of := range []registry.Fabric{was, f} {
			if of == nil {
				continue
			}
			if port := of.ByGUID(guid); port != nil {
				for _, alias := range port.Aliases {
					r.review(alias)
				}
			}
		}
	}
	if f.Settled() {
		for _, guid := range slices.Sorted(maps.Keys(r.doubt)) {
			r.review(guid)
		}
		clear(r.doubt)
	}
	return e
}

// review looks at the records of a GUID.
func (r *Registry) review(guid ib.GUID) {
	port := r.fabric.ByGUID(guid)
	if len(r.ports[guid]) == 0 || port == nil && !r.cfg.DropWithPort {
		return
	}
	for _, rec := range r.of(guid) {
		if port == nil {
			r.remove(rec, Event{Kind: Dropped, Reason: PortGone})
			continue
		}
		switch {
		case rec.fits(port):
		case r.fabric.Settled() || rec.Open && rec.Home == 0 || r.fabric.Lacks(port, rec.needs()):
			r.remove(rec, Event{Kind: Dropped, Reason: NotInPartition})
		default:
			r.doubt[guid] = true // its tables are being read
		}
	}
}

// homeOf returns the partition that identifies the tenant of a port: the base of its first P_Key, or 0 if it has only the
// default one.
func homeOf(port *portindex.EndPort) ib.PKey {
	if len(port.PKeys) == 0 || port.PKeys[0].Base() == ib.DefaultPKeyLimited {
		return 0
	}
	return port.PKeys[0].Base()
}

// fits reports whether a port may still offer its record. A record that one tenant registered without a P_Key is not
// offered to hosts of the next tenant, which would trust it.
func (r *Record) fits(port *portindex.EndPort) bool {
	if r.Open && r.Home == 0 {
		return homeOf(port) == 0
	}
	_, ok := port.Holds(r.needs())
	return ok
}

// needs is the P_Key without which it goes.
func (r *Record) needs() ib.PKey {
	if r.Open {
		return r.Home
	}
	return r.PKey
}

// of returns the records of a GUID in order.
func (r *Registry) of(guid ib.GUID) []*Record {
	m := registry.NewMap[RID, *Record](compareRIDs)
	for rid := range r.ports[guid] {
		m = m.With(rid, r.Get(rid))
	}
	var all []*Record
	for _, rec := range m.All {
		all = append(all, rec)
	}
	return all
}
