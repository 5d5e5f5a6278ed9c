package query

import (
	"fmt"
	"iter"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/topo"
)

// listing is a question about what is registered. It is answered from a snapshot, so subnet administration does not wait
// for the caller.
type listing struct {
	*index
	*sa.Registered
	o      *Observer
	host   string
	tenant string
	port   ib.GUID // 0: any
	known  map[ib.GUID]*registrant
	looked int
}

// registrant is a port that has registered something.
type registrant struct {
	v1.Registrant
	node string // name of its node
}

// mostLooked is how many groups, members and so on are looked at for a page. One for
// which more are needed is short, and the next goes on where it ended.
const mostLooked = 1 << 16

// listing begins a question.
func (o *Observer) listing(q *v1.RegisteredQuery) (*listing, error) {
	x, s, err := o.administered()
	if err != nil {
		return nil, err
	}
	l := &listing{index: x, Registered: &s.Registered, o: o, host: q.Host, tenant: q.Tenant, known: make(map[ib.GUID]*registrant)}
	if q.Port != "" {
		if l.port, err = l.portNamed(q.Port); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// administered returns the fabric and how subnet administration stands.
func (o *Observer) administered() (*index, *sa.Status, error) {
	x, err := o.seen()
	if err != nil {
		return nil, nil, err
	}
	s := o.administration.Load()
	if s == nil {
		return nil, nil, &refusal.Error{
			Code: "sa_unseen", Status: refusal.Unavailable,
			Detail: "subnet administration has shown nothing", Hint: "it is off (fabric.sa.enabled), or has just started; then ask again",
		}
	}
	return x.ready(), s, nil
}

// portNamed returns the port GUID that a word means. A GUID may be an alias, or that of a port that is not seen any longer.
func (l *listing) portNamed(word string) (ib.GUID, error) {
	if g, err := ib.ParseGUID(word); err == nil {
		return l.portOf(g), nil
	}
	id, err := l.end(word)
	if err != nil {
		return 0, err
	}
	return l.Fabric.Port(id).GUID, nil
}

// portOf returns the port GUID of the port that has a GUID; the GUID itself if no port has.
func (l *listing) portOf(g ib.GUID) ib.GUID {
	if l.Book != nil {
		if e := l.Book.ByGUID(g); e != nil {
			return e.GUID
		}
	}
	return g
}

// of returns the registrant that has a port GUID.
func (l *listing) of(port ib.GUID) *registrant {
	if r := l.known[port]; r != nil {
		return r
	}
	r := &registrant{Registrant: v1.Registrant{Port: port}}
	l.known[port] = r
	id := l.Fabric.PortByGUID(port)
	if id == topo.None {
		return r
	}
	p := l.Fabric.Port(id)
	r.node, r.LID, r.Place = l.name(p.Node), p.LID, l.Fabric.PlaceOf(id)
	if r.Name = r.node; p.Num != 0 {
		r.Name = fmt.Sprintf("%s/%d", r.node, p.Num)
	}
	if !r.Place.IsZero() {
		r.At = l.placeName(r.Place)
	}
	who := l.o.ownerOf(r.Place)
	r.Host, r.Tenant = who.host, who.tenant
	return r
}

// shown returns the registrant that has a port GUID, under the GUID that it used.
func (l *listing) shown(port, as ib.GUID) v1.Registrant {
	r := l.of(port).Registrant
	if as != port {
		r.Alias = as
	}
	return r
}

// wants reports whether a port is asked for.
func (l *listing) wants(port ib.GUID) bool {
	l.looked++
	switch {
	case l.port != 0 && l.port != port:
		return false
	case l.host == "" && l.tenant == "":
		return true
	}
	r := l.of(port)
	return (l.host == "" || l.host == r.Host || r.Host == "" && l.host == r.node) && (l.tenant == "" || l.tenant == r.Tenant)
}

// isAny reports whether no port is requested.
func (l *listing) isAny() bool { return l.port == 0 && l.host == "" && l.tenant == "" }

// registeredPage makes a page of what is wanted. cursor says where the one after a thing
// begins.
func registeredPage[E, T any](l *listing, all iter.Seq[E], limit int, row func(E) (T, bool), cursor func(E) string) *v1.Page[T] {
	page, size := pageOf[T](l.index), pageSize(limit)
	var last E
	for e := range all {
		if l.looked >= mostLooked {
			page.Next = cursor(last)
			return page
		}
		l.looked++
		r, ok := row(e)
		switch {
		case ok && len(page.Items) == size:
			page.Next = cursor(last)
			return page
		case ok:
			page.Items = append(page.Items, r)
		}
		last = e
	}
	return page
}

// invalid returns an error about a field of a query that cannot be read.
func invalid(field string, err error) error {
	return &refusal.Error{Code: field + "_invalid", Status: refusal.Invalid, Detail: err.Error(), Hint: "leave it out for all"}
}

// pkeyAsked reads the P_Key of a query; 0: any.
func pkeyAsked(word string) (ib.PKey, error) {
	if word == "" {
		return 0, nil
	}
	k, err := ib.ParsePKey(word)
	if err != nil {
		return 0, invalid("p_key", err)
	}
	return k.Base(), nil
}
