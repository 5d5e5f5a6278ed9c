package sa

import (
	"slices"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/transport"
)

// change answers a request that registers something. Because all requests wait for the store, a node that changes too much
// gets no answer for a while. A node that repeats a registration changes nothing.
func (a *Agent) change(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	base := a.book.EndPort(who.Port).LID
	b, ok := a.changes.Begin(now, base)
	switch {
	case !ok && !who.Trusted:
		a.refuse(now, a.dropped(p, who, m, trust.TooOften, 0))
		return
	case a.held:
		a.reply(p, m, mad.StatusBusy)
		return
	}
	before := len(a.out.Save)
	switch m.Attr() {
	case mad.AttrInformInfo:
		a.subscribe(now, p, who, m)
	case mad.AttrGUIDInfoRecord:
		a.rename(now, p, who, m)
	case mad.AttrServiceRecord:
		a.offer(now, p, who, m)
	default:
		a.member(now, p, who, m)
	}
	if !who.Trusted {
		b.Owe(len(a.out.Save) - before)
		a.changes.End(now, base, b)
	}
}

// member answers a Set or Delete of an MCMemberRecord.
func (a *Agent) member(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	var rec mad.MCMemberRecord
	if !decode(a, p, m, &rec) {
		return
	}
	var ans group.Answer
	if m.Method() == mad.MethodSet {
		ans = a.groups.Set(*who, &rec, m.ComponentMask())
	} else {
		ans = a.groups.Delete(*who, &rec, m.ComponentMask())
	}
	if ans.Verdict != trust.OK {
		a.refuse(now, a.dropped(p, who, m, ans.Verdict, rec.PortGID.GUID()))
	}
	if a.turnedDown(now, p, who, m, rec.PortGID.GUID(), uint8(ans.Why())) {
		ans.Events = nil
	}
	a.grouped(now, &ans.Effects)
	if ans.Verdict == trust.OK {
		a.confirm(p, m, ans.Status, mad.RecordSize(mad.AttrMCMemberRecord), func(b []byte) error { return mad.Encode(b, &ans.Record) })
	}
}

// offer answers a Set or Delete of a ServiceRecord.
func (a *Agent) offer(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	var rec mad.ServiceRecord
	if !decode(a, p, m, &rec) {
		return
	}
	var ans service.Answer
	if m.Method() == mad.MethodSet {
		ans = a.services.Set(now, *who, &rec, m.ComponentMask())
	} else {
		ans = a.services.Delete(now, *who, &rec, m.ComponentMask())
	}
	if ans.Verdict != trust.OK {
		a.refuse(now, a.dropped(p, who, m, ans.Verdict, rec.ServiceGID.GUID()))
	}
	if a.turnedDown(now, p, who, m, rec.ServiceGID.GUID(), uint8(ans.Why())) {
		ans.Events = nil
	}
	a.served(&ans.Effects)
	if ans.Verdict == trust.OK {
		a.confirm(p, m, ans.Status, mad.RecordSize(mad.AttrServiceRecord), func(b []byte) error { return mad.Encode(b, &ans.Record) })
	}
}

// served applies the effects of a change of services.
func (a *Agent) served(e *service.Effects) {
	a.out.Save = append(a.out.Save, e.Save...)
	for i := range e.Events {
		a.out.Events = append(a.out.Events, &ServiceEvent{Event: e.Events[i], Asked: a.asked(&e.Events[i].Asker)})
	}
}

// rename answers a Set or Delete of a GUIDInfoRecord.
func (a *Agent) rename(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD) {
	var rec mad.GUIDInfoRecord
	if !decode(a, p, m, &rec) {
		return
	}
	var ans alias.Answer
	if m.Method() == mad.MethodSet {
		ans = a.aliases.Set(*who, &rec, m.ComponentMask())
	} else {
		ans = a.aliases.Delete(*who, &rec, m.ComponentMask())
	}
	if ans.Verdict != trust.OK {
		d := a.dropped(p, who, m, ans.Verdict, 0)
		if d.Owner = a.book.ByLID(rec.LID); d.Owner != nil {
			d.Target = d.Owner.GUID
		}
		a.refuse(now, d)
	}
	if a.turnedDown(now, p, who, m, who.As, uint8(ans.Why())) {
		ans.Events = slices.DeleteFunc(ans.Events, func(e alias.Event) bool { return !e.Gone && e.Reason != alias.NoReason })
	}
	a.given(&ans.Effects)
	if ans.Verdict == trust.OK {
		a.confirm(p, m, ans.Status, mad.RecordSize(mad.AttrGUIDInfoRecord), func(b []byte) error { return mad.Encode(b, &ans.Record) })
	}
}

// given applies the effects of a change of aliases.
func (a *Agent) given(e *alias.Effects) {
	a.out.Save = append(a.out.Save, e.Save...)
	if e.Aliases != nil {
		a.out.Tell = append(a.out.Tell, e.Aliases)
	}
	for i := range e.Events {
		a.out.Events = append(a.out.Events, &AliasEvent{Event: e.Events[i], Asked: a.asked(&e.Events[i].Asker)})
	}
}

// confirm answers a registration request when its effects are durable.
func (a *Agent) confirm(p *transport.Packet, m *mad.MAD, s mad.Status, size int, encode func([]byte) error) {
	a.stats.Answers++
	to := slot(&a.out.Held)
	w := wayOf(p)
	w.address(to)
	answer(&to.MAD, m, s)
	if s == mad.StatusOK {
		to.MAD.SetAttributeOffset(uint16(size / 8))
		if encode(to.MAD.SAData()) != nil {
			to.MAD.SetStatus(mad.StatusNoResources)
		}
	} else {
		copy(to.MAD.SAData(), m.SAData())
	}
}

// grouped applies the effects of a change of groups.
func (a *Agent) grouped(now time.Time, e *group.Effects) {
	a.out.Save = append(a.out.Save, e.Save...)
	if e.Groups != nil {
		a.out.Tell = append(a.out.Tell, e.Groups)
	}
	for i := range e.Events {
		a.out.Events = append(a.out.Events, &GroupEvent{Event: e.Events[i], Asked: a.asked(&e.Events[i].Asker)})
	}
	a.report(now, e.Notices...)
}
