package drill

import (
	"bytes"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

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
	o.SA.Tenant = func(e *portindex.EndPort) limiter.Tenant { return tenants[e.GUID] }
}

// Client is a program on a host that asks subnet administration.
type Client struct {
	Site *Site
	Host string
	At   *sim.Station
	TID  ib.TID
	took time.Duration // from the last question to its answer
}

func (t *Site) Client(host string) *Client {
	at, err := t.Fabric.Station(host, false)
	t.Scene.Must(err)
	return &Client{Site: t, Host: host, At: at}
}

// Question is a request to subnet administration. Zero fields are as those of an ordinary, untrusted client.
type Question struct {
	Method mad.Method
	Attr   mad.AttrID
	mod    uint32
	Mask   mad.ComponentMask
	Key    ib.SAKey
	Data   func([]byte) // fills the record; nil: zeros
	SGID   ib.GID       // that a GRH shows; zero: there is no GRH
}

// Get is a question for the one record that a mask names.
func Get(attr mad.AttrID, mask mad.ComponentMask, data func([]byte)) Question {
	return Question{Method: mad.MethodGet, Attr: attr, Mask: mask, Data: data}
}

// Packet makes the packet of a question.
func (c *Client) Packet(q *Question) transport.Packet {
	c.TID++
	p := transport.Packet{LID: c.Site.View().LID, QP: GMPQP}
	p.MAD.SetHeader(mad.Header{
		Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: q.Method, TID: c.TID, Attr: q.Attr, Mod: q.mod,
	})
	p.MAD.SetSAKey(q.Key)
	p.MAD.SetComponentMask(q.Mask)
	if q.Method == mad.MethodGetMulti { // is always sent in segments; all of ours are one
		p.MAD.SetRMPPHeader(mad.RMPPHeader{
			Version: mad.RMPPVersion, Type: mad.RMPPData, Flags: mad.RMPPActive | mad.RMPPFirst | mad.RMPPLast,
			Data1: 1, Data2: mad.SAHeaderSize + mad.SADataSize,
		})
	}
	if q.Data != nil {
		q.Data(p.MAD.SAData())
	}
	if q.SGID != (ib.GID{}) {
		p.GRH = transport.GRH{Present: true, GID: ib.MakeGID(ib.DefaultPrefix, c.Site.GUID("sm", 1))}
	}
	return p
}

// GMPQP is the queue pair of general management.
const GMPQP = 1

// Send sends a question and does not wait.
func (c *Client) Send(q Question) {
	p := c.Packet(&q)
	c.At.UseGID(q.SGID)
	c.At.Send(p)
	c.Site.Collect()
}

// tidMask holds the bits of a transaction id that a station may choose.
const tidMask = 1<<48 - 1

// AnswerTime is how long an answer is waited for: far more than it takes.
const AnswerTime = 2 * time.Millisecond

// Ask sends a question, and returns the answer of one MAD, nil if there is none.
func (c *Client) Ask(q Question) *mad.MAD {
	got := c.All(q)
	if len(got) == 0 {
		return nil
	}
	return &got[0]
}

// All sends a question and returns the MADs of its answer, which it acknowledges. Then customers have their turn, so that
// they feel the effect.
func (c *Client) All(q Question) (got []mad.MAD) {
	c.At.Take(nil)
	c.Send(q)
	began := c.Site.Now()
	done := false
	c.Site.Until(AnswerTime, func() bool {
		for _, p := range c.At.Take(nil) {
			if p.Undelivered || p.MAD.TID()&tidMask != c.TID {
				continue
			}
			c.took = c.Site.Now() - began
			switch {
			case !p.MAD.RMPPFlags().Has(mad.RMPPActive):
				got, done = append(got, p.MAD), true
			case p.MAD.RMPPType() == mad.RMPPData:
				got = append(got, p.MAD)
				c.acknowledge(p, q.Method)
				done = p.MAD.RMPPFlags().Has(mad.RMPPLast)
			case p.MAD.RMPPType() != mad.RMPPAck: // the sender aborted
				got, done = append(got, p.MAD), true
			}
		}
		return done
	})
	c.Site.Live()
	return got
}

// acknowledge has the sender of a segment go on.
func (c *Client) acknowledge(p transport.Packet, method mad.Method) {
	const window = 8
	p.MAD.SetMethod(method)
	p.MAD.SetRMPPType(mad.RMPPAck)
	p.MAD.SetRMPPFlags(mad.RMPPActive)
	p.MAD.SetRMPPData2(p.MAD.RMPPData1() + window)
	c.At.Send(p)
	c.Site.Collect()
}

// Table asks for a table and returns its records, false if it does not come whole.
func (c *Client) Table(q Question) (records [][]byte, ok bool) {
	got := c.All(q)
	if len(got) == 0 || got[len(got)-1].RMPPType() > mad.RMPPAck {
		return nil, false
	}
	if !got[0].RMPPFlags().Has(mad.RMPPActive) {
		return nil, got[0].Status() == mad.StatusOK
	}
	data, err := rmpp.Reassemble(got)
	c.Site.Scene.Must(err)
	size := 8 * int(got[0].AttributeOffset())
	for ; size > 0 && len(data) >= size; data = data[size:] {
		records = append(records, data[:size])
	}
	return records, true
}

