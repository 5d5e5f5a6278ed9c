package violation

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violationlog"
	"portcullis/fabricsm/topo"
)

// Trap is a trap of class SubnLID.
type Trap struct {
	MAD  *mad.MAD
	Head *mad.NoticeHeader // of it
	LID  ib.LID            // source
	From topo.PortID       // end port that has this LID, None if none has
	// ByAnswer is set for a trap that is about an answer of this subnet manager to another trap.
	ByAnswer bool
}

// Claim names the row of a report, and the port whose counters prove it: None if none do.
type Claim struct {
	row   int32
	about topo.PortID
}

// NoteTrap counts the report of a trap. Log.Check has it proven.
func (l *Log) NoteTrap(t *Trap) Claim {
	what := report{trap: t.Head.TrapNumber, method: mad.MethodTrap}
	if l.forged(t) {
		what.kind = ForgedTrap
		if t.From != topo.None {
			l.accuse(&what, t.From, ByLID)
		}
		return Claim{l.note(what, t.LID, t.MAD.TID()), topo.None}
	}
	if t.From == topo.None {
		what.kind = OtherTrap
		return Claim{l.note(what, t.LID, t.MAD.TID()), topo.None}
	}
	p, data, lid, about := t.From, t.MAD.Data(), t.LID, topo.PortID(topo.None)
	l.accuse(&what, p, ByLID) // a trap that is no violation is about the reporter itself
	switch what.kind = kindOf(t.Head); what.kind {
	case BadMKey:
		var n mad.Trap256
		decode(data, &n)
		what.method, what.attr = n.Method, n.AttributeID
		unaccuse(&what)
		if lid, about = l.accuseMKey(&what, p, &n), p; what.guid == l.opt.PortGUID && (what.by == ByWay || t.ByAnswer) {
			what.kind = OwnMKey
		}
	case BadPKey, BadQKey:
		unaccuse(&what)
		lid, about = l.notePacket(&what, p, t.Head, data)
	case LinkIntegrity, BufferOverrun, FlowControl:
		var n mad.Trap129
		decode(data, &n)
		about = l.topo.PortOf(l.nodeOf(p), n.PortNum)
	default:
	}
	l.reported(&what, p, about)
	row := l.note(what, lid, t.MAD.TID())
	if !what.kind.Violation() && what.kind != OwnMKey {
		about = topo.None
	}
	return Claim{row, about}
}

// notePacket completes what traps 257 to 259 say of a packet.
func (l *Log) notePacket(what *report, p topo.PortID, head *mad.NoticeHeader, data []byte) (ib.LID, topo.PortID) {
	if head.TrapNumber == mad.TrapBadPKeySwitch {
		var n mad.Trap259
		decode(data, &n)
		what.pkey = n.PKey
		q := l.topo.PortOf(l.nodeOf(p), n.PortNum)
		l.accuseSwitch(what, q, &n)
		return n.LIDADDR1, q
	}
	var n mad.Trap257
	decode(data, &n)
	if what.kind == BadPKey {
		what.pkey = ib.PKey(n.Key)
	} else {
		what.number = n.QP2
	}
	l.accuseLID(what, n.LIDADDR1)
	return n.LIDADDR1, p
}

// reported names the device that sent a trap, or says that it is about port q of it.
func (l *Log) reported(r *report, p, q topo.PortID) {
	r.reporter = l.guidOf(p)
	switch {
	case !l.isSwitch(p):
		r.at = l.fabric.PlaceOf(p)
	case q != topo.None && q != p:
		r.at = l.fabric.PlaceOf(q)
	}
}

// decode decodes data that is long enough by construction.
func decode[T any](data []byte, n *T) {
	if err := mad.Decode(data, n); err != nil {
		panic("violation: " + err.Error())
	}
}

