package administration

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/sa/trust"
)

// ServiceDrills are those of services that hosts offer by name, T84 to T87.
func ServiceDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T84", Threat: "register a name that is known, and attract its clients", Play: stolenName},
		{ID: "T85", Threat: "overwrite or delete what another offers", Play: overwrittenService},
		{ID: "T86", Threat: "fill the database with services that never expire", Play: endlessLeases},
		{ID: "T87", Threat: "write into logs and terminals with the bytes of a service name", Play: oddNames},
	}
}

// Names that need a key, and the key.
const (
	storageName     = "storage.iscsi"
	aggregationName = "SHArP.AggregationManager"
	nameKeys        = storageName + " 1111:2222:3333:4444:5555:6666:7777:8888\n" + aggregationName + " 1111:2222:3333:4444:5555:6666:7777:8888\n"
)

// nameKey is that of both names. It is no secret: nothing real has it.
func nameKey() ib.ServiceKey {
	var b [16]byte
	for i := range b {
		b[i] = byte(i/2+1) * 0x11
	}
	return ib.NewServiceKey(b)
}

// named is a site where some names need a key, and h3 serves tenant A.
func named(s *drill.Scene) drill.SiteOptions {
	o := drill.Administered()
	o.Tenants = []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5", "h3"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6"}}}
	var err error
	o.SA.ServiceKeys, err = trust.ParseServiceKeys("names", []byte(nameKeys))
	s.Must(err)
	return o
}

// offer registers whatever a record says for a host.
func offer(t *drill.Site, host string, change func(*mad.ServiceRecord)) drill.Question {
	rec := mad.ServiceRecord{ServiceID: 1, ServiceGID: t.GIDOf(host), ServicePKey: drill.KeyA, ServiceLease: 600}
	change(&rec)
	return drill.Question{Method: mad.MethodSet, Attr: mad.AttrServiceRecord, Mask: drill.ServiceMask | mad.ServiceComponentServiceKey, Data: drill.With(t.Scene, &rec)}
}

// withdraw takes back what a host offers.
func withdraw(t *drill.Site, host string, id ib.ServiceID, pkey ib.PKey, key ib.ServiceKey) drill.Question {
	rec := mad.ServiceRecord{ServiceID: id, ServiceGID: t.GIDOf(host), ServicePKey: pkey, ServiceKey: key}
	const mask = mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServicePKey | mad.ServiceComponentServiceKey
	return drill.Question{Method: mad.MethodDelete, Attr: mad.AttrServiceRecord, Mask: mask, Data: drill.With(t.Scene, &rec)}
}

// provider is the host that offers what others ask for.
const provider = "h3"

// finds demands that a request for a name is answered with one record, that of the provider, and returns it. It asks for a
// table where it may.
func finds(c *drill.Client, name string) (rec mad.ServiceRecord, ok bool) {
	want := mad.ServiceRecord{}
	copy(want.ServiceName[:], name)
	m := c.Answered(drill.Get(mad.AttrServiceRecord, mad.ServiceComponentServiceName, drill.With(c.Site.Scene, &want)), "who offers %s", name)
	if m == nil {
		return rec, false
	}
	s := c.Site.Scene
	s.Must(mad.Decode(m.SAData(), &rec))
	return rec, s.Check(rec.ServiceGID == c.Site.GIDOf(provider), "%s is answered that %v offers %s, which %s does", c.Host, rec.ServiceGID, name, provider)
}

// stolenName is T84.
func stolenName(s *drill.Scene) {
	t := s.Site(named(s))
	t.Customer("h5", "h3")
	h1, h3, h5 := t.Client("h1"), t.Client("h3"), t.Client("h5")
	call := func(name string, key ib.ServiceKey) func(*mad.ServiceRecord) {
		return func(r *mad.ServiceRecord) { copy(r.ServiceName[:], name); r.ServiceKey = key }
	}
	h3.Answered(offer(t, "h3", call(storageName, nameKey())), "it registers its name with the key")
	finds(h5, storageName)
	s.Tried("h1 registers the name by which clients find the storage server h3, without its key, with another key and with bytes behind its end, under its own P_Key and under none; and names of NVIDIA's aggregation manager, in any case, of which some have no key")
	t.Attack()
	held := true
	for _, name := range []string{storageName, storageName + "\x00junk", aggregationName} {
		for _, key := range []ib.ServiceKey{{}, ib.NewServiceKey([16]byte{1})} {
			q := offer(t, "h1", call(name, key))
			held = h1.Silent(q, "it registers %q", name) && held
			q.Mask &^= mad.ServiceComponentServicePKey
			held = h1.Silent(q, "it registers %q under no P_Key", name) && held
		}
	}
	for _, name := range []string{"SHArP.Other", "sharp.aggregationmanager", "SHARP.\x01"} {
		held = h1.Silent(offer(t, "h1", call(name, nameKey())), "it registers %q", name) && held
	}
	_, one := finds(h5, storageName)
	if held && one {
		s.Stopped("a name that is mapped to a key is registered by clients with that key, and one that begins like a reserved one by no other client; clients find the one record that they should")
	}
	t.Reported(time.Second, "that h1 does not have the key of the name", t.Dropped("h1", trust.WrongServiceKey))
	t.Reported(time.Second, "that h1 registers a reserved name", t.Dropped("h1", trust.ReservedName))
	h1.Answered(offer(t, "h1", call("job.42", ib.ServiceKey{})), "it registers a name of its own")
}

