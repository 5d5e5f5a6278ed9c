package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/rows"
	"portcullis/fabricsm/topo"
)

// noteNotice counts the report of a trap from the end port p; p is None if no port has its LID. It returns the row, and the
// port whose counters prove it, None if none do.
func (c *Core) noteNotice(in *Received, p topo.PortID, head *mad.NoticeHeader) (int32, topo.PortID) {
	what := report{trap: head.TrapNumber, method: mad.MethodTrap}
	if c.forged(in, p, head) {
		what.kind = ForgedTrap
		if p != topo.None {
			c.accuse(&what, p, ByLID)
		}
		return c.note(what, in.LID, in.MAD.TID()), topo.None
	}
	if p == topo.None {
		what.kind = OtherTrap
		return c.note(what, in.LID, in.MAD.TID()), topo.None
	}
	data, lid, about := in.MAD.Data(), in.LID, topo.PortID(topo.None)
	c.accuse(&what, p, ByLID) // a trap that is no violation is about the reporter itself
	switch what.kind = kindOf(head); what.kind {
	case BadMKey:
		var n mad.Trap256
		c.decode(mad.Decode(data, &n))
		what.method, what.attr = n.Method, n.AttributeID
		c.unaccuse(&what)
		if lid, about = c.accuseMKey(&what, p, &n), p; what.guid == c.cfg.PortGUID && (what.by == ByWay || c.causedByAnswer(in, head)) {
			what.kind = OwnMKey
		}
	case BadPKey, BadQKey:
		c.unaccuse(&what)
		lid, about = c.notePacket(&what, p, head, data)
	case LinkIntegrity, BufferOverrun, FlowControl:
		var n mad.Trap129
		c.decode(mad.Decode(data, &n))
		about = c.topo.PortOf(c.ports[p].node, n.PortNum)
	default:
	}
	c.reported(&what, p, about)
	row := c.note(what, lid, in.MAD.TID())
	if !what.kind.Violation() && what.kind != OwnMKey {
		about = topo.None
	}
	return row, about
}

// notePacket completes what traps 257 to 259 say of a packet.
func (c *Core) notePacket(what *report, p topo.PortID, head *mad.NoticeHeader, data []byte) (ib.LID, topo.PortID) {
	if head.TrapNumber == mad.TrapBadPKeySwitch {
		var n mad.Trap259
		c.decode(mad.Decode(data, &n))
		what.pkey = n.PKey
		q := c.topo.PortOf(c.ports[p].node, n.PortNum)
		c.accuseSwitch(what, q, &n)
		return n.LIDADDR1, q
	}
	var n mad.Trap257
	c.decode(mad.Decode(data, &n))
	if what.kind == BadPKey {
		what.pkey = ib.PKey(n.Key)
	} else {
		what.number = n.QP2
	}
	c.accuseLID(what, n.LIDADDR1)
	return n.LIDADDR1, p
}

func (c *Core) unaccuse(r *report) { r.guid, r.place, r.by = 0, ib.Place{}, ByNothing }

// decode takes the error of a Decode of data that is long enough by construction.
func (c *Core) decode(err error) { c.encode(err) }

