package sim

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// Sizes of headers in bytes (IBTA volume 1, 5.2). A raw packet has none but the
// local route header.
const (
	lrhSize  = 8
	bthSize  = 12
	icrcSize = 4
	grhSize  = 40
)

// Data is a data packet with every header that decides where it goes and who
// takes it. Its sender may be a modified driver, so no field need be true.
type Data struct {
	SLID     ib.LID
	DLID     ib.LID
	SL       ib.SL
	PKey     ib.PKey
	SourceQP uint32 // of a datagram
	DestQP   uint32
	QKey     uint32 // of a datagram: queue pair 1 takes its own, 0x80010000, and 0 stands for the right one; others take any
	GRH      *GRH   // a global route header, nil: none
	Raw      bool   // a raw packet: it has no transport header, hence no P_Key and no queue pair
	Payload  int    // bytes
}

// GRH is what of a global route header (IBTA volume 1, 8.3) a host can choose.
type GRH struct {
	SGID, DGID ib.GID
	HopLimit   uint8
}

// words is what the packet adds to data counters, which count words of four
// bytes (IBTA volume 1, 16.1.3.5).
func (d *Data) words() uint32 {
	size := lrhSize + d.Payload
	if d.GRH != nil {
		size += grhSize
	}
	if !d.Raw {
		size += bthSize + icrcSize
	}
	return uint32((size + 3) / 4)
}

// Fate is what became of a packet.
type Fate uint8

// Fates of a packet. All but Delivered are drops, and each is counted at the
// port where it happened.
const (
	Delivered       Fate = iota // at a port that has the LID, or is a member of the group
	NotSent                     // the sender's port is not Active, or has no cable
	NoRoute                     // the table of a switch has no port for the LID
	Looped                      // ended after 64 switches
	LinkDown                    // the link it should leave by is down, or not Active
	NoLane                      // its service level is mapped to VL15, or to a lane the port has not
	TooLong                     // longer than the MTU of a link
	PKeyInbound                 // refused where it came into an enforcing switch port
	PKeyOutbound                // refused where it would leave an enforcing switch port
	PKeyDestination             // not in the table of the port it reached
	RawFiltered                 // a raw packet at a switch port that filters them
	WrongPort                   // at a port that does not have the LID
	Faulty                      // lost by a Fault
	QKeyRefused                 // not the Q_Key of the queue pair it is for
)

var fateNames = [...]string{
	"delivered", "not sent", "no route", "looped", "link down", "no lane", "too long", "P_Key refused inbound",
	"P_Key refused outbound", "P_Key refused at the destination", "raw packet filtered", "wrong port", "lost by a fault", "Q_Key refused",
}

// String names the fate.
func (f Fate) String() string {
	if int(f) >= len(fateNames) {
		return fmt.Sprintf("fate %d", uint8(f))
	}
	return fateNames[f]
}

// Report says what became of a packet and where.
type Report struct {
	Fate Fate
	At   Endpoint // where it ended; of a multicast packet where the last copy did
	To   []Endpoint
}

// Inject sends a data packet from a port as it is, whatever it claims, through
// the tables as they are. To lists who got it: the one port that has the LID or,
// for a multicast LID, every port that a copy reached; a drop of one copy of
// several is in the counters alone.
func (f *Fabric) Inject(from Endpoint, d Data) (Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(from.Node, from.Port)
	if err != nil {
		return Report{}, fmt.Errorf("inject: %w", err)
	}
	if d.Payload < 0 {
		return Report{}, fmt.Errorf("inject: payload of %d bytes", d.Payload)
	}
	if d.DLID.IsMulticast() {
		r := f.spread(p, &d)
		f.run()
		f.settle()
		return r, nil
	}
	fate, at := f.carry(p, &d)
	r := Report{Fate: fate, At: at.endpoint()}
	if fate == Delivered {
		r.To = []Endpoint{r.At}
	}
	f.run() // the traps
	f.settle()
	return r, nil
}

func (p *port) endpoint() Endpoint { return Endpoint{p.node.name, p.num} }