// overwrittenService is T85.
func overwrittenService(s *drill.Scene) {
	t := s.Site(named(s))
	t.Customer("h5", "h3")
	h1, h2, h3, h5 := t.Client("h1"), t.Client("h2"), t.Client("h3"), t.Client("h5")
	own := ib.NewServiceKey([16]byte{0xAB, 15: 0xCD})
	keyed := func(r *mad.ServiceRecord) { copy(r.ServiceName[:], "db.keyed"); r.ServiceKey = own }
	plain := func(r *mad.ServiceRecord) { copy(r.ServiceName[:], "db.plain"); r.ServiceID = 2 }
	h3.Answered(offer(t, "h3", keyed), "it offers a service with a key of its own")
	h3.Answered(offer(t, "h3", plain), "it offers a service without a key")
	s.Tried("h1 of the same tenant and h2 of another overwrite and delete two services of h3, one of which has a ServiceKey; another program on h3 does so with that one")
	t.Attack()
	held := true
	for _, c := range []*drill.Client{h1, h2} {
		for _, set := range []func(*mad.ServiceRecord){keyed, plain} {
			spoilt := offer(t, "h3", func(r *mad.ServiceRecord) { set(r); r.ServiceKey = ib.ServiceKey{}; r.ServiceData8[0] = 0xEE })
			held = c.Silent(spoilt, "it overwrites a service of h3") && held
		}
		held = c.Silent(withdraw(t, "h3", 1, drill.KeyA, own), "it deletes a service of h3, with its key") && held
		held = c.Silent(withdraw(t, "h3", 2, drill.KeyA, ib.ServiceKey{}), "it deletes a service of h3") && held
	}
	t.Reported(time.Second, "that h1 acts for h3", t.Dropped("h1", trust.Proxy))
	if held {
		s.Stopped("a service is replaced and deleted by the port that offers it")
	}
	neighbour := t.Client("h3")
	for _, key := range []ib.ServiceKey{{}, ib.NewServiceKey([16]byte{1})} {
		held = refused(neighbour, offer(t, "h3", func(r *mad.ServiceRecord) { keyed(r); r.ServiceKey = key; r.ServiceData8[0] = 0xEE }), "it overwrites a service without its key") && held
		held = refused(neighbour, withdraw(t, "h3", 1, drill.KeyA, key), "it deletes a service without its key") && held
	}
	guid, place := t.GUID("h3", 1), t.Place("h3", 1)
	t.Reported(time.Second, "that a client on h3 does not have the key", drill.Is(func(e *sa.ServiceEvent) bool {
		return e.Kind == service.Refused && e.Reason == service.WrongKey && e.Asked.GUID == guid && e.Asked.Place == place
	}))
	for _, name := range []string{"db.keyed", "db.plain"} {
		rec, ok := finds(h5, name)
		held = ok && s.Check(rec.ServiceData8[0] == 0, "the service %s is not what h3 offers", name) && held
		held = s.Check(rec.ServiceKey.IsZero(), "h5 is shown the key of %s", name) && held
	}
	if held {
		s.Stopped("and on the same port by the client with its key, which is not shown")
	}
	h3.Answered(withdraw(t, "h3", 1, drill.KeyA, own), "it deletes its service with the key")
}

