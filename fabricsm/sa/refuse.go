package sa

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Violation is a request that was dropped for security, or many of them; with
// trust.Refused those that were answered with a refusal.
type Violation struct {
	sm.Administration
	trust.Violation
}

// tellEvery is the interval at which events that were not reported at once are reported, with exact counts.
const tellEvery = time.Second

// refuse drops a request and reports it.
func (a *Agent) refuse(now time.Time, d *trust.Dropped) {
	row, loud := a.note(now, d)
	if !loud || a.quiet {
		return
	}
	a.out.Events = append(a.out.Events, &Violation{Violation: row})
	if n, ok := row.Notice(a.cfg.Subnet); ok {
		a.report(now, registry.Notice{Report: mad.ReportNotice{Notice: n}})
	}
}

// note counts a refused request. loud means that it must be reported now.
func (a *Agent) note(now time.Time, d *trust.Dropped) (row trust.Violation, loud bool) {
	a.stats.Refused[d.Verdict] += max(d.Count, 1)
	if d.Port != nil {
		d.Place = a.book.View.Fabric.PlaceOf(d.Port.Port)
	}
	if row, loud = a.wrongs.Note(now, d); !loud {
		a.tellLater(now)
	}
	return row, loud
}

// dropped describes a request on behalf of a port or alias.
func (a *Agent) dropped(p *transport.Packet, who *portindex.Asker, m *mad.MAD, v trust.Verdict, target ib.GUID) *trust.Dropped {
	d := &trust.Dropped{Verdict: v, Who: *who, Port: a.book.EndPort(who.Port), Attr: m.Attr(), Method: m.Method(), Target: target, Owner: a.book.ByGUID(target)}
	if p.GRH.Present {
		d.SGID = p.GRH.GID
	}
	return d
}

func (a *Agent) tellLater(now time.Time) {
	if a.tellAt.IsZero() {
		a.tellAt = now.Add(tellEvery)
	}
}

// tell reports the refusals that were not reported at once.
func (a *Agent) tell(now time.Time) {
	a.tellAt = time.Time{}
	if a.wrongs.Report(func(v *trust.Violation) { a.out.Events = append(a.out.Events, &Violation{Violation: *v}) }) {
		a.tellLater(now)
	}
	a.limiter.Told(func(d limiter.Drops) { a.refuse(now, flood(&d, a.book)) })
}

// flood describes the packets of a node that the limiter dropped.
func flood(d *limiter.Drops, b *portindex.Book) *trust.Dropped {
	port := b.ByLID(d.LID)
	who := portindex.Asker{LID: d.LID}
	if port != nil {
		who.Port, who.As = port.Port, port.GUID
	}
	return &trust.Dropped{Verdict: trust.Flood, Who: who, Port: port, Count: d.Count}
}
