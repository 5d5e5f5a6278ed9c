package drill

import (
	"bytes"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/book"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// saKey is the SA_Key of sites. It is no secret: nothing real has it.
var saKey = ib.NewSAKey(0x8F3AC91D27B6E504)

// administered is a site of two tenants where subnet administration answers hosts, as
// strictly as it does when nothing is configured.
func administered() SiteOptions {
	cfg := sa.DefaultConfig()
	cfg.Key = saKey
	return SiteOptions{Tenants: twoTenants(), SA: &cfg}
}

// numberTenants assigns numbers to the tenants of a site, for the limiter.
func (o *SiteOptions) numberTenants() {
	tenants := make(map[ib.GUID]limiter.Tenant)
	for i, tn := range o.Tenants {
		for _, h := range tn.Hosts {
			if n := o.Netlist.Find(h); n != nil {
				tenants[n.PortGUID(1)] = limiter.Tenant(i + 1)
			}
		}
	}
	o.SA.Tenant = func(e *book.EndPort) limiter.Tenant { return tenants[e.GUID] }
}

// client is a program on a host that asks subnet administration.
type client struct {
	site *Site
	host string
	at   *sim.Station
	tid  ib.TID
	took time.Duration // from the last question to its answer
}

func (t *Site) client(host string) *client {
	at, err := t.Fabric.Station(host, false)
	t.scene.Must(err)
	return &client{site: t, host: host, at: at}
}

// question is a request to subnet administration. Zero fields are as those of an ordinary, untrusted client.
type question struct {
	method mad.Method
	attr   mad.AttrID
	mod    uint32
	mask   mad.ComponentMask
	key    ib.SAKey
	data   func([]byte) // fills the record; nil: zeros
	sgid   ib.GID       // that a GRH shows; zero: there is no GRH
}

// get is a question for the one record that a mask names.
func get(attr mad.AttrID, mask mad.ComponentMask, data func([]byte)) question {
	return question{method: mad.MethodGet, attr: attr, mask: mask, data: data}
}

// packet makes the packet of a question.
func (c *client) packet(q *question) transport.Packet {
	c.tid++
	p := transport.Packet{LID: c.site.View().LID, QP: gmpQP}
	p.MAD.SetHeader(mad.Header{
		Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: q.method, TID: c.tid, Attr: q.attr, Mod: q.mod,
	})
	p.MAD.SetSAKey(q.key)
	p.MAD.SetComponentMask(q.mask)
	if q.method == mad.MethodGetMulti { // is always sent in segments; all of ours are one
		p.MAD.SetRMPPHeader(mad.RMPPHeader{
			Version: mad.RMPPVersion, Type: mad.RMPPData, Flags: mad.RMPPActive | mad.RMPPFirst | mad.RMPPLast,
			Data1: 1, Data2: mad.SAHeaderSize + mad.SADataSize,
		})
	}
	if q.data != nil {
		q.data(p.MAD.SAData())
	}
	if q.sgid != (ib.GID{}) {
		p.GRH = transport.GRH{Present: true, GID: ib.MakeGID(ib.DefaultPrefix, c.site.GUID("sm", 1))}
	}
	return p
}

// gmpQP is the queue pair of general management.
const gmpQP = 1

// send sends a question and does not wait.
func (c *client) send(q question) {
	p := c.packet(&q)
	c.at.UseGID(q.sgid)
	c.at.Send(p)
	c.site.Collect()
}

// answerTime is how long an answer is waited for: far more than it takes.
const answerTime = 2 * time.Millisecond

// ask sends a question, and returns the answer of one MAD, nil if there is none.
func (c *client) ask(q question) *mad.MAD {
	got := c.all(q)
	if len(got) == 0 {
		return nil
	}
	return &got[0]
}

// all sends a question and returns the MADs of its answer, which it acknowledges. Then customers have their turn, so that
// they feel the effect.
func (c *client) all(q question) (got []mad.MAD) {
	c.at.Take(nil)
	c.send(q)
	began := c.site.Now()
	done := false
	c.site.Until(answerTime, func() bool {
		for _, p := range c.at.Take(nil) {
			if p.Undelivered || p.MAD.TID()&tidMask != c.tid {
				continue
			}
			c.took = c.site.Now() - began
			switch {
			case !p.MAD.RMPPFlags().Has(mad.RMPPActive):
				got, done = append(got, p.MAD), true
			case p.MAD.RMPPType() == mad.RMPPData:
				got = append(got, p.MAD)
				c.acknowledge(p, q.method)
				done = p.MAD.RMPPFlags().Has(mad.RMPPLast)
			case p.MAD.RMPPType() != mad.RMPPAck: // the sender aborted
				got, done = append(got, p.MAD), true
			}
		}
		return done
	})
	c.site.live()
	return got
}

// acknowledge has the sender of a segment go on.
func (c *client) acknowledge(p transport.Packet, method mad.Method) {
	const window = 8
	p.MAD.SetMethod(method)
	p.MAD.SetRMPPType(mad.RMPPAck)
	p.MAD.SetRMPPFlags(mad.RMPPActive)
	p.MAD.SetRMPPData2(p.MAD.RMPPData1() + window)
	c.at.Send(p)
	c.site.Collect()
}

// table asks for a table and returns its records, false if it does not come whole.
func (c *client) table(q question) (records [][]byte, ok bool) {
	got := c.all(q)
	if len(got) == 0 || got[len(got)-1].RMPPType() > mad.RMPPAck {
		return nil, false
	}
	if !got[0].RMPPFlags().Has(mad.RMPPActive) {
		return nil, got[0].Status() == mad.StatusOK
	}
	data, err := rmpp.Reassemble(got)
	c.site.scene.Must(err)
	size := 8 * int(got[0].AttributeOffset())
	for ; size > 0 && len(data) >= size; data = data[size:] {
		records = append(records, data[:size])
	}
	return records, true
}

// silent demands that a question gets no answer. The text names its subject.
func (c *client) silent(q question, what string, args ...any) bool {
	c.site.scene.Must(c.site.Err())
	return c.site.scene.Check(c.ask(q) == nil, c.host+" is answered: "+what, args...)
}

// answered demands an answer without an error, and returns it; nil if there is none.
func (c *client) answered(q question, what string, args ...any) *mad.MAD {
	m := c.ask(q)
	s := c.site.scene
	switch {
	case !s.Check(m != nil, c.host+" gets no answer: "+what, args...):
		return nil
	case !s.Check(m.Status() == mad.StatusOK, c.host+" is answered with "+m.Status().String()+": "+what, args...):
		return nil
	}
	return m
}

// bare returns an answer without data that the sender knows already: its transaction id, and the question if it is
// returned. Two questions with equal bare answers were answered alike.
func (q *question) bare(m *mad.MAD) mad.MAD {
	if m == nil {
		return mad.MAD{}
	}
	b := *m
	b.SetTID(0)
	var asked [mad.SADataSize]byte
	if q.data != nil {
		q.data(asked[:])
	}
	if bytes.Equal(b.SAData(), asked[:]) {
		clear(b.SAData())
	}
	return b
}

// alike demands that two questions are answered alike, in content and in time.
func (c *client) alike(a, b question, what string, args ...any) bool {
	ma := c.ask(a)
	took := c.took
	mb := c.ask(b)
	s := c.site.scene
	same := s.Check(a.bare(ma) == b.bare(mb), "answers reveal to "+c.host+": "+what, args...)
	return s.Check(took == c.took, "the time that answers take reveals to "+c.host+": "+what, args...) && same
}

// gidOf is that of a host in the subnet.
func (t *Site) gidOf(host string) ib.GID { return ib.MakeGID(ib.DefaultPrefix, t.GUID(host, 1)) }

// pathTo asks for the path of a host to a GID.
func (t *Site) pathTo(host string, to ib.GID) question {
	rec := mad.PathRecord{SGID: t.gidOf(host), DGID: to}
	return get(mad.AttrPathRecord, mad.PathComponentSGID|mad.PathComponentDGID, with(t.scene, &rec))
}

// join has a host become a full member of a group, which is made if it is not there.
func (t *Site) join(host string, mgid ib.GID, pkey ib.PKey) question {
	rec := mad.MCMemberRecord{MGID: mgid, PortGID: t.gidOf(host), JoinState: ib.FullMember, PKey: pkey, QKey: 0x1234}
	return question{method: mad.MethodSet, attr: mad.AttrMCMemberRecord, mask: mad.MCMemberCreate, data: with(t.scene, &rec)}
}

// leave has a host be no full member of a group any longer.
func (t *Site) leave(host string, mgid ib.GID) question {
	rec := mad.MCMemberRecord{MGID: mgid, PortGID: t.gidOf(host), JoinState: ib.FullMember}
	return question{method: mad.MethodDelete, attr: mad.AttrMCMemberRecord, mask: mad.MCMemberJoin, data: with(t.scene, &rec)}
}

// group asks for a group.
func (t *Site) group(mgid ib.GID) question {
	return get(mad.AttrMCMemberRecord, mad.MCMemberComponentMGID, with(t.scene, &mad.MCMemberRecord{MGID: mgid}))
}

// groupOf is a multicast GID for drills.
func groupOf(n uint16) ib.GID {
	return ib.GID{0xFF, 0x12, 0xA0, 0x1C, 12: 0x0D, 14: byte(n >> 8), 15: byte(n)}
}

// register has a host offer something by name for ten minutes.
func (t *Site) register(host string, id ib.ServiceID, name string, pkey ib.PKey) question {
	rec := mad.ServiceRecord{ServiceID: id, ServiceGID: t.gidOf(host), ServicePKey: pkey, ServiceLease: 600}
	copy(rec.ServiceName[:], name)
	return question{method: mad.MethodSet, attr: mad.AttrServiceRecord, mask: serviceMask, data: with(t.scene, &rec)}
}

// serviceMask is the mask of registrations and of queries for them.
const serviceMask = mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServicePKey |
	mad.ServiceComponentServiceLease | mad.ServiceComponentServiceName

// service asks for a service of a host.
func (t *Site) service(host string, id ib.ServiceID, pkey ib.PKey) question {
	rec := mad.ServiceRecord{ServiceID: id, ServiceGID: t.gidOf(host), ServicePKey: pkey}
	const mask = mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServicePKey
	return get(mad.AttrServiceRecord, mask, with(t.scene, &rec))
}

// subscribe asks for generic notices of a number about all ports.
func subscribe(s *Scene, trap mad.TrapNum) question {
	info := mad.InformInfo{
		LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: trap, ProducerType: mad.AllProducers,
	}
	return question{method: mad.MethodSet, attr: mad.AttrInformInfo, data: with(s, &info)}
}

// customer is a victim that lives by what the manager answers: it asks the same again
// and again, and must be answered as it was in the beginning.
type customer struct {
	client
	what    string // it asks for
	make    func() transport.Packet
	bare    func(*mad.MAD) mad.MAD
	first   *mad.MAD // answer
	asked   time.Duration
	waiting bool
	again   int           // how often it sends a question again that has no answer
	left    int           // of that, for the question that waits
	slowest time.Duration // since the last call of Site.slowest
	sent    uint64
	lost    uint64
}

const (
	// customerPause is how long a customer waits between questions.
	customerPause = 200 * time.Microsecond
	// patience is how long it waits for an answer.
	patience = 20 * time.Millisecond
)

// Customer is a host that asks for the path to its partner from now on.
func (t *Site) Customer(host, partner string) *customer {
	c := &customer{client: *t.client(host), what: "its path to " + partner}
	q := t.pathTo(host, t.gidOf(partner))
	c.make, c.bare = func() transport.Packet { return c.packet(&q) }, q.bare
	t.admit(c)
	return c
}

// Standby is a host with another subnet manager, which has the M_Key of our port and
// asks whether we are there.
func (t *Site) Standby(host string) *customer {
	key := t.keyOf("sm")
	c := &customer{client: *t.client(host), what: "SMInfo", again: 1} // OpenSM takes over after four without an answer
	c.make = func() transport.Packet {
		c.tid++
		p := transport.Packet{LID: t.View().LID}
		mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: c.tid}, nil, key)
		return p
	}
	c.bare = func(m *mad.MAD) mad.MAD {
		b := *m
		b.SetTID(0)
		clear(b.Data()) // counts
		return b
	}
	t.admit(c)
	return c
}

