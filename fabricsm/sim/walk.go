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
	in         *port    // by which it came to the node where it is; nil: where it starts
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
	if hops > 0 {
		fl.in = at
	}
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
				fl.in = at
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
		fl.in = at
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
