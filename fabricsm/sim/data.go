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

// Data is a data packet with every header that decides about its way and its receiver. Its sender may be a modified driver,
// so no field need be true.
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

// GRH has the fields of a global route header (IBTA volume 1, 8.3) that a host can choose.
type GRH struct {
	SGID, DGID ib.GID
	HopLimit   uint8

	TrafficClass uint8
	FlowLabel    uint32 // 20 bits
}

// words returns the size of the packet in data counters, which count words of four bytes (IBTA volume 1, 16.1.3.5).
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

// Fate is the result of sending a packet.
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
	HopLimitReached             // at a router that may not pass it on
)

var fateNames = [...]string{
	"delivered", "not sent", "no route", "looped", "link down", "no lane", "too long", "P_Key refused inbound",
	"P_Key refused outbound", "P_Key refused at the destination", "raw packet filtered", "wrong port", "lost by a fault", "Q_Key refused", "hop limit reached",
}

// String names the fate.
func (f Fate) String() string {
	if int(f) >= len(fateNames) {
		return fmt.Sprintf("fate %d", uint8(f))
	}
	return fateNames[f]
}

// Report has the fate of a packet and the place of its end.
type Report struct {
	Fate Fate
	At   Endpoint // where it ended; of a multicast packet where the last copy did
	To   []Endpoint
}

// Inject sends a data packet unchanged from a port, through the current tables. To lists its receivers: the one port that
// has the LID or, for a multicast LID, every port that a copy reached. If one of several copies is dropped, only the
// counters show it.
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

// head returns the fields of the packet for a notice.
func (d *Data) head() *packetHead {
	h := &packetHead{slid: d.SLID, dlid: d.DLID, sqp: d.SourceQP, dqp: d.DestQP, qkey: d.QKey, pkey: d.PKey, sl: d.SL}
	if d.GRH != nil {
		h.sgid, h.dgid = d.GRH.SGID, d.GRH.DGID
	}
	return h
}
