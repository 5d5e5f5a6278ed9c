package sim

import "portcullis/fabricsm/ib"

// carry takes a unicast packet to its end, over routers too, and counts it on the
// way. Called with mu held.
func (f *network) carry(from *port, d *Data) (Fate, *port) {
	fate, at := f.carryInSubnet(from, d)
	for fate == Delivered && at.routesOn(d) {
		next, out, routed := at.routeOn(d)
		if routed != Delivered {
			return routed, out
		}
		d = &next
		fate, at = f.carryInSubnet(out, d)
	}
	return fate, at
}

// carryInSubnet takes a packet to an end port of the subnet it is in, which may be
// that of a router.
func (f *network) carryInSubnet(from *port, d *Data) (Fate, *port) {
	at := from
	if from.endPort().owns(d.DLID) {
		return f.takeData(from.endPort(), d)
	}
	in := ib.PortNum(0)
	for range maxHops {
		out := at
		if at.node.sw != nil {
			if at.endPort().owns(d.DLID) {
				return f.takeData(at.endPort(), d)
			}
			if out = at.node.forward(d.DLID); out == nil {
				f.stats.NoRoute++
				at.counters.RelayError()
				return NoRoute, at
			}
			in = at.num
		}
		if fate, where := f.crossData(out, in, d); fate != Delivered {
			if out == from && fate == LinkDown {
				fate = NotSent
			}
			return fate, where
		}
		if at = out.peer; at.node.sw == nil {
			return f.takeData(at, d)
		}
	}
	f.stats.Looped++
	at.counters.RelayError()
	return Looped, at
}

// crossData moves a packet that entered a node by port in over the link of out, with the checks of the egress port and of
// the far ingress port.
func (f *network) crossData(out *port, in ib.PortNum, d *Data) (Fate, *port) {
	if !out.carries(false) {
		f.stats.LinkDown++
		out.counters.Discard()
		return LinkDown, out
	}
	if fate := out.passes(d, outbound); fate != Delivered {
		return fate, out
	}
	switch {
	case !out.hasLane(in, d.SL):
		out.counters.Discard()
		return NoLane, out
	case d.Payload > out.info.NeighborMTU.Bytes():
		out.counters.Discard()
		return TooLong, out
	}
	words, multicast := d.words(), d.DLID.IsMulticast()
	out.counters.SentData(words, multicast)
	far := out.peer
	far.counters.ReceivedData(words, multicast)
	if far.isEnd() {
		return Delivered, far // which checks when it takes the packet
	}
	return far.passes(d, inbound), far
}

// passes applies the rules of a port to a packet that crosses it, and handles a refusal. It does not check a sending
// adapter: its driver may be a modified one.
func (p *port) passes(d *Data, way direction) Fate {
	if way == outbound && p.isEnd() {
		return Delivered
	}
	kind := packetIBA
	if d.Raw {
		kind = packetRaw
	}
	why := p.admits(kind, d.PKey, way)
	if why == admitted {
		return Delivered
	}
	p.refuse(why, d.head(), way)
	switch {
	case why == refusedRaw:
		return RawFiltered
	case p.isEnd():
		return PKeyDestination
	case way == inbound:
		return PKeyInbound
	default:
		return PKeyOutbound
	}
}

// hasLane reports whether packets of a service level that came in by a port can
// leave by p on a data lane (IBTA volume 1, 7.6.6).
func (p *port) hasLane(in ib.PortNum, sl ib.SL) bool {
	if int(in) >= len(p.slToVL) || sl > 15 {
		return false
	}
	pair := p.slToVL[in][sl/2]
	if sl%2 == 0 {
		pair >>= 4
	}
	return int(pair&0xF) < p.info.OperationalVLs.Count()
}

// takeData ends a packet at an end port. A router does not consume a packet that it has to forward.
func (f *network) takeData(at *port, d *Data) (Fate, *port) {
	if !d.DLID.IsMulticast() && !at.owns(d.DLID) {
		f.stats.NoRoute++
		return WrongPort, at
	}
	if fate := at.passes(d, inbound); fate != Delivered {
		return fate, at
	}
	if at.routesOn(d) {
		return Delivered, at
	}
	if d.DestQP == 1 && !d.Raw && d.QKey != 0 && d.QKey != gmpQKey {
		at.refuse(refusedQKey, d.head(), inbound)
		return QKeyRefused, at
	}
	if loss := at.node.activeFault().Loss; loss > 0 && f.rng.Float64() < loss {
		f.stats.Lost++
		return Faulty, at
	}
	f.stats.DataDelivered++
	return Delivered, at
}