// kindOf returns the kind of a trap of class SubnLID.
func kindOf(head *mad.NoticeHeader) Kind {
	if !head.IsGeneric {
		return OtherTrap
	}
	switch head.TrapNumber {
	case mad.TrapLinkStateChange:
		return LinkState
	case mad.TrapLinkIntegrity:
		return LinkIntegrity
	case mad.TrapBufferOverrun:
		return BufferOverrun
	case mad.TrapFlowControl:
		return FlowControl
	case mad.TrapLocalChange:
		return LocalChange
	case mad.TrapSystemImageGUID:
		return ImageChange
	case mad.TrapBadMKey:
		return BadMKey
	case mad.TrapBadPKey, mad.TrapBadPKeySwitch:
		return BadPKey
	case mad.TrapBadQKey:
		return BadQKey
	default:
		return OtherTrap
	}
}

// forged reports whether a trap contradicts itself: it names another issuer than the one whose LID it comes from, speaks of
// ports that this one does not have, or is one that only a subnet manager, or only a switch, sends.
func (l *Log) forged(t *Trap) bool {
	p, head := t.From, t.Head
	if p == topo.None || !head.IsGeneric {
		return false
	}
	own := func(lid ib.LID) bool { return lid == 0 || l.fabric.ByLID(lid) == p }
	tn := l.topo.Node(l.nodeOf(p))
	isSwitch := tn.Type == ib.NodeSwitch
	if !own(head.IssuerLID) || head.ProducerType != 0 && head.ProducerType != uint32(tn.Type) {
		return true
	}
	data := t.MAD.Data()
	switch head.TrapNumber {
	case mad.TrapGIDInService, mad.TrapGIDOutOfService, mad.TrapMulticastCreated, mad.TrapMulticastDeleted, mad.TrapUnPath, mad.TrapRePath:
		return true // the SA's own
	case mad.TrapLinkStateChange:
		var n mad.Trap128
		decode(data, &n)
		return !isSwitch || !own(n.SwitchLID)
	case mad.TrapLinkIntegrity, mad.TrapBufferOverrun, mad.TrapFlowControl:
		var n mad.Trap129
		decode(data, &n)
		return !own(n.LID) || uint8(n.PortNum) > tn.NumPorts || head.TrapNumber == mad.TrapFlowControl && !isSwitch
	case mad.TrapLocalChange:
		var n mad.Trap144
		decode(data, &n)
		return !own(n.LID)
	case mad.TrapSystemImageGUID:
		var n mad.Trap145
		decode(data, &n)
		return !own(n.LID)
	case mad.TrapBadPKeySwitch:
		var n mad.Trap259
		decode(data, &n)
		return !isSwitch || !own(n.SwitchLID) || n.PortNum == 0 || uint8(n.PortNum) > tn.NumPorts
	case mad.TrapBadPKey:
		var n mad.Trap257
		decode(data, &n)
		return n.Key > 0xFFFF || !own(n.LIDADDR2) && n.LIDADDR2.IsUnicast()
	case mad.TrapBadQKey:
		var n mad.Trap257
		decode(data, &n)
		return !own(n.LIDADDR2) && n.LIDADDR2.IsUnicast()
	default:
		return false
	}
}

// stormRate and stormBurst are how many traps a device sends by itself at most: a switch with all its ports going up and
// down.
const stormRate, stormBurst = 100, 500

// NoteStorm counts the traps of a source beyond what a device sends by itself. The port is the one that has the LID, or
// None.
func (l *Log) NoteStorm(lid ib.LID, p topo.PortID) {
	base := ib.LID(0)
	if p != topo.None {
		base = l.fabric.LIDOf(p)
	}
	s := l.senders[base]
	if s == nil {
		s = &violationlog.Pace{}
		l.senders[base] = s
	}
	if s.Take(l.fabric.Now(), stormRate, stormBurst) {
		return
	}
	what := report{kind: TrapStorm, method: mad.MethodTrap}
	if p != topo.None {
		l.accuse(&what, p, ByLID)
	}
	l.note(what, lid, 0)
}