// endlessLeases is T86.
func endlessLeases(s *drill.Scene) {
	const most, bound = 5, 20 * time.Minute
	o := named(s)
	o.SA.Trust.MaxServices, o.SA.Services.MaxLease = most, bound
	t := s.Site(o)
	t.Customer("h5", "h3")
	h1, h3, h5 := t.Client("h1"), t.Client("h3"), t.Client("h5")
	facts := len(t.Facts())
	s.Tried("h1 registers services with leases that do not end, and with none, until it gets no more; a port may have %d, and the longest lease is %v", most, bound)
	t.Attack()
	longest := uint32(0)
	for n := range most + 3 {
		q := offer(t, "h1", func(r *mad.ServiceRecord) {
			r.ServiceID, r.ServiceLease = ib.ServiceID(n), mad.LeaseForever-uint32(n%2)
		})
		if n == 1 {
			q.Mask &^= mad.ServiceComponentServiceLease
		}
		if n >= most {
			if h1.Silent(q, "it registers service number %d", n+1) {
				s.Stopped("a port has so many services and no more")
			}
			continue
		}
		if m := h1.Answered(q, "it registers service number %d", n+1); m != nil {
			var rec mad.ServiceRecord
			s.Must(mad.Decode(m.SAData(), &rec))
			longest = max(longest, rec.ServiceLease)
		}
	}
	s.Check(len(t.Facts())-facts <= most, "h1 had %d facts saved", len(t.Facts())-facts)
	t.Reported(time.Second, "that h1 has too many services", t.Dropped("h1", trust.TooManyServices))
	h3.Answered(offer(t, "h3", func(r *mad.ServiceRecord) { copy(r.ServiceName[:], "db") }), "it offers a service of its own")
	finds(h5, "db")
	short := s.Check(longest <= uint32(bound/time.Second), "h1 was given a lease of %d s", longest)
	t.Run(bound + time.Second)
	gone := true
	for n := range most {
		m := h5.Ask(t.Service("h1", ib.ServiceID(n), drill.KeyA))
		gone = s.Check(m != nil && m.Status() == mad.StatusNoRecords, "service number %d of h1 is there after its lease", n+1) && gone
	}
	if short && gone {
		s.Stopped("the lease that a host is given is bounded, whatever it asks for, and what is not renewed goes")
	}
	h1.Answered(offer(t, "h1", func(*mad.ServiceRecord) {}), "it registers a service when the others are gone")
}

// oddNames is T87.
func oddNames(s *drill.Scene) {
	t := s.Site(named(s))
	t.Customer("h5", "h3")
	h1, h3, h5 := t.Client("h1"), t.Client("h3"), t.Client("h5")
	h3.Answered(offer(t, "h3", func(r *mad.ServiceRecord) { copy(r.ServiceName[:], "db") }), "it offers a service")
	names := []string{
		"a\nlevel=ERROR msg=\"h2 is hostile\"", "a\r\x1b[2J\x1b]0;owned\a", "\u202egpj.exe", "<script>alert(1)</script>", "${jndi:ldap://x}", "%s%n%x",
		"\xff\xfe\x80", strings.Repeat("A", 64), "", "db\x00hidden", "d\u0435b", "'; DROP TABLE services; --",
	}
	s.Tried("h1 registers %d names with line ends, control sequences of terminals, marks that turn text around, broken UTF-8, markup and no end; deletes what it registered, and registers what it may not", len(names))
	t.Attack()
	for n, name := range names {
		q := offer(t, "h1", func(r *mad.ServiceRecord) { copy(r.ServiceName[:], name); r.ServiceID = ib.ServiceID(n + 10) })
		h1.Answered(q, "it registers name number %d", n+1)
		bad := offer(t, "h1", func(r *mad.ServiceRecord) { copy(r.ServiceName[:], name); r.ServicePKey = drill.KeyB })
		refused(h1, bad, "it registers a name under the P_Key of tenant B")
	}
	var told []string
	for n := range names {
		h1.Answered(withdraw(t, "h1", ib.ServiceID(n+10), drill.KeyA, ib.ServiceKey{}), "it deletes name number %d", n+1)
	}
	t.Run(2 * time.Second)
	for _, h := range t.Since(t.Begun) {
		told = append(told, h.Event.String())
	}
	clean := s.Check(len(told) > 2*len(names), "only %d events report it", len(told))
	for _, text := range told {
		clean = s.Check(plain(text), "an event has bytes of a name: %q", text) && clean
	}
	var rec mad.ServiceRecord
	for _, name := range names {
		clear(rec.ServiceName[:])
		copy(rec.ServiceName[:], name)
		clean = s.Check(utf8.ValidString(rec.Name()) && !strings.ContainsAny(rec.Name(), "\n\r\x1b\a\u202e"), "a dissected record shows bytes of a name: %q", rec.Name()) && clean
	}
	if clean {
		s.Stopped("names are shown in quotes with all that is not plain escaped, in every event")
	}
	t.Reported(time.Second, "what h1 was refused", drill.Is(func(e *sa.ServiceEvent) bool {
		return e.Kind == service.Refused && e.Asked.Place == t.Place("h1", 1) && e.Reason == service.NotInPartition
	}))
	t.Reported(time.Second, "that a name was registered", drill.Is(func(e *sa.ServiceEvent) bool { return e.Kind == service.Registered && strings.Contains(e.Name, "\n") }))
	one, ok := finds(h5, "db")
	s.Check(ok && bytes.HasPrefix(one.ServiceName[:], []byte("db\x00")), "h5 finds another service than h3 offers")
}

// plain reports text without anything but printable ASCII.
func plain(text string) bool {
	for _, b := range []byte(text) {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return true
}
