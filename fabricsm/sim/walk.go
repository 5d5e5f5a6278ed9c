package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
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
	origin     *Station // that waits for the answer, nil for agents
	request    mad.Method
	key        ib.PKey // of a GMP
	sl         ib.SL
	grh        *GRH         // of a GMP that has one
	access     guard.Access // that the port it arrived at grants to its sender
}

// run moves queued packets until none is left. Called with mu held.
func (f *network) run() {
	for i := 0; i < len(f.queue); i++ {
		f.launch(&f.queue[i])
	}
	f.queue = f.queue[:0]
}

// launch takes a packet to its end.
func (f *network) launch(fl *flight) {
	if fl.mad.IsDR() {
		f.launchDirected(fl)
		return
	}
	f.routeByLID(fl)
}

// routeByLID takes a packet to the port that has the LID it is for.
func (f *network) routeByLID(fl *flight) {
	if at := f.forwardFrom(fl, fl.from); at != nil {
		f.arrive(fl, at)
	}
}

// forwardFrom moves a packet from a port by the forwarding tables to the end port
// that has the LID it is for; nil: it ended on the way.
func (f *network) forwardFrom(fl *flight, at *port) *port {
	if at.endPort().owns(fl.dlid) {
		return at.endPort()
	}
	smp := fl.mad.IsSMP()
	for range maxHops {
		out := at
		if at.node.sw != nil {
			if at.endPort().owns(fl.dlid) {
				fl.in = at
				return at.endPort()
			}
			if out = at.node.forward(fl.dlid); out == nil {
				f.stats.NoRoute++
				at.counters.RelayError()
				f.undelivered(fl)
				return nil
			}
		}
		if !smp && !out.admitsGMP(fl, outbound) || !f.cross(out, smp) || !smp && out.peer.node.sw != nil && !out.peer.admitsGMP(fl, inbound) {
			f.undelivered(fl)
			return nil
		}
		if at = out.peer; at.node.sw == nil {
			break
		}
	}
	switch {
	case at.node.sw != nil:
		f.stats.Looped++
	case !at.owns(fl.dlid):
		f.stats.NoRoute++
	default:
		fl.in = at
		return at
	}
	f.undelivered(fl)
	return nil
}

// admitsGMP applies the partition rules of a port to a GMP that crosses it, and handles a refusal. As with data, a sending
// adapter is not checked.
func (p *port) admitsGMP(fl *flight, way direction) bool {
	if way == outbound && p.isEnd() {
		return true
	}
	why := p.admits(packetIBA, fl.key, way)
	if why == admitted {
		return true
	}
	p.refuse(why, fl.head(), way)
	return false
}

// head returns the fields of a GMP for a notice.
func (fl *flight) head() *packetHead {
	h := &packetHead{slid: fl.slid, dlid: fl.dlid, sqp: fl.sqp, dqp: fl.dqp, pkey: fl.key, qkey: gmpQKey, sl: fl.sl}
	if fl.grh != nil {
		h.sgid, h.dgid = fl.grh.SGID, fl.grh.DGID
	}
	return h
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
func (f *network) cross(out *port, smp bool) bool {
	if !out.carries(smp) {
		f.stats.LinkDown++
		out.counters.Discard()
		return false
	}
	out.counters.Sent()
	out.peer.counters.Received()
	return true
}

// malformed drops a packet that no rule covers.
func (f *network) malformed(fl *flight) {
	f.stats.Malformed++
	f.undelivered(fl)
}

// undelivered ends a packet that reaches no receiver. A station's request goes back to it, unless the fabric loses
// silently.
func (f *network) undelivered(fl *flight) {
	f.stats.Undelivered++
	if fl.origin == nil || fl.origin.host != nil || f.opts.LoseSilently {
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
	if p := fl.origin.place(m, true); p != nil {
		p.MAD, p.LID, p.QP, p.Undelivered = *m, fl.dlid, fl.dqp, true
	}
}