// admit has a customer ask for the first time.
func (t *Site) admit(c *customer) {
	t.customers = append(t.customers, c)
	t.live()
	t.scene.Check(c.first != nil && c.first.Status() == mad.StatusOK, "%s cannot ask for %s, so nothing is proven", c.host, c.what)
}

// live lets each customer take its turn, and waits for the answers.
func (t *Site) live() {
	if len(t.customers) == 0 || t.living {
		return
	}
	t.living = true
	t.poll(true)
	t.Until(patience+time.Millisecond, func() bool { return t.poll(false) == 0 })
	t.living = false
}

// poll lets customers take their answers, and ask if they may, and returns how many wait.
func (t *Site) poll(ask bool) (waiting int) {
	for _, c := range t.customers {
		c.poll(ask)
		if c.waiting {
			waiting++
		}
	}
	return waiting
}

func (c *customer) poll(ask bool) {
	now := c.site.Now()
	for _, p := range c.at.Take(nil) {
		if p.Undelivered || !c.waiting || p.MAD.TID()&tidMask != c.tid {
			continue
		}
		c.waiting = false
		m := c.bare(&p.MAD)
		if c.first == nil {
			c.first = &m
		}
		if m != *c.first {
			c.lost++
			continue
		}
		c.slowest = max(c.slowest, now-c.asked)
	}
	if c.waiting && now-c.asked >= patience && c.left > 0 {
		c.left--
		c.asked = now
		c.at.Send(c.make())
		c.site.Collect()
		return
	}
	if c.waiting && now-c.asked >= patience {
		c.waiting = false
		c.lost++
	}
	if ask && !c.waiting && (c.sent == 0 || now-c.asked >= customerPause) {
		c.waiting, c.asked, c.left = true, now, c.again
		c.sent++
		c.at.Send(c.make())
		c.site.Collect()
	}
}