// kindOf returns the kind of a trap of class SubnLID.
func kindOf(head *mad.NoticeHeader) ReportKind {
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
func (c *Core) forged(in *Received, p topo.PortID, head *mad.NoticeHeader) bool {
	if p == topo.None || !head.IsGeneric {
		return false
	}
	own := func(l ib.LID) bool { return l == 0 || c.byLID(l) == p }
	tn := c.topo.Node(c.ports[p].node)
	isSwitch := tn.Type == ib.NodeSwitch
	if !own(head.IssuerLID) || head.ProducerType != 0 && head.ProducerType != uint32(tn.Type) {
		return true
	}
	data := in.MAD.Data()
	switch head.TrapNumber {
	case mad.TrapGIDInService, mad.TrapGIDOutOfService, mad.TrapMulticastCreated, mad.TrapMulticastDeleted, mad.TrapUnPath, mad.TrapRePath:
		return true // the SA's own
	case mad.TrapLinkStateChange:
		var n mad.Trap128
		c.decode(mad.Decode(data, &n))
		return !isSwitch || !own(n.SwitchLID)
	case mad.TrapLinkIntegrity, mad.TrapBufferOverrun, mad.TrapFlowControl:
		var n mad.Trap129
		c.decode(mad.Decode(data, &n))
		return !own(n.LID) || uint8(n.PortNum) > tn.NumPorts || head.TrapNumber == mad.TrapFlowControl && !isSwitch
	case mad.TrapLocalChange:
		var n mad.Trap144
		c.decode(mad.Decode(data, &n))
		return !own(n.LID)
	case mad.TrapSystemImageGUID:
		var n mad.Trap145
		c.decode(mad.Decode(data, &n))
		return !own(n.LID)
	case mad.TrapBadPKeySwitch:
		var n mad.Trap259
		c.decode(mad.Decode(data, &n))
		return !isSwitch || !own(n.SwitchLID) || n.PortNum == 0 || uint8(n.PortNum) > tn.NumPorts
	case mad.TrapBadPKey:
		var n mad.Trap257
		c.decode(mad.Decode(data, &n))
		return n.Key > 0xFFFF || !own(n.LIDADDR2) && n.LIDADDR2.IsUnicast()
	case mad.TrapBadQKey:
		var n mad.Trap257
		c.decode(mad.Decode(data, &n))
		return !own(n.LIDADDR2) && n.LIDADDR2.IsUnicast()
	default:
		return false
	}
}

// classTrap handles a trap of a class with keys: a GMP by which a device reports that it was shown a wrong key. It reports
// whether the MAD is one. Where keys of classes are managed, package keymgr answers it and finds out whether it is true,
// see ClassTrapJudged. Otherwise the device is answered without a key, as it has none of ours, unless the trap shows one.
func (c *Core) classTrap(in *Received) bool {
	m := &in.MAD
	class, ok := mad.LookupKeyClass(m.Class())
	if !ok || m.Method() != mad.MethodTrap || m.Attr() != mad.AttrNotice || m.BaseVersion() != 1 {
		return false
	}
	c.tally.Traps++
	c.tally.ClassTraps++
	p := c.byLID(in.LID)
	what, lid, ok := c.classReport(class, m, p)
	if !ok {
		c.dropped++
		return true
	}
	managed := c.cfg.ClassKeys.On()
	if p != topo.None && !managed && !m.MKey().IsZero() {
		what = report{kind: ForgedTrap, method: mad.MethodTrap}
		c.accuse(&what, p, ByLID)
	}
	i := c.note(what, lid, m.TID())
	c.storming(in.LID, p)
	switch {
	case p == topo.None:
	case managed:
		if len(c.reports.classes) >= c.cfg.Violations.Rows { // devices that are gone
			clear(c.reports.classes)
		}
		c.reports.classes[classReporter{what.kind, what.reporter}] = rowName{i, c.reports.Row(i).ID}
	case what.kind != ForgedTrap:
		c.out.Answer = append(c.out.Answer, Response{LID: in.LID, QP: in.QP, MAD: *m})
		c.out.Answer[len(c.out.Answer)-1].MAD.Respond(mad.StatusOK)
	}
	return true
}

// ClassTrapJudged is the input by which package keymgr says how many of the violations that its last trap reported a device
// has counted.
type ClassTrapJudged struct {
	Kind    keys.Kind // CCKey, VSKey or N2NKey
	GUID    ib.GUID   // port GUID of the device
	Counted uint32    // 0: nothing, so another device sent the trap
	Earlier bool      // it had counted it when it was asked before: the trap is late
	Unsure  bool      // traps named different sources, and nothing proves that the last one is right
}

func (*ClassTrapJudged) input() {}

// classReporter names the rows of a kind that a device reports.
type classReporter struct {
	kind ReportKind
	guid ib.GUID
}

// rowName names a row, also when its slot was reused for another one.
type rowName struct {
	at int32
	id uint64
}

// judgeClass sets the verdict of the last row that a device reported about a class.
func (c *Core) judgeClass(in *ClassTrapJudged) {
	v := &c.reports
	if p, ok := c.byPort[in.GUID]; ok && in.Counted > 0 {
		c.guessed(in.Kind, p, uint64(in.Counted))
	}
	kinds := map[keys.Kind][]ReportKind{keys.CCKey: {BadCCKey}, keys.VSKey: {BadVSKey}, keys.N2NKey: {BadN2NKey, N2NMisconfigured}}[in.Kind]
	for n, kind := range kinds {
		if n == 0 {
			v.totals[kind].Counted += uint64(in.Counted)
			v.stale = true
		}
		who := classReporter{kind, in.GUID}
		name, ok := v.classes[who]
		if !ok {
			continue
		}
		delete(v.classes, who)
		w := v.Row(name.at)
		if w.ID != name.id || w.Report.others {
			continue
		}
		if in.Counted == 0 && !in.Earlier {
			v.totals[kind].Refuted++
			c.judgeRow(name.at, Refuted)
			continue
		}
		if in.Unsure {
			continue
		}
		v.totals[kind].Confirmed++
		w.Counted += uint64(in.Counted)
		c.judgeRow(name.at, Confirmed)
	}
	c.tickReports()
}

// classReport reads the notice of a class with keys from end port p, None if it is unknown.
func (c *Core) classReport(class mad.KeyClass, m *mad.MAD, p topo.PortID) (what report, source ib.LID, ok bool) {
	what.class = class.Class
	data := class.Attribute(m)
	var issuer ib.LID
	if class.Class == mad.ClassCongestionControl {
		var n mad.NoticeKeyCC
		if mad.Decode(data, &n) != nil || n.TrapNumber != mad.TrapKeyViolation {
			return what, 0, false
		}
		what.kind, what.method, what.attr, source, issuer = BadCCKey, n.Method, n.AttributeID, n.SLID, n.IssuerLID
	} else {
		var n mad.NoticeKeyVS
		if mad.Decode(data, &n) != nil {
			return what, 0, false
		}
		what.kind, what.method, what.attr, source, issuer = BadVSKey, n.Method, n.AttributeID, n.SLID, n.IssuerLID
		if class.Class == mad.ClassVendorN2N {
			what.kind = BadN2NKey
			if mad.TrapNum(n.TrapNumberInPayload) == mad.TrapKeyMisconfiguration {
				what.kind = N2NMisconfigured
			}
		}
	}
	if p != topo.None && issuer != 0 && c.byLID(issuer) != p {
		what = report{kind: ForgedTrap, method: mad.MethodTrap}
		c.accuse(&what, p, ByLID)
		return what, source, true
	}
	c.accuseLID(&what, source)
	if p != topo.None {
		c.reported(&what, p, topo.None)
	}
	return what, source, true
}

// storming counts the traps of a source beyond what a device sends by itself.
func (c *Core) storming(l ib.LID, p topo.PortID) {
	base := ib.LID(0)
	if p != topo.None {
		base = c.ports[p].lid
	}
	s := c.reports.senders[base]
	if s == nil {
		s = &rows.Pace{}
		c.reports.senders[base] = s
	}
	if s.Take(c.now, stormRate, stormBurst) {
		return
	}
	what := report{kind: TrapStorm, method: mad.MethodTrap}
	if p != topo.None {
		c.accuse(&what, p, ByLID)
	}
	c.note(what, l, 0)
}
