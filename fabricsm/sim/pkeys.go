package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/perf"
)

// packetKind is the kind of a packet for the checks of a port.
type packetKind uint8

const (
	packetSMP packetKind = iota // on VL15: no partition holds it
	packetIBA                   // with a base transport header, so with a P_Key: GMPs and data
	packetRaw                   // without: no P_Key can be checked
)

// direction is the way a packet takes through a port, as the port sees it.
type direction uint8

const (
	inbound  direction = iota // from the link
	outbound                  // to the link
)

// verdict is the decision of a port about a packet.
type verdict uint8

const (
	admitted    verdict = iota
	refusedPKey         // its P_Key matches no entry of the port's table
	refusedQKey         // its Q_Key is not that of the queue pair
	refusedRaw          // it is raw, and the port takes none
)

// packetHead has the fields of a refused packet for a notice. GIDs are zero without a global route header.
type packetHead struct {
	slid, dlid ib.LID
	sgid, dgid ib.GID
	sqp, dqp   uint32 // 24 bits
	qkey       uint32
	pkey       ib.PKey
	sl         ib.SL
}

// admits decides on a packet that crosses a port, and changes nothing; refuse handles a refusal. Call it at both ends of
// each link that a packet crosses, outbound first. It does not check whether the link is up.
//
// External ports of switches check as their PortInfo says. Outbound, the P_Key must match an entry (IBTA volume 1, 10.9.3:
// same base, one of the two full). Inbound, the far end must be allowed to use the P_Key: an entry has the same base, and
// is full if the packet claims to be. By the matching rule alone a limited member could either send nothing or call itself
// full. Switches that look at the base alone are Device.InboundBaseOnly.
//
// End ports check incoming packets. Outgoing packets carry an entry of the table, because the queue pair has an index and
// no P_Key; for a manipulated adapter, do not call admits. Port 0 of a switch is an end port.
func (p *port) admits(kind packetKind, key ib.PKey, way direction) verdict {
	if kind == packetSMP {
		return admitted
	}
	if p.isEnd() {
		return p.endAdmits(kind, key, way)
	}
	enforced, filtered := p.info.PartitionEnforcementInbound, p.info.FilterRawInbound
	if way == outbound {
		enforced, filtered = p.info.PartitionEnforcementOutbound, p.info.FilterRawOutbound
	}
	switch {
	case p.node.model().PretendsEnforcement:
		return admitted
	case kind == packetRaw && filtered:
		return refusedRaw
	case kind == packetRaw || !enforced:
		return admitted
	case way == outbound && p.pkeys.holds(key, ib.PKey.Matches):
		return admitted
	case way == inbound && p.pkeys.holds(key, p.node.model().inboundRule()):
		return admitted
	default:
		return refusedPKey
	}
}

func (p *port) endAdmits(kind packetKind, key ib.PKey, way direction) verdict {
	rule := ib.PKey.Matches
	if way == outbound {
		rule = samePKey
	}
	if kind == packetRaw || p.pkeys.holds(key, rule) {
		return admitted
	}
	return refusedPKey
}

// pkeyRule reports whether an entry of a table lets a packet's P_Key pass.
type pkeyRule func(packet, entry ib.PKey) bool

func samePKey(packet, entry ib.PKey) bool { return packet.Valid() && packet == entry }
func sameBase(packet, entry ib.PKey) bool { return packet.Valid() && packet.Base() == entry.Base() }

// notAbove lets a packet claim no more than the entry has.
func notAbove(packet, entry ib.PKey) bool {
	return sameBase(packet, entry) && (entry.IsFull() || !packet.IsFull())
}

// refuse handles a packet that a port does not admit: it counts the packet, and notifies the subnet manager.
func (p *port) refuse(why verdict, head *packetHead, way direction) {
	if !p.isEnd() {
		if way == inbound {
			p.counters.PortRcvConstraintErrors = perf.Saturate8(p.counters.PortRcvConstraintErrors, 1)
		} else {
			p.counters.PortXmitConstraintErrors = perf.Saturate8(p.counters.PortXmitConstraintErrors, 1)
		}
		if why == refusedPKey {
			p.sendSwitchPKeyTrap(head)
		}
		return
	}
	if way == outbound {
		return // only the software of the adapter is notified
	}
	switch why {
	case refusedPKey:
		p.info.PKeyViolations = perf.Saturate16(p.info.PKeyViolations, 1)
		if head.dlid.IsMulticast() && p.suppressesMulticast() {
			break
		}
		p.sendKeyTrap(mad.TrapBadPKey, uint32(head.pkey), head)
	case refusedQKey:
		p.info.QKeyViolations = perf.Saturate16(p.info.QKeyViolations, 1)
		p.sendKeyTrap(mad.TrapBadQKey, head.qkey, head)
	default:
		return
	}
	p.commit()
}

// suppressesMulticast reports whether a port is set to send no trap for wrong P_Keys of multicast packets, and supports
// this.
func (p *port) suppressesMulticast() bool {
	return p.info.MulticastPKeyTrapSuppressionEnabled != 0 && p.info.CapabilityMask.Has(mad.IsMulticastPKeyTrapSuppressionSupported)
}

// sendKeyTrap reports that a packet arrived at an end port with a wrong P_Key or Q_Key: trap 257 or 258.
func (p *port) sendKeyTrap(number mad.TrapNum, key uint32, head *packetHead) {
	var data [mad.DataSize]byte
	must(mad.Encode(data[:], &mad.Trap257{
		NoticeHeader: p.node.noticeHeader(mad.NoticeSecurity, number, p),
		LIDADDR1:     head.slid, LIDADDR2: head.dlid, Key: key, SL: head.sl, QP1: head.sqp, QP2: head.dqp,
		GIDADDR1: head.sgid, GIDADDR2: head.dgid,
	}))
	p.node.paceTrap(p, number, p.num, &data)
}

// sendSwitchPKeyTrap reports that an external port of a switch dropped a packet for its P_Key: trap 259.
func (p *port) sendSwitchPKeyTrap(head *packetHead) {
	from := p.endPort()
	if !from.info.CapabilityMask.Has(mad.IsPKeySwitchExternalPortTrapSupported) {
		return
	}
	var data [mad.DataSize]byte
	must(mad.Encode(data[:], &mad.Trap259{
		NoticeHeader: p.node.noticeHeader(mad.NoticeSecurity, mad.TrapBadPKeySwitch, from),
		DataValid:    allTrap259Fields,
		LIDADDR1:     head.slid, LIDADDR2: head.dlid, PKey: head.pkey, SL: head.sl, QP1: head.sqp, QP2: head.dqp,
		GIDADDR1: head.sgid, GIDADDR2: head.dgid, SwitchLID: from.info.LID, PortNum: p.num,
	}))
	p.node.paceTrap(from, mad.TrapBadPKeySwitch, p.num, &data)
}

// allTrap259Fields marks all fields of trap 259 as valid. The meaning of its bits is not public.
const allTrap259Fields = 0x00FF