// Silent demands that a question gets no answer. The text names its subject.
func (c *Client) Silent(q Question, what string, args ...any) bool {
	c.Site.Scene.Must(c.Site.Err())
	return c.Site.Scene.Check(c.Ask(q) == nil, c.Host+" is answered: "+what, args...)
}

// Answered demands an answer without an error, and returns it; nil if there is none.
func (c *Client) Answered(q Question, what string, args ...any) *mad.MAD {
	m := c.Ask(q)
	s := c.Site.Scene
	switch {
	case !s.Check(m != nil, c.Host+" gets no answer: "+what, args...):
		return nil
	case !s.Check(m.Status() == mad.StatusOK, c.Host+" is answered with "+m.Status().String()+": "+what, args...):
		return nil
	}
	return m
}

// bare returns an answer without data that the sender knows already: its transaction id, and the question if it is
// returned. Two questions with equal bare answers were answered alike.
func (q *Question) bare(m *mad.MAD) mad.MAD {
	if m == nil {
		return mad.MAD{}
	}
	b := *m
	b.SetTID(0)
	var asked [mad.SADataSize]byte
	if q.Data != nil {
		q.Data(asked[:])
	}
	if bytes.Equal(b.SAData(), asked[:]) {
		clear(b.SAData())
	}
	return b
}

// Alike demands that two questions are answered alike, in content and in time.
func (c *Client) Alike(a, b Question, what string, args ...any) bool {
	ma := c.Ask(a)
	took := c.took
	mb := c.Ask(b)
	s := c.Site.Scene
	same := s.Check(a.bare(ma) == b.bare(mb), "answers reveal to "+c.Host+": "+what, args...)
	return s.Check(took == c.took, "the time that answers take reveals to "+c.Host+": "+what, args...) && same
}

// GIDOf is that of a host in the subnet.
func (t *Site) GIDOf(host string) ib.GID { return ib.MakeGID(ib.DefaultPrefix, t.GUID(host, 1)) }

// PathTo asks for the path of a host to a GID.
func (t *Site) PathTo(host string, to ib.GID) Question {
	rec := mad.PathRecord{SGID: t.GIDOf(host), DGID: to}
	return Get(mad.AttrPathRecord, mad.PathComponentSGID|mad.PathComponentDGID, With(t.Scene, &rec))
}

// Join has a host become a full member of a group, which is made if it is not there.
func (t *Site) Join(host string, mgid ib.GID, pkey ib.PKey) Question {
	rec := mad.MCMemberRecord{MGID: mgid, PortGID: t.GIDOf(host), JoinState: ib.FullMember, PKey: pkey, QKey: 0x1234}
	return Question{Method: mad.MethodSet, Attr: mad.AttrMCMemberRecord, Mask: mad.MCMemberCreate, Data: With(t.Scene, &rec)}
}

// Leave has a host be no full member of a group any longer.
func (t *Site) Leave(host string, mgid ib.GID) Question {
	rec := mad.MCMemberRecord{MGID: mgid, PortGID: t.GIDOf(host), JoinState: ib.FullMember}
	return Question{Method: mad.MethodDelete, Attr: mad.AttrMCMemberRecord, Mask: mad.MCMemberJoin, Data: With(t.Scene, &rec)}
}

// Group asks for a group.
func (t *Site) Group(mgid ib.GID) Question {
	return Get(mad.AttrMCMemberRecord, mad.MCMemberComponentMGID, With(t.Scene, &mad.MCMemberRecord{MGID: mgid}))
}

// GroupOf is a multicast GID for drills.
func GroupOf(n uint16) ib.GID {
	return ib.GID{0xFF, 0x12, 0xA0, 0x1C, 12: 0x0D, 14: byte(n >> 8), 15: byte(n)}
}

// Register has a host offer something by name for ten minutes.
func (t *Site) Register(host string, id ib.ServiceID, name string, pkey ib.PKey) Question {
	rec := mad.ServiceRecord{ServiceID: id, ServiceGID: t.GIDOf(host), ServicePKey: pkey, ServiceLease: 600}
	copy(rec.ServiceName[:], name)
	return Question{Method: mad.MethodSet, Attr: mad.AttrServiceRecord, Mask: ServiceMask, Data: With(t.Scene, &rec)}
}

// ServiceMask is the mask of registrations and of queries for them.
const ServiceMask = mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServicePKey |
	mad.ServiceComponentServiceLease | mad.ServiceComponentServiceName

// Service asks for a service of a host.
func (t *Site) Service(host string, id ib.ServiceID, pkey ib.PKey) Question {
	rec := mad.ServiceRecord{ServiceID: id, ServiceGID: t.GIDOf(host), ServicePKey: pkey}
	const mask = mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServicePKey
	return Get(mad.AttrServiceRecord, mask, With(t.Scene, &rec))
}

