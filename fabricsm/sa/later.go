package sa

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/transport"
)

// A Get may have to look at all registrations to find its one record. It does so one stride at a time, and other requests
// run in between. One call holds the agent for at most a stride.

const (
	// maxLater is the number of Gets that may wait for their next stride. maxLaterTrusted of them are reserved for
	// requesters that show the SA_Key. maxLaterEach is the maximum for one node. Further Gets get StatusBusy.
	maxLater        = 64
	maxLaterTrusted = 16
	maxLaterEach    = 4
)

// get is a Get in progress. It answers from the state at its beginning.
type get struct {
	packet transport.Packet // of the request
	rows   rows
	budget limiter.Budget
	base   ib.LID // of the node that pays for it; 0: none
	node   ib.LID // of the request
	found  int
	first  [rmpp.MaxRecord]byte
}

// one answers a Get, which wants exactly one record.
func (a *Agent) one(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD, r rows) {
	if a.asksAlready(p) {
		return
	}
	b, ok := a.budget(now, who)
	if !ok {
		return
	}
	g := &a.get
	*g = get{rows: r, budget: b, node: a.book.ByLID(who.LID).LID}
	if !who.Trusted {
		g.base = g.node
	}
	if a.look(now, g, p, m) {
		g.rows = nil
		return
	}
	if !a.room(g.node, who.Trusted) {
		g.rows = nil
		a.reply(p, m, mad.StatusBusy)
		return
	}
	later := *g
	later.packet = *p
	later.packet.MAD = *m
	a.later = append(a.later, &later)
	a.laterAt = now.Add(1)
}

// look goes on with a Get, and answers it if it is over. It is not when the stride of the
// call is.
func (a *Agent) look(now time.Time, g *get, p *transport.Packet, m *mad.MAD) (over bool) {
	var other [rmpp.MaxRecord]byte
	for g.found < 2 {
		into := g.first[:]
		if g.found > 0 {
			into = other[:]
		}
		n, done, cost := a.step(g.rows, into)
		if !g.budget.Afford(cost) {
			a.charge(now, g)
			a.stats.Costly++
			return true
		}
		if n > 0 {
			g.found++
		}
		if done {
			break
		}
		if n == 0 && a.rest <= 0 {
			if a.charge(now, g) {
				return false
			}
			a.stats.Costly++
			return true
		}
	}
	a.charge(now, g)
	switch g.found {
	case 0:
		a.reply(p, m, whyNone(g.rows))
	case 1:
		to := a.reply(p, m, mad.StatusOK)
		to.SetAttributeOffset(mad.AttributeOffset(m.Attr()))
		copy(to.SAData(), g.first[:mad.RecordSize(m.Attr())])
	default:
		a.reply(p, m, mad.StatusTooManyRecords)
	}
	return true
}

// whyNone returns the status if there is no record.
func whyNone(r rows) mad.Status {
	if why, ok := r.(interface{ Status() mad.Status }); ok {
		return why.Status()
	}
	return mad.StatusNoRecords
}

// charge charges the requesting node for the steps so far. It returns false if the node has nothing left.
func (a *Agent) charge(now time.Time, g *get) bool {
	return g.base == 0 || a.work.Again(now, g.base, &g.budget)
}

// asksAlready reports whether the same request is still in progress: a repeated request is not processed twice.
func (a *Agent) asksAlready(p *transport.Packet) bool {
	for _, g := range a.later {
		if o := &g.packet; o.LID == p.LID && o.QP == p.QP && o.MAD.TID() == p.MAD.TID() && o.MAD.Attr() == p.MAD.Attr() {
			return true
		}
	}
	return false
}

// room reports whether another Get of a node may wait.
func (a *Agent) room(node ib.LID, trusted bool) bool {
	n, most := 0, maxLater
	if !trusted {
		most -= maxLaterTrusted
	}
	for _, g := range a.later {
		if g.node == node {
			n++
		}
	}
	return len(a.later) < most && n < maxLaterEach
}

// goOn runs the waiting Gets, each in its turn, for one stride in total.
func (a *Agent) goOn(now time.Time) {
	if !a.serving {
		clear(a.later)
		a.later = a.later[:0]
	}
	for len(a.later) > 0 && a.rest > 0 {
		g := a.later[0]
		copy(a.later, a.later[1:])
		a.later[len(a.later)-1] = nil
		a.later = a.later[:len(a.later)-1]
		if !a.look(now, g, &g.packet, &g.packet.MAD) {
			a.later = append(a.later, g)
		}
	}
	if a.laterAt = (time.Time{}); len(a.later) > 0 {
		a.laterAt = now.Add(1)
	}
}

// Worked returns how many steps were used so far to find records. An owner that holds the agent for several calls releases
// it after many steps.
func (a *Agent) Worked() uint64 { return a.worked }

// Stride is how many steps a call takes at most.
const Stride = stride