// carry takes a unicast packet to its end, and counts it on the way. Called with
// mu held.
func (f *Fabric) carry(from *port, d *Data) (Fate, *port) {
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
				at.relayError()
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
	at.relayError()
	return Looped, at
}

func (p *port) relayError() {
	p.counters.PortRcvSwitchRelayErrors = saturate16(p.counters.PortRcvSwitchRelayErrors, 1)
}

func (p *port) discard() {
	p.counters.PortXmitDiscards = saturate16(p.counters.PortXmitDiscards, 1)
}

// crossData takes a packet that came in by port in of a node over the link
// behind out: through what the egress port and the far ingress port demand.
func (f *Fabric) crossData(out *port, in ib.PortNum, d *Data) (Fate, *port) {
	if !out.carries(false) {
		f.stats.LinkDown++
		out.discard()
		return LinkDown, out
	}
	if fate := out.passes(d, outbound); fate != Delivered {
		return fate, out
	}
	switch {
	case !out.hasLane(in, d.SL):
		out.discard()
		return NoLane, out
	case d.Payload > out.info.NeighborMTU.Bytes():
		out.discard()
		return TooLong, out
	}
	out.counters.sentData(d)
	far := out.peer
	far.counters.receivedData(d)
	if far.isEnd() {
		return Delivered, far // who checks as it takes the packet
	}
	return far.passes(d, inbound), far
}

// passes asks a port's rules about a packet that crosses it, and does what
// follows from a refusal. An adapter that sends is not asked: its driver may be
// a modified one.
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

// head is what a notice tells of the packet.
func (d *Data) head() *packetHead {
	h := &packetHead{slid: d.SLID, dlid: d.DLID, sqp: d.SourceQP, dqp: d.DestQP, qkey: d.QKey, pkey: d.PKey, sl: d.SL}
	if d.GRH != nil {
		h.sgid, h.dgid = d.GRH.SGID, d.GRH.DGID
	}
	return h
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

// takeData ends a packet at an end port.
func (f *Fabric) takeData(at *port, d *Data) (Fate, *port) {
	if !d.DLID.IsMulticast() && !at.owns(d.DLID) {
		f.stats.NoRoute++
		return WrongPort, at
	}
	if fate := at.passes(d, inbound); fate != Delivered {
		return fate, at
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

// spread takes a multicast packet to every end port that the tables lead to.
func (f *Fabric) spread(from *port, d *Data) (r Report) {
	r.Fate, r.At = NoRoute, from.endpoint()
	type copied struct {
		at   *port // where this copy came in
		hops int
	}
	queue := []copied{{from, 0}}
	if from.node.sw == nil {
		fate, at := f.crossData(from, 0, d)
		if fate != Delivered {
			if fate == LinkDown {
				fate = NotSent
			}
			return Report{Fate: fate, At: at.endpoint()}
		}
		queue[0].at = at
	}
	end := func(fate Fate, at *port) {
		if r.Fate != Delivered {
			r.Fate, r.At = fate, at.endpoint()
		}
		if fate == Delivered {
			r.To = append(r.To, at.endpoint())
		}
	}
	for copies := 0; len(queue) > 0; queue = queue[1:] {
		c := queue[0]
		if copies++; c.hops >= maxHops || copies > len(f.nodes)*maxHops {
			f.stats.Looped++
			c.at.relayError()
			end(Looped, c.at)
			continue
		}
		if c.at.node.sw == nil {
			end(f.takeData(c.at, d))
			continue
		}
		ports := c.at.node.multicastPorts(d.DLID)
		if len(ports) == 0 {
			f.stats.NoRoute++
			c.at.relayError()
			end(NoRoute, c.at)
		}
		for _, num := range ports {
			out := c.at.node.ports[num]
			switch num {
			case c.at.num:
			case 0:
				end(f.takeData(out, d))
			default:
				if fate, at := f.crossData(out, c.at.num, d); fate == Delivered {
					queue = append(queue, copied{at, c.hops + 1})
				} else {
					end(fate, at)
				}
			}
		}
	}
	return r
}
