package sa

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/transport"
)

// subscribe answers a Set of InformInfo.
func (a *Agent) subscribe(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	var info mad.InformInfo
	if !decode(a, p, m, &info) {
		return
	}
	b, ok := a.budget(now, who) // of looks at ranges of LIDs
	if !ok {
		return
	}
	ans := a.subs.Set(a.as(Notices, who), addressOf(p), &info)
	if b.Owe(ans.Looks); !who.Trusted {
		a.work.End(now, a.book.ByLID(who.LID).LID, b)
	}
	if ans.Verdict != trust.OK {
		a.refuse(now, a.dropped(p, who, m, ans.Verdict, who.As))
	}
	if a.turnedDown(now, p, who, m, who.As, uint8(ans.Why())) {
		ans.Events = nil
	}
	a.informed(&ans.Effects)
	if ans.Status != mad.StatusOK && mad.Encode(m.SAData(), &ans.Record) != nil {
		clear(m.SAData()) // a refusal does not repeat the request: it shows no subscription
	}
	if ans.Verdict == trust.OK {
		a.confirm(p, m, ans.Status, mad.RecordSize(mad.AttrInformInfo), func(b []byte) error { return mad.Encode(b, &ans.Record) })
	}
}

// addressOf returns the address of the sender of a packet.
func addressOf(p *transport.Packet) inform.Address {
	to := inform.Address{LID: p.LID, QP: p.QP, PKeyIndex: p.PKeyIndex, SL: p.SL, PathBits: p.PathBits}
	if g := &p.GRH; g.Present {
		to.GRH, to.GIDIndex, to.HopLimit, to.TrafficClass, to.FlowLabel, to.GID = true, g.GIDIndex, g.HopLimit, g.TrafficClass, g.FlowLabel, g.GID
	}
	return to
}

// informed applies the effects of a change of subscriptions or reports. Like all packets in Held, reports wait until the
// facts before them are durable.
func (a *Agent) informed(e *inform.Effects) {
	a.out.Save = append(a.out.Save, e.Save...)
	for i := range e.Send {
		r := &e.Send[i]
		to := &r.To
		p := slot(&a.out.Held)
		*p = transport.Packet{MAD: r.MAD, LID: to.LID, QP: to.QP, PKeyIndex: to.PKeyIndex, SL: to.SL, PathBits: to.PathBits}
		if to.GRH {
			p.GRH = transport.GRH{
				Present: true, GIDIndex: to.GIDIndex, HopLimit: to.HopLimit, TrafficClass: to.TrafficClass, FlowLabel: to.FlowLabel, GID: to.GID,
			}
		}
	}
	for i := range e.Events {
		a.out.Events = append(a.out.Events, &SubscriptionEvent{Event: e.Events[i], Asked: a.asked(&e.Events[i].Asker)})
	}
}

// report sends notices to their subscribers.
func (a *Agent) report(now time.Time, notices ...registry.Notice) {
	if len(notices) > 0 {
		e := a.subs.Report(now, notices...)
		a.informed(&e)
	}
}

// Forward reports a trap from a LID to subscribers, if the trap is about the device at that LID.
func (a *Agent) Forward(now time.Time, from ib.LID, n *mad.Notice, out *Output) {
	a.out = out
	if !a.serving {
		return
	}
	if at := a.book.ByLID(from); at == nil || a.book.ByLID(n.IssuerLID) != at {
		return
	}
	e := a.subs.Forward(now, n)
	a.informed(&e)
}
