package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// maxHops ends the life of a packet that the tables send in a circle.
const maxHops = 64

// flight is a packet on its way.
type flight struct {
	mad        mad.MAD
	slid, dlid ib.LID
	sqp, dqp   uint32
	from       *port    // where it starts
	origin     *Station // who waits for the answer, nil for agents
	request    mad.Method
	key        ib.PKey // of a GMP
	access     access  // what the port it arrived at lets its sender have
}

// run moves queued packets until none is left. Called with mu held.
func (f *Fabric) run() {
	for i := 0; i < len(f.queue); i++ {
		f.launch(&f.queue[i])
	}
	f.queue = f.queue[:0]
}

// launch takes a packet to its end.
func (f *Fabric) launch(fl *flight) {
	if fl.mad.IsDR() {
		f.launchDirected(fl)
		return
	}
	f.routeByLID(fl)
}

// launchDirected starts a directed-route SMP at its originator or responder.
// Only pure directed routes are supported: both DR LIDs permissive.
func (f *Fabric) launchDirected(fl *flight) {
	m := &fl.mad
	hops, pointer := m.HopCount(), m.HopPointer()
	if hops > mad.MaxHops || m.DrSLID() != ib.PermissiveLID || m.DrDLID() != ib.PermissiveLID {
		f.malformed(fl)
		return
	}
	if m.Returning() {
		// A responder that copied ibsim's request has pointer 0.
		if pointer != hops+1 && pointer != 0 {
			f.malformed(fl)
			return
		}
		m.SetHopPointer(hops + 1)
		f.walkBack(fl)
		return
	}
	if pointer != 0 {
		f.malformed(fl)
		return
	}
	f.walkOut(fl)
}

// walkOut moves a request along its initial path.
func (f *Fabric) walkOut(fl *flight) {
	m, at := &fl.mad, fl.from
	hops, path, back := m.HopCount(), m.InitialPath(), m.ReturnPath()
	for hop := uint8(1); hop <= hops; hop++ {
		out := at.node.egress(at, ib.PortNum(path[hop]), hop == 1)
		if out == nil || !f.cross(out, true) {
			f.undelivered(fl)
			return
		}
		at = out.peer
		back[hop] = byte(at.num)
		m.SetHopPointer(hop + 1)
	}
	m.SetHopPointer(hops + 1)
	f.arrive(fl, at)
}

// egress is the port through which a directed route may leave: any external
// port of a switch, of others only the one where it starts.
func (n *node) egress(in *port, num ib.PortNum, first bool) *port {
	if num == 0 || int(num) >= len(n.ports) || n.sw == nil && (!first || num != in.num) {
		return nil
	}
	return n.ports[num]
}

// walkBack moves a response along its return path.
func (f *Fabric) walkBack(fl *flight) {
	m, at := &fl.mad, fl.from
	hops, path := m.HopCount(), m.ReturnPath()
	for hop := hops; hop >= 1; hop-- {
		out := at.node.egress(at, ib.PortNum(path[hop]), hop == hops)
		if out == nil || !f.cross(out, true) {
			f.undelivered(fl)
			return
		}
		at = out.peer
	}
	m.SetHopPointer(0)
	f.arrive(fl, at)
}

// routeByLID moves a packet by the forwarding tables.
func (f *Fabric) routeByLID(fl *flight) {
	at, smp := fl.from, fl.mad.IsSMP()
	if at.endPort().owns(fl.dlid) {
		f.arrive(fl, at.endPort())
		return
	}
	for range maxHops {
		out := at
		if at.node.sw != nil {
			if at.endPort().owns(fl.dlid) {
				f.arrive(fl, at.endPort())
				return
			}
			if out = at.node.forward(fl.dlid); out == nil {
				f.stats.NoRoute++
				at.counters.PortRcvSwitchRelayErrors = saturate16(at.counters.PortRcvSwitchRelayErrors, 1)
				f.undelivered(fl)
				return
			}
		}
		if !smp && !out.admitsGMP(fl, outbound) || !f.cross(out, smp) || !smp && out.peer.node.sw != nil && !out.peer.admitsGMP(fl, inbound) {
			f.undelivered(fl)
			return
		}
		if at = out.peer; at.node.sw == nil {
			break
		}
	}
	switch {
	case at.node.sw != nil:
		f.stats.Looped++
		f.undelivered(fl)
	case !at.owns(fl.dlid):
		f.stats.NoRoute++
		f.undelivered(fl)
	default:
		f.arrive(fl, at)
	}
}

// admitsGMP asks a port's partition rules about a GMP that crosses it, and does
// what follows from a refusal. As with data, an adapter that sends is not asked.
func (p *port) admitsGMP(fl *flight, way direction) bool {
	if way == outbound && p.isEnd() {
		return true
	}
	why := p.admits(packetIBA, fl.key, way)
	if why == admitted {
		return true
	}
	p.refuse(why, &packetHead{slid: fl.slid, dlid: fl.dlid, sqp: fl.sqp, dqp: fl.dqp, pkey: fl.key, qkey: gmpQKey}, way)
	return false
}

