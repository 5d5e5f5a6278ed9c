package violation

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// The source of a report. None of these fields proves it:
//
//   - the source LID of a packet is stamped by the sender's adapter. Other firmware may
//     stamp another;
//   - a directed route says by which port it came into each switch on its way, last hop
//     last, and switches write that themselves. The sender may have written entries
//     before the first switch did, to look as if it came from further away. So the way is
//     walked back from the device that reports it, over the cables that are known, and
//     ends at the first that is no switch: only a switch forwards directed routes. But an
//     SMP whose hop pointer is past its hop count is taken by the first that gets it
//     (IBTA volume 1, C14-9), with a way that its sender made up whole;
//   - the trap itself may be forged.
//
// The LID that the sender wrote into the SMP as its own (DrSLID) names no port: it is recorded where it differs.

// trace walks the return path of a directed-route SMP back from the port that refused it, and returns the end port that
// sent it; None if the path leads nowhere. Entry i of the path is the port by which hop i came in, from 1 to hops.
func (l *Log) trace(from topo.PortID, path []ib.PortNum, hops int) topo.PortID {
	if hops >= len(path) {
		return topo.None
	}
	at, end := l.nodeOf(from), topo.PortID(topo.None)
	for i := hops; i >= 1; i-- {
		out := l.topo.PortOf(at, path[i])
		if i == hops && path[i] == 0 && at == l.nodeOf(from) && !l.isExternal(from) {
			out = from // some adapters leave their own port out
		}
		if out == topo.None || l.topo.Port(out).Num == 0 {
			return topo.None
		}
		if end = l.peer(out); end == topo.None {
			return topo.None
		}
		at = l.nodeOf(end)
		if l.topo.Node(at).Type != ib.NodeSwitch {
			return end
		}
	}
	if end != topo.None {
		end = l.topo.Node(at).FirstPort // a switch itself
	}
	return end
}

// accuse names an end port as the source of a report.
func (l *Log) accuse(r *report, p topo.PortID, by Basis) {
	r.guid, r.place, r.by = l.guidOf(p), l.fabric.PlaceOf(p), by
	if l.isSwitch(p) {
		r.place = ib.Place{Switch: l.nodeGUID(l.nodeOf(p))}
	}
}

// accuseLID names the port with a LID as the source, as a packet says that it is.
func (l *Log) accuseLID(r *report, lid ib.LID) {
	if p := l.fabric.ByLID(lid); p != topo.None {
		l.accuse(r, p, ByLID)
		return
	}
	r.lid = lid
}

// accuseMKey names the sender of an SMP that a device refused, and returns its LID, or 0.
func (l *Log) accuseMKey(r *report, from topo.PortID, n *mad.Trap256) ib.LID {
	if !n.DRNotice {
		l.accuseLID(r, n.LID)
		return n.LID
	}
	source := l.accuseDirected(r, from, n)
	if n.DrSLID.IsUnicast() && n.DrSLID != source && !(source != 0 && l.fabric.ByLID(n.DrSLID) != topo.None && l.fabric.ByLID(n.DrSLID) == l.fabric.ByLID(source)) {
		r.named = n.DrSLID
	}
	return source
}

// accuseDirected is accuseMKey for a directed route. Its last part may have been routed
// by LID: then the switch at the end of the path stamped its LID, or an adapter sent it by
// LID alone and stamped its own.
func (l *Log) accuseDirected(r *report, from topo.PortID, n *mad.Trap256) ib.LID {
	stamped, at := topo.PortID(topo.None), from
	if n.LID.IsUnicast() {
		if stamped = l.fabric.ByLID(n.LID); stamped == topo.None || l.topo.Port(stamped).Num != 0 || n.DRHopCount == 0 {
			l.accuseLID(r, n.LID)
			return n.LID
		}
		at = stamped
	}
	p := topo.PortID(topo.None)
	if !n.DRPathTruncated && n.DRHopCount > 0 {
		p = l.trace(at, n.DRReturnPath[:], int(n.DRHopCount))
	}
	switch {
	case p != topo.None && (l.topo.Port(p).Num != 0 || !n.DrSLID.IsUnicast()):
		l.accuse(r, p, ByWay)
		return l.fabric.LIDOf(p)
	case p == topo.None && stamped != topo.None:
		l.accuse(r, stamped, ByLID)
		return n.LID
	default:
		return 0 // the way leads nowhere, or to a switch that got it by LID from a sender that nothing shows
	}
}

// accuseSwitch names the sender of a packet that an external port of a switch stopped:
// the port that is cabled there, unless the packet was on its way out to that one.
func (l *Log) accuseSwitch(r *report, port topo.PortID, n *mad.Trap259) {
	from, to := l.fabric.ByLID(n.LIDADDR1), l.fabric.ByLID(n.LIDADDR2)
	peer := l.peer(port)
	outbound := peer != topo.None && to != topo.None && to == l.endOf(peer) && from != to
	if outbound || peer == topo.None {
		l.accuseLID(r, n.LIDADDR1)
		return
	}
	if p := l.endOf(peer); !l.isSwitch(p) {
		l.accuse(r, p, ByPort)
		return
	}
	l.accuseLID(r, n.LIDADDR1) // it came over a trunk
}

// unaccuse takes the source of a report back.
func unaccuse(r *report) { r.guid, r.place, r.by = 0, ib.Place{}, ByNothing }

func (l *Log) nodeOf(p topo.PortID) topo.NodeID { return l.topo.Port(p).Node }
func (l *Log) guidOf(p topo.PortID) ib.GUID     { return l.topo.Port(p).GUID }
func (l *Log) nodeGUID(id topo.NodeID) ib.GUID  { return l.topo.Node(id).GUID }
func (l *Log) peer(p topo.PortID) topo.PortID   { return l.topo.Port(p).Peer }
func (l *Log) isSwitch(p topo.PortID) bool      { return l.topo.Node(l.nodeOf(p)).Type == ib.NodeSwitch }

// isExternal reports whether a port is one of a switch that has a cable.
func (l *Log) isExternal(p topo.PortID) bool { return l.topo.Port(p).Num != 0 && l.isSwitch(p) }

// isEnd reports whether a port has LIDs: port 0 of a switch, or any of another node.
func (l *Log) isEnd(p topo.PortID) bool { return (l.topo.Port(p).Num == 0) == l.isSwitch(p) }

// endOf returns the end port that is asked about a port: itself, or port 0 of its switch.
func (l *Log) endOf(p topo.PortID) topo.PortID {
	if l.isEnd(p) {
		return p
	}
	return l.topo.Node(l.nodeOf(p)).FirstPort
}