// Subscribe asks for generic notices of a number about all ports.
func Subscribe(s *Scene, trap mad.TrapNum) Question {
	info := mad.InformInfo{
		LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: trap, ProducerType: mad.AllProducers,
	}
	return Question{Method: mad.MethodSet, Attr: mad.AttrInformInfo, Data: With(s, &info)}
}

// customer is a victim that lives by what the manager answers: it asks the same again
// and again, and must be answered as it was in the beginning.
type customer struct {
	Client
	what    string // it asks for
	make    func() transport.Packet
	bare    func(*mad.MAD) mad.MAD
	first   *mad.MAD // answer
	asked   time.Duration
	waiting bool
	again   int           // how often it sends a question again that has no answer
	left    int           // of that, for the question that waits
	slowest time.Duration // since the last call of Site.slowest
	Sent    uint64
	Lost    uint64
}

const (
	// customerPause is how long a customer waits between questions.
	customerPause = 200 * time.Microsecond
	// Patience is how long it waits for an answer.
	Patience = 20 * time.Millisecond
)

// Customer is a host that asks for the path to its partner from now on.
func (t *Site) Customer(host, partner string) *customer {
	c := &customer{Client: *t.Client(host), what: "its path to " + partner}
	q := t.PathTo(host, t.GIDOf(partner))
	c.make, c.bare = func() transport.Packet { return c.Packet(&q) }, q.bare
	t.admit(c)
	return c
}

// Standby is a host with another subnet manager, which has the M_Key of our port and asks whether we are there.
func (t *Site) Standby(host string) *customer {
	key := t.KeyOf("sm")
	c := &customer{Client: *t.Client(host), what: "SMInfo", again: 1} // OpenSM takes over after four without an answer
	c.make = func() transport.Packet {
		c.TID++
		p := transport.Packet{LID: t.View().LID}
		mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: c.TID}, nil, key)
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
	t.Customers = append(t.Customers, c)
	t.Live()
	t.Scene.Check(c.first != nil && c.first.Status() == mad.StatusOK, "%s cannot ask for %s, so nothing is proven", c.Host, c.what)
}

// Live lets each customer take its turn, and waits for the answers.
func (t *Site) Live() {
	if len(t.Customers) == 0 || t.living {
		return
	}
	t.living = true
	t.Poll(true)
	t.Until(Patience+time.Millisecond, func() bool { return t.Poll(false) == 0 })
	t.living = false
}

// Poll lets customers take their answers, and ask if they may, and returns how many wait.
func (t *Site) Poll(ask bool) (waiting int) {
	for _, c := range t.Customers {
		c.poll(ask)
		if c.waiting {
			waiting++
		}
	}
	return waiting
}

func (c *customer) poll(ask bool) {
	now := c.Site.Now()
	for _, p := range c.At.Take(nil) {
		if p.Undelivered || !c.waiting || p.MAD.TID()&tidMask != c.TID {
			continue
		}
		c.waiting = false
		m := c.bare(&p.MAD)
		if c.first == nil {
			c.first = &m
		}
		if m != *c.first {
			c.Lost++
			continue
		}
		c.slowest = max(c.slowest, now-c.asked)
	}
	if c.waiting && now-c.asked >= Patience && c.left > 0 {
		c.left--
		c.asked = now
		c.At.Send(c.make())
		c.Site.Collect()
		return
	}
	if c.waiting && now-c.asked >= Patience {
		c.waiting = false
		c.Lost++
	}
	if ask && !c.waiting && (c.Sent == 0 || now-c.asked >= customerPause) {
		c.waiting, c.asked, c.left = true, now, c.again
		c.Sent++
		c.At.Send(c.make())
		c.Site.Collect()
	}
}

// Slowest is the longest that a customer waited for an answer since this was asked last.
func (t *Site) Slowest() (d time.Duration) {
	for _, c := range t.Customers {
		d = max(d, c.slowest)
		c.slowest = 0
	}
	return d
}

// countCustomers adds up what customers felt, and demands that they felt nothing.
func (s *Scene) countCustomers(t *Site) {
	for _, c := range t.Customers {
		s.Result.Victims.Sent += c.Sent
		s.Result.Victims.Lost += c.Lost
		s.Check(c.Sent > 0, "%s asked nothing, so nothing is proven", c.Host)
		s.Check(c.Lost == 0, "%s was not answered, or otherwise than before, to %d of %d questions for %s", c.Host, c.Lost, c.Sent, c.what)
	}
}

// Dropped returns a test for events about dropped requests of a host.
func (t *Site) Dropped(host string, why trust.Verdict) func(sm.Event) bool {
	guid, place := t.GUID(host, 1), t.Place(host, 1)
	return Is(func(e *sa.Violation) bool { return e.Verdict == why && e.GUID == guid && e.Place == place })
}

// DroppedTotal returns how often a request of a host was dropped, by the last event.
func (t *Site) DroppedTotal(host string, why trust.Verdict, attr mad.AttrID, method mad.Method) (n uint64) {
	tells := t.Dropped(host, why)
	for _, h := range t.Since(t.Begun) {
		if e, ok := h.Event.(*sa.Violation); ok && tells(e) && e.Attr == attr && e.Method == method {
			n = e.Count
		}
	}
	return n
}
