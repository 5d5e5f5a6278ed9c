package sa

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/record"
	"portcullis/fabricsm/transport"
)

// rows makes the records of an answer.
type rows interface {
	// Step writes the next record in at most the given number of steps. Without one, done reports that there is none left.
	Step(dst []byte, most int) (n int, done bool)
}

// stride is how many steps are taken before others have their turn: half a millisecond.
const stride = 1024

// ask answers an allowed request. data is its payload, of all its segments.
func (a *Agent) ask(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD, data []byte) {
	attr, method := m.Attr(), m.Method()
	gets := method == mad.MethodGet || method == mad.MethodGetTable
	changes := method == mad.MethodSet || method == mad.MethodDelete
	switch {
	case a.book.Routes.Early && (attr == mad.AttrTraceRecord || attr == mad.AttrLinearForwardingRecord):
		a.reply(p, m, mad.StatusBusy) // the tables of switches are still being read
	case attr == mad.AttrClassPortInfo && method == mad.MethodGet:
		a.describe(a.reply(p, m, mad.StatusOK))
	case attr == mad.AttrInformInfo && method == mad.MethodSet,
		changes && (attr == mad.AttrMCMemberRecord || attr == mad.AttrServiceRecord || attr == mad.AttrGUIDInfoRecord):
		a.change(now, p, who, m)
	case attr == mad.AttrMCMemberRecord && gets:
		a.askGroups(now, p, who, m)
	case attr == mad.AttrServiceRecord && gets:
		a.askServices(now, p, who, m)
	case attr == mad.AttrInformInfoRecord && gets:
		a.askSubscriptions(now, p, who, m)
	case attr == mad.AttrPathRecord && method == mad.MethodGet:
		if !path.Searches(who, m.ComponentMask()) || !a.search(now, p, who, m) {
			a.path(p, who, m)
		}
	case attr == mad.AttrPathRecord && method == mad.MethodGetTable:
		as := a.as(Paths, who)
		c, status := a.paths.GetTable(a.book, pathGroups{a.groups}, &as, m)
		a.answerGet(now, p, who, m, &c, status)
	case attr == mad.AttrMultiPathRecord && method == mad.MethodGetMulti:
		c, status := a.paths.GetMulti(a.book, who, m.ComponentMask(), data)
		a.answerGet(now, p, who, m, &c, status)
	case attr == mad.AttrTraceRecord && method == mad.MethodGetTrace:
		t, status := a.paths.GetTrace(a.book, who, m.ComponentMask(), data)
		a.answerGet(now, p, who, m, &t, status)
	case record.Answers(attr):
		q := record.QueryOf(m)
		c, status := record.Find(a.book, who, &q)
		a.answerGet(now, p, who, m, &c, status)
	default:
		a.reply(p, m, mad.StatusUnsupportedMethodAttr)
	}
}

// search answers a Get for a path that leaves an end open. It returns false for the path to a group.
func (a *Agent) search(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) bool {
	as := a.as(Paths, who)
	s, status, ok := a.paths.Search(a.book, &as, m)
	if ok {
		a.answerGet(now, p, who, m, &s, status)
	}
	return ok
}

// path answers the most frequent request of hosts. Its cost is that of one pair of ports.
func (a *Agent) path(p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	to := a.reply(p, m, mad.StatusOK)
	copy(to.SAData(), m.SAData())
	as := a.as(Paths, who)
	status, _ := a.paths.Get(a.book, pathGroups{a.groups}, &as, to)
	to.SetStatus(status)
	if status == mad.StatusOK {
		to.SetAttributeOffset(mad.AttributeOffset(mad.AttrPathRecord))
	}
}

// pathGroups returns paths to multicast groups.
type pathGroups struct{ *group.Registry }

// PathGroup implements path.Groups.
func (g pathGroups) PathGroup(mgid ib.GID) (path.Group, bool) {
	at := g.Group(mgid)
	if at == nil {
		return path.Group{}, false
	}
	return path.Group{
		MLID: at.MLID, PKey: at.PKey, MTU: at.MTU, Rate: at.Rate, PacketLifeTime: at.PacketLifeTime, SL: at.SL,
		FlowLabel: at.FlowLabel, HopLimit: at.HopLimit, TClass: at.TClass,
	}, true
}

// respTime is the longest time from a request to its answer: 0.27 s.
const respTime ib.ExpTime = 16

// describe answers for ClassPortInfo.
func (a *Agent) describe(to *mad.MAD) {
	i := record.ClassPortInfo(record.Capabilities{Subscriptions: true, Multicast: true, MultiPath: true, QoS: a.cfg.Paths.Policy != nil, Aliases: a.cfg.Aliases.Inventory != nil, RespTimeValue: respTime})
	if mad.Encode(to.SAData(), &i) != nil {
		to.SetStatus(mad.StatusNoResources)
	}
	to.SetAttributeOffset(mad.AttributeOffset(mad.AttrClassPortInfo))
}

