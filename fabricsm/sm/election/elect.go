package election

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/smrank"
	"portcullis/fabricsm/topo"
)

// Elect ends discovery that has come to rest: this Subnet Manager becomes master, or leaves the fabric to another. It
// reports whether there is new work.
func (e *Election) Elect() bool {
	if e.own.Barred || e.waitFor != topo.None || e.fabric.IsCut() || e.looksOn() {
		return false
	}
	if !e.asked {
		// One that was asked early may not have known yet that it may show us its key, or what its own state would be.
		e.asked = true
		if e.askOthers() {
			return true
		}
	}
	p := e.ruler()
	switch {
	case p == topo.None:
		e.rule()
	case e.own.Claims && !e.own.IsBelow(&e.at(p).Other):
		e.awaitHandover(p)
	default:
		e.standBy(p)
	}
	return true
}

// ruler returns the port of the Subnet Manager to which discovery has to yield, None if there is none.
func (e *Election) ruler() topo.PortID {
	return e.highest(func(o *other) bool { return !o.stale && e.own.YieldsTo(&o.Other) })
}

// heir returns the port of the highest Subnet Manager that is trusted and stands by, None if there is none.
func (e *Election) heir() topo.PortID {
	return e.highest(func(o *other) bool {
		return o.Trusted && !o.stale && o.State == ib.SMStandby && !e.fabric.IsGone(o.port)
	})
}

// highest returns the port of the first of the others that are seen and match: masters go first, then the higher rank.
func (e *Election) highest(match func(*other) bool) topo.PortID {
	var best *other
	for guid, o := range e.others {
		if e.isSeen(guid, o) && match(o) && (best == nil || o.IsBefore(&best.Other)) {
			best = o
		}
	}
	if best == nil {
		return topo.None
	}
	return best.port
}

// weigh does what follows from how another Subnet Manager describes itself.
func (e *Election) weigh(p topo.PortID, o *other) {
	m := e.at(e.master)
	_, handing := e.commands[p]
	rivals := o.Trusted && e.own.Shown() == ib.SMMaster
	switch e.own.Weigh(&o.Other, smrank.Moment{
		Polled: p == e.master, Handing: handing, Late: e.fabric.Now().Sub(e.since) > e.o.Patience, Ruled: m != nil && m.State == ib.SMMaster,
		Waits: e.waitFor != topo.None, Awaited: p == e.waitFor,
	}) {
	case smrank.Nothing:
	case smrank.MasterRules:
		e.since, e.own.Stubborn = e.fabric.Now(), false
	case smrank.MasterIsLower:
		e.since, e.own.Stubborn = e.fabric.Now(), false
		e.nudgeMaster(p)
	case smrank.MasterLeft:
		e.takeOver(false, "the master stepped down")
	case smrank.MasterIsLate:
		e.own.Stubborn = true
		e.takeOver(false, e.name(p)+" does not become master")
	case smrank.OtherRules:
		e.standBy(p)
	case smrank.HandOver:
		e.handOver(p, o)
	case smrank.AwaitHandover:
		e.awaitHandover(p)
	case smrank.Remind:
		e.nudgeMaster(p)
	case smrank.RivalLeft:
		e.takeOver(true, e.name(p)+" is master no longer")
	}
	if rivals && o.State != ib.SMMaster {
		o.Ignored = false
		e.effects.Solved(fault.Key{Kind: fault.RivalMaster, GUID: o.GUID})
	}
}

// lookOn is how long discovery waits for what does not answer, where that may hide another Subnet Manager.
const lookOn = time.Second

// looksOn reports whether another Subnet Manager may still be found: requests that were lost on the way are sent again
// first. Where none would be believed there is nothing to wait for.
func (e *Election) looksOn() bool {
	if e.o.Key.IsZero() {
		return false
	}
	now := e.fabric.Now()
	if e.quietAt.IsZero() {
		e.quietAt = now
	}
	busy := e.wire.Out() > len(e.commands) || e.timers.HasNear()
	return busy && now.Sub(e.quietAt) < lookOn || e.waitsForOthers()
}

// waitsForOthers reports whether Subnet Managers which may be believed have not answered yet.
func (e *Election) waitsForOthers() bool {
	for p := range e.asking {
		if e.fabric.IsGone(p) {
			delete(e.asking, p)
		}
	}
	return len(e.asking) > 0
}
