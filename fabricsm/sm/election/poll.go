package election

import (
	"maps"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// rivalTicks is how many polls of a standby go for one look of a master at its standbys.
const rivalTicks = 4

// Poll is the regular look at the other Subnet Managers. It arms the alarm for the next one.
func (e *Election) Poll() {
	e.requests.After(e.o.PollEvery, work.Poll, work.Ref{})
	e.ticks++
	if e.own.Barred {
		return // what others are is of no use until this one may rule
	}
	switch {
	case e.own.State == ib.SMStandby:
		if e.fabric.IsGone(e.master) {
			e.takeOver(false, "the master is gone")
			return
		}
		e.queue.MarkPort(work.SMInfo, e.master)
	case e.waitFor != topo.None:
		e.pollRival()
	case e.own.Shown() == ib.SMMaster && e.ticks%rivalTicks == 0:
		e.askOthers()
	}
}

// pollRival asks the master that is to hand over, for as long as there is patience: P_Keys that are to be taken away must
// not wait for it for ever.
func (e *Election) pollRival() {
	p := e.waitFor
	switch o := e.at(p); {
	case e.fabric.IsGone(p) || o == nil:
		e.takeOver(true, "the master of lower rank is gone")
	case e.fabric.Now().Sub(e.since) > e.o.Patience:
		o.Ignored = true
		e.effects.Problem(fault.Key{Kind: fault.RivalMaster, GUID: o.GUID}, ib.SMDiscovering,
			"port "+o.GUID.String()+" is master, too, and does not hand over to us, who are of higher rank: stop it")
		e.takeOver(true, "no longer waiting for a handover")
	default:
		e.queue.MarkPort(work.SMInfo, p)
	}
}

// askOthers asks the Subnet Managers again that are believed or may come to be, and reports whether there are any. At an
// allowed place where none is known, it looks whether there is one.
func (e *Election) askOthers() bool {
	some := false
	for _, guid := range slices.Sorted(maps.Keys(e.others)) {
		o := e.others[guid]
		if e.isSeen(guid, o) && !e.fabric.IsGone(o.port) && (o.Trusted || e.trust.IsListed(o.port)) {
			e.ask(o.port)
			some = true
		}
	}
	for _, a := range e.trust.Allowed() {
		p, seen := e.fabric.PortByGUID(a.GUID)
		if seen && p != e.fabric.Own() && e.trust.IsListed(p) && !e.fabric.IsGone(p) && e.at(p) == nil {
			e.requests.ReadLater(p)
		}
	}
	return some
}

// watchEvery is how often our own port is read: no device sends a trap about it that could reach us.
const watchEvery = time.Second

// Watch is the regular look at our own port. It arms the alarm for the next one.
func (e *Election) Watch() {
	e.requests.After(watchEvery, work.Watch, work.Ref{})
	if e.own.State == ib.SMMaster && e.fabric.IsCut() {
		e.takeOver(false, "our own port has no link")
	}
	e.requests.ReadOwn()
}