// askGroups answers a query for MCMemberRecords.
func (a *Agent) askGroups(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	var rec mad.MCMemberRecord
	if decode(a, p, m, &rec) {
		rec.ProxyJoin = rec.ProxyJoin || m.SAData()[49]&1 != 0 // where saquery has it
		q := a.groups.Now().Query(a.as(Registrations, who), a.book.EndPort(who.Port), a.cfg.Subnet, &rec, m.ComponentMask())
		a.answerGet(now, p, who, m, &q, mad.StatusOK)
	}
}

// askSubscriptions answers a query for InformInfoRecords.
func (a *Agent) askSubscriptions(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	var rec mad.InformInfoRecord
	if decode(a, p, m, &rec) {
		q := a.subs.Now().Query(a.fabric, *who, a.cfg.Subnet, &rec, m.ComponentMask())
		a.answerGet(now, p, who, m, &q, mad.StatusOK)
	}
}

// askServices answers a query for ServiceRecords.
func (a *Agent) askServices(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	var rec mad.ServiceRecord
	if decode(a, p, m, &rec) {
		q := a.services.Now().Query(now, a.fabric, a.as(Registrations, who), &rec, m.ComponentMask())
		a.answerGet(now, p, who, m, &q, mad.StatusOK)
	}
}

// decode reads the record of a request. Without one the request is answered.
func decode[T any](a *Agent, p *transport.Packet, m *mad.MAD, rec *T) bool {
	if mad.Decode(m.SAData(), rec) != nil {
		a.reply(p, m, mad.StatusInvalidRequest)
		return false
	}
	return true
}

// answerGet answers a Get or GetTable.
func (a *Agent) answerGet(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD, r rows, status mad.Status) {
	switch {
	case status != mad.StatusOK:
		a.reply(p, m, status)
	case m.Method() == mad.MethodGet:
		a.one(now, p, who, m, r)
	default:
		a.table(now, p, who, m, r)
	}
}

// budget returns the budget of a request, and whether the request is allowed at all.
func (a *Agent) budget(now time.Time, who *portindex.Asker) (limiter.Budget, bool) {
	if who.Trusted {
		return a.work.Trusted(), true
	}
	b, ok := a.work.Begin(now, a.book.ByLID(who.LID).LID)
	if !ok {
		a.stats.Costly++
	}
	return b, ok
}

// step makes the next record, and returns the number of looks for it. It does not look at anything when the stride of the
// call is over.
func (a *Agent) step(r rows, rec []byte) (n int, done bool, cost int) {
	if a.rest <= 0 {
		return 0, false, 0
	}
	c, ok := r.(interface{ Steps() int })
	if !ok {
		n, done = r.Step(rec, a.rest)
		cost = 1
	} else {
		was := c.Steps()
		n, done = r.Step(rec, a.rest)
		cost = max(c.Steps()-was, 1)
	}
	a.rest -= cost
	a.worked += uint64(cost)
	return n, done, cost
}

// table answers with as many records as there are.
func (a *Agent) table(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD, r rows) {
	from := a.book.ByLID(p.LID)
	if a.sessions.Repeat(rmpp.AnswerKey(m, p.LID, p.QP), a) {
		return
	}
	b, ok := a.budget(now, who)
	if !ok {
		return
	}
	attr := m.Attr()
	if attr == mad.AttrMultiPathRecord {
		attr = mad.AttrPathRecord // the answer to a GetMulti
	}
	var head mad.MAD
	answer(&head, m, mad.StatusOK)
	head.SetAttr(attr)
	head.SetAttributeOffset(mad.AttributeOffset(attr))
	t := a.tableOf(r, b, mad.RecordSize(attr))
	if t.base = 0; !who.Trusted {
		t.base = from.LID
	}
	a.stats.Tables++
	if err := a.sessions.Send(now, a.party(p, from), &head, t, rmpp.Unknown, a); err != nil {
		a.release(t)
	}
}

// table is an answer on its way.
type table struct {
	rmpp.Records
	agent  *Agent
	rows   rows
	budget limiter.Budget
	base   ib.LID // of the node that pays for it; 0: none
}

// tableOf returns a table, a used one if there is any.
func (a *Agent) tableOf(r rows, b limiter.Budget, size int) *table {
	var t *table
	if n := len(a.idle); n > 0 {
		t, a.idle = a.idle[n-1], a.idle[:n-1]
	} else {
		t = &table{agent: a}
	}
	t.rows, t.budget = r, b
	t.Reset(t, size)
	return t
}

// release takes a table back.
func (a *Agent) release(t *table) {
	if t.base != 0 {
		a.work.End(a.now, t.base, t.budget)
	}
	t.rows = nil
	a.idle = append(a.idle, t)
}

// Make implements rmpp.Maker.
func (t *table) Make(rec []byte) rmpp.Made {
	n, done, cost := t.agent.step(t.rows, rec)
	switch {
	case !t.budget.Afford(cost):
		t.agent.stats.Costly++
		return rmpp.MadeGiveUp
	case n > 0:
		return rmpp.MadeOne
	case done:
		return rmpp.MadeNothing
	case t.base != 0 && !t.agent.work.Again(t.agent.now, t.base, &t.budget):
		t.agent.stats.Costly++
		return rmpp.MadeGiveUp
	default:
		return rmpp.MadePause
	}
}
