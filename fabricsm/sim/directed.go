package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// A directed route has up to three parts (IBTA volume 1, 14.2.2): to a switch by
// LID, unless DrSLID is permissive; hop by hop along the path; and on by LID, unless
// DrDLID is permissive. The answer takes them in reverse.

// launchDirected starts a directed-route SMP at its originator or responder.
func (f *network) launchDirected(fl *flight) {
	m := &fl.mad
	hops, pointer := m.HopCount(), m.HopPointer()
	switch {
	case hops > mad.MaxHops:
		f.malformed(fl)
	case !m.Returning() && (pointer == 0 || fl.origin == nil && pointer <= hops+1 && fl.from.node.sw == nil):
		f.walkOut(fl)
	case m.Returning() && (pointer == hops+1 || pointer == 0):
		// A responder that copied ibsim's request has pointer 0.
		f.walkBack(fl)
	default:
		f.malformed(fl)
	}
}

// walkOut takes a request to its target. A request that an adapter forged may begin in the middle of its path: with a hop
// pointer above 0, as if the hops before were already taken.
func (f *network) walkOut(fl *flight) {
	m, at := &fl.mad, fl.from
	hops, path, back := m.HopCount(), m.InitialPath(), m.ReturnPath()
	if m.DrSLID() != ib.PermissiveLID {
		if at = f.forwardFrom(fl, at); at == nil {
			return
		}
		if at.node.sw == nil && hops > 0 {
			f.malformed(fl) // only switches begin a path in the middle of a route
			return
		}
	}
	begun := m.HopPointer()
	if begun > hops && hops > 0 { // at its end already: the receiver takes it, and the way back is as it was forged
		if m.DrDLID() != ib.PermissiveLID || !f.cross(at, true) {
			f.undelivered(fl)
			return
		}
		at, fl.slid = at.peer, ib.PermissiveLID
	}
	for hop := max(1, begun); hop <= hops; hop++ {
		out := at.node.egress(at, ib.PortNum(path[hop]), hop == 1)
		if begun > 0 && hop == begun {
			out = at
		}
		if out == nil || !f.cross(out, true) {
			f.undelivered(fl)
			return
		}
		at = out.peer
		fl.slid = ib.PermissiveLID // switches write it again
		back[hop] = byte(at.num)
		m.SetHopPointer(hop + 1)
		if at.node.sham != nil {
			f.pretend(fl, at, hop)
			return
		}
	}
	m.SetHopPointer(hops + 1)
	if hops > 0 {
		fl.in = at
	}
	if m.DrDLID() != ib.PermissiveLID {
		if at.node.sw == nil {
			f.malformed(fl) // no other device forwards a packet that is at its end either
			return
		}
		if at = f.forwardOn(fl, at, m.DrDLID()); at == nil {
			return
		}
	}
	f.arrive(fl, at)
}

// forwardOn takes a packet that has reached the end of its path on to a LID; nil: it
// ended on the way.
func (f *network) forwardOn(fl *flight, at *port, lid ib.LID) *port {
	fl.slid, fl.dlid = at.endPort().info.LID, lid
	return f.forwardFrom(fl, at)
}

// egress is the port through which a directed route may leave: any external
// port of a switch, of others only the one where it starts.
func (n *node) egress(in *port, num ib.PortNum, first bool) *port {
	if num == 0 || int(num) >= len(n.ports) || n.sw == nil && (!first || num != in.num) {
		return nil
	}
	return n.ports[num]
}

// walkBack takes a response to the originator of the request. If the last part is
// by LID, the response begins at a switch, whose LID it is for.
func (f *network) walkBack(fl *flight) { f.walkBackFrom(fl, fl.mad.HopCount()) }

// walkBackFrom is walkBack of an answer with the given number of hops left.
func (f *network) walkBackFrom(fl *flight, hops uint8) {
	m, at := &fl.mad, fl.from
	path := m.ReturnPath()
	if m.DrDLID() != ib.PermissiveLID {
		if at = f.forwardFrom(fl, at); at == nil {
			return
		}
		if at.node.sw == nil && hops > 0 {
			f.malformed(fl)
			return
		}
	}
	for hop := hops; hop >= 1; hop-- {
		out := at.node.egress(at, ib.PortNum(path[hop]), hop == hops)
		if out == nil || !f.cross(out, true) {
			f.undelivered(fl)
			return
		}
		at = out.peer
	}
	m.SetHopPointer(0)
	if m.DrSLID() != ib.PermissiveLID {
		if at.node.sw == nil && hops > 0 {
			f.malformed(fl)
			return
		}
		if at = f.forwardOn(fl, at, m.DrSLID()); at == nil {
			return
		}
	}
	f.arrive(fl, at)
}
