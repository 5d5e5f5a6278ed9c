package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// claim is what a trap says of a violation, until it is checked.
type claim struct {
	slid   ib.LID
	sgid   ib.GID
	qp     uint32
	method mad.Method
	attr   mad.AttrID
	mod    uint32
}

// received takes a GMP that nobody asked for.
func (m *Manager) received(in *Received) {
	x, kp, ok := m.issuer(in)
	if !ok {
		m.strays++
		return
	}
	d, a, c := m.at(x)
	rec := a.ring.Record()
	switch offered := keys.New(in.MAD.MKey().Reveal()); {
	case offered.IsZero(), offered == rec.Current.Key, offered == rec.Pending.Key, offered == rec.Previous.Key:
	default:
		m.falseTrap(x, &kp, "it shows a key that is none of that port's")
		return
	}
	if said := claimOf(&in.MAD, c); said.slid != m.lid { // we ourselves may have had to guess
		a.claim = said
	}
	now := m.now.Sub(m.born)
	if now < a.hold {
		m.after(x, a.hold-now)
		return
	}
	a.hold = now + reactEvery
	key, ok := a.ring.Now(kp.Place, true)
	if !ok || !d.up {
		return // it is being asked for its key anyway
	}
	m.out.Answer = append(m.out.Answer, sm.Response{LID: kp.LID, QP: 1, MAD: in.MAD})
	answer := &m.out.Answer[len(m.out.Answer)-1].MAD
	answer.SetMKey(key.M())
	answer.Respond(mad.StatusOK)
	a.poll = true
	m.queue(x)
}

// issuer gives the agent that a trap is from, if it may be believed to be from
// anybody.
func (m *Manager) issuer(in *Received) (x ref, kp sm.KeyPort, ok bool) {
	p := &in.MAD
	if p.Method() != mad.MethodTrap || p.Attr() != mad.AttrNotice || p.BaseVersion() != 1 || !m.master || !m.ready {
		return x, kp, false
	}
	dev, ok := m.byLID[in.LID]
	if !ok {
		return x, kp, false
	}
	for i := range m.classes {
		if m.classes[i].mad.Class == p.Class() {
			x = ref{dev, uint8(i)}
			d, a, c := m.at(x)
			kp, ok = m.fabric.KeyPort(portID(d.port))
			ok = ok && kp.GUID == d.guid && kp.LID == in.LID && kp.Verified && d.up
			return x, kp, ok && a.runs() && held(a.ring) && !m.taking(c)
		}
	}
	return x, kp, false
}

// claimOf reads the notice of a trap. Its numbers are not believed, only told.
func claimOf(p *mad.MAD, c *class) *claim {
	data := c.mad.Attribute(p)
	if c.mad.Class == mad.ClassCongestionControl {
		var n mad.NoticeKeyCC
		must(mad.Decode(data, &n))
		return &claim{n.SLID, n.SourceGID, n.QP, n.Method, n.AttributeID, n.AttributeModifier}
	}
	var n mad.NoticeKeyVS
	must(mad.Decode(data, &n))
	return &claim{n.SLID, n.SourceGID, n.QP, n.Method, n.AttributeID, n.AttributeModifier}
}

// falseTrap counts a trap that is not believed.
func (m *Manager) falseTrap(x ref, kp *sm.KeyPort, reason string) {
	d, a, c := m.at(x)
	if a.falseTraps++; sm.TellRepetition(a.falseTraps) {
		m.event(&sm.ClassKeyFalseTrap{Kind: c.kind, LID: d.lid, GUID: d.guid, Place: kp.Place, Reason: reason, Count: a.falseTraps})
	}
}

// judge takes what a device itself says of violations: only that counts. It has
// the key, and what protects it, set again, which clears the counters.
func (m *Manager) judge(x ref, k *mad.N2NKeyInfo) {
	d, a, c := m.at(x)
	lapsed := a.known && a.protect && !k.ProtectBit && !c.cfg.Readable
	said := a.claim
	if k.Violations == 0 && k.NodeKeyViolations == 0 && !lapsed {
		if said != nil {
			a.claim = nil
			m.falseTrap(x, m.placed(d), "the device counted no violation since it was last asked")
		}
		return
	}
	if a.guessed && !lapsed && k.NodeKeyViolations == 0 && k.Violations <= tries {
		a.guessed, a.clear, a.claim = false, true, nil // that was us
		return
	}
	now := m.now.Sub(m.born)
	if now < a.tell {
		m.after(x, a.tell-now)
		return
	}
	a.tell, a.clear, a.claim = now+reactEvery, true, nil
	a.times++
	e := &sm.ClassKeyViolation{
		Kind: c.kind, GUID: d.guid, Place: m.placed(d).Place, Count: sum(k.Violations, k.NodeKeyViolations), Node: k.NodeKeyViolations,
		Lapsed: lapsed, Times: a.times,
	}
	if said != nil {
		e.Told, e.SLID, e.SGID, e.QP, e.Method, e.Attr, e.Mod = true, said.slid, said.sgid, said.qp, said.method, said.attr, said.mod
	}
	m.event(e)
	if k.NodeKeyViolations > 0 && d.node != nil {
		m.rereadNeighbors(x.dev, said)
	}
}

// rereadNeighbors looks at what a switch, and the neighbour it complains of, know
// of node keys: one of them may have lost its own.
func (m *Manager) rereadNeighbors(dev int32, said *claim) {
	m.anewNode(&m.devices[dev])
	if said == nil {
		return
	}
	if far, ok := m.byLID[said.slid]; ok && m.devices[far].node != nil && !m.devices[far].agents[n2n].out {
		m.anewNode(&m.devices[far])
		m.refresh(far)
	}
}

// sum adds counters that stop at their ends.
func sum(a, b uint16) uint16 { return uint16(min(uint32(a)+uint32(b), 1<<16-1)) }