// slowest is the longest that a customer waited for an answer since this was asked last.
func (t *Site) slowest() (d time.Duration) {
	for _, c := range t.customers {
		d = max(d, c.slowest)
		c.slowest = 0
	}
	return d
}

// countCustomers adds up what customers felt, and demands that they felt nothing.
func (s *Scene) countCustomers(t *Site) {
	for _, c := range t.customers {
		s.result.Victims.Sent += c.sent
		s.result.Victims.Lost += c.lost
		s.Check(c.sent > 0, "%s asked nothing, so nothing is proven", c.host)
		s.Check(c.lost == 0, "%s was not answered, or otherwise than before, to %d of %d questions for %s", c.host, c.lost, c.sent, c.what)
	}
}

// dropped returns a test for events about dropped requests of a host.
func (t *Site) dropped(host string, why trust.Verdict) func(sm.Event) bool {
	guid, place := t.GUID(host, 1), t.Place(host, 1)
	return is(func(e *sa.Violation) bool { return e.Verdict == why && e.GUID == guid && e.Place == place })
}

// droppedTotal returns how often a request of a host was dropped, by the last event.
func (t *Site) droppedTotal(host string, why trust.Verdict, attr mad.AttrID, method mad.Method) (n uint64) {
	tells := t.dropped(host, why)
	for _, h := range t.Since(t.mark) {
		if e, ok := h.Event.(*sa.Violation); ok && tells(e) && e.Attr == attr && e.Method == method {
			n = e.Count
		}
	}
	return n
}
