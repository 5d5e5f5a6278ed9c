package sim

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

// arrive passes a packet to the device behind the port that it reached.
func (f *network) arrive(fl *flight, at *port) {
	if !fl.mad.IsSMP() && !at.admitsGMP(fl, inbound) {
		f.undelivered(fl)
		return
	}
	if at.misses(fl) {
		f.passOn(fl, at)
		return
	}
	if f.faults > 0 {
		if fault := at.node.activeFault(); fault != (Fault{}) {
			f.arriveFaulty(fl, at, fault)
			return
		}
	}
	f.deliver(fl, at)
}

// arriveFaulty is arrive at a node with a fault.
func (f *network) arriveFaulty(fl *flight, at *port, fault Fault) {
	reach := f.deliver
	if fault.Work > 0 && fl.mad.IsSMP() && at.node.answers(&fl.mad) {
		reach = func(fl *flight, at *port) { f.enqueue(fl, at, fault.Work) }
	}
	if fault.Loss > 0 && f.rng.Float64() < fault.Loss {
		f.stats.Lost++
		f.undelivered(fl)
		return
	}
	copies := 1
	if fault.Duplicate > 0 && f.rng.Float64() < fault.Duplicate {
		copies = 2
	}
	for range copies {
		// The delivery turns the packet into its answer, so each has its own.
		one := *fl
		if fault.Delay > 0 {
			f.later.add(f.now+fault.Delay, func() { reach(&one, at) })
			continue
		}
		reach(&one, at)
	}
}

// deliver passes a packet to a station or to the agent of the node.
func (f *network) deliver(fl *flight, at *port) {
	m := &fl.mad
	fl.access = at.access(fl)
	switch {
	case fl.access == guard.Taken:
	case fl.access == guard.None:
		f.undelivered(fl)
	case m.Method() == mad.MethodTrapRepress && at.represses(m):
		at.node.repressed(m)
		f.deliverRepress(fl, at)
	case m.IsResponse():
		f.deliverResponse(fl, at)
	case at.node.answers(m):
		f.answer(fl, at)
	default:
		f.deliverRequest(fl, at)
	}
}

// deliverResponse finds the requesting station by the transaction identifier, whose upper 16 bits are its slot.
func (f *network) deliverResponse(fl *flight, at *port) {
	if h := at.endPort().host; h != nil {
		h.take(fl)
		return
	}
	slot := int(uint64(fl.mad.TID()) >> slotShift)
	if slot >= len(f.stations) || f.stations[slot] == nil || f.stations[slot].at.endPort() != at.endPort() {
		f.stats.Undelivered++
		return
	}
	f.stations[slot].deliver(fl, at)
}

// deliverRepress passes a TrapRepress to the station that sent the trap, if there is one.
func (f *network) deliverRepress(fl *flight, at *port) {
	if h := at.endPort().host; h != nil {
		h.take(fl)
		return
	}
	slot := int(uint64(fl.mad.TID()) >> slotShift)
	if slot >= len(f.stations) {
		return
	}
	if s := f.stations[slot]; s != nil && s.at.endPort() == at.endPort() && s.trap == fl.mad.TID() {
		s.deliver(fl, at)
	}
}

// deliverRequest passes a packet that no agent answers to the station that has asSM set, if there is one.
func (f *network) deliverRequest(fl *flight, at *port) {
	for _, s := range f.stations {
		if s != nil && s.asSM && s.at.endPort() == at.endPort() && !at.node.bars(&fl.mad) {
			s.deliver(fl, at)
			return
		}
	}
	if at.node.playsSM(&fl.mad) {
		f.reply(fl, at, mad.StatusOK)
		return
	}
	f.undelivered(fl)
}

// answer runs the agent of a node and sends its answer back.
func (f *network) answer(fl *flight, at *port) {
	if at.node.off || f.faults > 0 && at.node.activeFault().Silent {
		f.undelivered(fl)
		return
	}
	set := fl.mad.Method() == mad.MethodSet
	if set {
		f.written(fl, at)
	}
	status := at.agent(&fl.mad, fl.access)
	if set && len(f.flows) > 0 {
		f.probeFlows()
	}
	f.reply(fl, at, status)
}

// reply turns a request into its response and sends it back.
func (f *network) reply(fl *flight, at *port, status mad.Status) {
	fl.mad.Respond(status)
	f.stats.Answered++
	fl.slid, fl.dlid = fl.dlid, fl.slid
	if fl.mad.IsDR() {
		fl.from = at
		f.walkBack(fl)
		return
	}
	fl.sqp, fl.dqp, fl.grh = fl.dqp, fl.sqp, fl.grh.reverse()
	fl.from = at.endPort()
	if !fl.mad.IsSMP() {
		fl.key = fl.from.pkeys.answer(fl.key)
	}
	f.routeByLID(fl)
}