// gmpQKey is the well-known Q_Key of queue pair 1 (IBTA volume 1, 10.2.4).
const gmpQKey = 0x8001_0000

// forward is the external port a switch sends a LID to, nil for none.
func (n *node) forward(lid ib.LID) *port {
	num := n.sw.lookup(lid)
	if num == 0 || int(num) >= len(n.ports) {
		return nil
	}
	return n.ports[num]
}

// cross counts a packet over the link behind out, if the link can carry it.
func (f *Fabric) cross(out *port, smp bool) bool {
	if !out.carries(smp) {
		f.stats.LinkDown++
		out.counters.PortXmitDiscards = saturate16(out.counters.PortXmitDiscards, 1)
		return false
	}
	out.counters.sent()
	out.peer.counters.received()
	return true
}

// malformed drops a packet that no rule covers.
func (f *Fabric) malformed(fl *flight) {
	f.stats.Malformed++
	f.undelivered(fl)
}

// undelivered ends a packet that reaches nobody. A station's request goes back
// to it, unless the fabric loses silently.
func (f *Fabric) undelivered(fl *flight) {
	f.stats.Undelivered++
	if fl.origin == nil || f.opts.LoseSilently {
		return
	}
	m := &fl.mad
	if m.IsDR() {
		m.SetReturning(false)
		m.SetHopPointer(0)
		clear(m.ReturnPath())
	}
	m.SetMethod(fl.request)
	m.SetStatus(mad.StatusOK)
	fl.origin.put(&transport.Packet{MAD: *m, LID: fl.dlid, QP: fl.dqp, Undelivered: true})
}

// arrive hands a packet to what is behind the port it reached.
func (f *Fabric) arrive(fl *flight, at *port) {
	if !fl.mad.IsSMP() && !at.admitsGMP(fl, inbound) {
		f.undelivered(fl)
		return
	}
	fault := at.node.activeFault()
	if fault == (Fault{}) {
		f.deliver(fl, at)
		return
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
			f.later.add(f.now+fault.Delay, func() { f.deliver(&one, at) })
			continue
		}
		f.deliver(&one, at)
	}
}

// deliver gives a packet to a station or to the node's agent.
func (f *Fabric) deliver(fl *flight, at *port) {
	m := &fl.mad
	fl.access = at.access(fl)
	switch {
	case fl.access == accessTaken:
	case fl.access == accessNone:
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

// deliverResponse finds the station that asked by the transaction identifier,
// whose upper 16 bits are its slot.
func (f *Fabric) deliverResponse(fl *flight, at *port) {
	slot := int(uint64(fl.mad.TID()) >> slotShift)
	if slot >= len(f.stations) || f.stations[slot] == nil || f.stations[slot].at.endPort() != at.endPort() {
		f.stats.Undelivered++
		return
	}
	f.stations[slot].put(&transport.Packet{MAD: fl.mad, LID: fl.slid, QP: fl.sqp})
}

// deliverRepress gives a TrapRepress to the station that sent the trap, if one
// did.
func (f *Fabric) deliverRepress(fl *flight, at *port) {
	slot := int(uint64(fl.mad.TID()) >> slotShift)
	if slot >= len(f.stations) {
		return
	}
	if s := f.stations[slot]; s != nil && s.at.endPort() == at.endPort() && s.trap == fl.mad.TID() {
		s.put(&transport.Packet{MAD: fl.mad, LID: fl.slid, QP: fl.sqp})
	}
}

// deliverRequest gives a packet that no agent answers to the station that asked
// for such.
func (f *Fabric) deliverRequest(fl *flight, at *port) {
	for _, s := range f.stations {
		if s != nil && s.asSM && s.at.endPort() == at.endPort() && !at.node.bars(&fl.mad) {
			s.put(&transport.Packet{MAD: fl.mad, LID: fl.slid, QP: fl.sqp})
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
func (f *Fabric) answer(fl *flight, at *port) {
	if at.node.activeFault().Silent || at.node.off {
		f.undelivered(fl)
		return
	}
	set := fl.mad.Method() == mad.MethodSet
	status := at.agent(&fl.mad, fl.access)
	if set && len(f.flows) > 0 {
		f.probeFlows()
	}
	f.reply(fl, at, status)
}

// reply turns a request into its response and sends it back.
func (f *Fabric) reply(fl *flight, at *port, status mad.Status) {
	fl.mad.Respond(status)
	f.stats.Answered++
	if fl.mad.IsDR() {
		fl.from = at
		f.walkBack(fl)
		return
	}
	fl.slid, fl.dlid = fl.dlid, fl.slid
	fl.sqp, fl.dqp = fl.dqp, fl.sqp
	fl.from = at.endPort()
	if !fl.mad.IsSMP() {
		fl.key = fl.from.answerPKey(fl.key)
	}
	f.routeByLID(fl)
}
