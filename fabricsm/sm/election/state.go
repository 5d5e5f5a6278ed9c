package election

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// rule makes this Subnet Manager the master.
func (e *Election) rule() {
	e.own.State, e.own.Claims, e.own.Stubborn, e.asked = ib.SMMaster, false, false, false
	e.actCount++
	e.effects.Changed(e.own.State, "discovery is complete and no subnet manager of higher rank is master")
	foreign := e.foreign
	e.foreign = false
	e.effects.Rule(foreign)
}

// standBy leaves the fabric to another Subnet Manager.
func (e *Election) standBy(p topo.PortID) {
	reason := e.name(p) + " is of higher rank"
	if o := e.at(p); o != nil && o.State == ib.SMMaster {
		reason = e.name(p) + " is master"
	}
	e.standByFor(p, reason)
}

func (e *Election) standByFor(p topo.PortID, reason string) {
	if e.own.State != ib.SMStandby {
		e.effects.Unprove()
	}
	e.own.State, e.own.Claims = ib.SMStandby, false
	e.master, e.since, e.waitFor, e.foreign, e.nudge = p, e.fabric.Now(), topo.None, true, nudge{count: e.nudge.count}
	e.effects.Problem(fault.Key{Kind: fault.ForeignMaster}, e.own.State, reason)
}

// awaitHandover stops writing until a master of lower rank has handed over its part of the fabric (IBTA volume 1,
// C14-60.2.1).
func (e *Election) awaitHandover(p topo.PortID) {
	e.own.State, e.own.Claims, e.waitFor, e.since = ib.SMDiscovering, true, p, e.fabric.Now()
	e.effects.Changed(e.own.State, e.name(p)+" is a master of lower rank: waiting for its handover")
	e.nudgeMaster(p)
}

// disable stops this Subnet Manager until another one says STANDBY.
func (e *Election) disable(by topo.PortID) {
	e.own.State, e.own.Claims, e.master, e.waitFor, e.foreign = ib.SMNotActive, false, topo.None, topo.None, true
	e.effects.Unprove()
	e.effects.Solved(fault.Key{Kind: fault.ForeignMaster})
	e.effects.Problem(fault.Key{Kind: fault.Disabled}, e.own.State,
		"disabled by the master at "+e.name(by)+"; start this subnet manager again to have it take part")
}

// takeOver begins again, from the present state of the fabric: the old master may have changed what was read before. Nodes,
// cables and routes are kept as far as they turn out to be still true. With a mandate this Subnet Manager reports itself to
// others as master already.
func (e *Election) takeOver(mandate bool, reason string) {
	e.effects.Renew()
	e.retake(mandate, reason)
}

// retake is takeOver where no other Subnet Manager was master meanwhile: nothing that was registered is lost.
func (e *Election) retake(mandate bool, reason string) {
	e.effects.Solved(fault.Key{Kind: fault.ForeignMaster})
	e.effects.Solved(fault.Key{Kind: fault.Disabled})
	e.own.State, e.own.Claims = ib.SMDiscovering, mandate
	e.master, e.waitFor, e.mandate, e.asked, e.quietAt = topo.None, topo.None, topo.None, false, time.Time{}
	clear(e.commands)
	for _, o := range e.others {
		o.stale = true
	}
	e.effects.Unprove()
	e.effects.Changed(e.own.State, reason)
	e.effects.Doubt()
}

// Resign takes that the owner is about to end. A master hands the fabric over to the highest standby.
func (e *Election) Resign() {
	if e.own.Leaving {
		return
	}
	e.own.Leaving = true
	if heir := e.heir(); heir != topo.None && e.IsWriting() {
		e.standByFor(heir, "ending, so "+e.name(heir)+" is given the fabric")
		e.send(heir, command{mad.SMInfoHandover, ib.SMMaster})
	}
}

// HasResigned reports whether nothing is left to be done before the end.
func (e *Election) HasResigned() bool { return e.own.Leaving && len(e.commands) == 0 }

// SetMandate takes whether the owner may change the fabric.
func (e *Election) SetMandate(held bool) {
	if held == !e.own.Barred {
		return
	}
	e.own.Barred = !held
	e.effects.Disturb()
	if e.own.Barred {
		clear(e.commands)
		e.effects.Problem(fault.Key{Kind: fault.LeaseEnded}, e.own.Shown(),
			"the lease of this instance may have run out: it reads and answers, and changes nothing until the store answers")
		return
	}
	e.effects.Solved(fault.Key{Kind: fault.LeaseEnded})
	if e.own.State == ib.SMMaster || e.waitFor != topo.None {
		e.retake(true, "the lease of this instance holds again")
	}
}
