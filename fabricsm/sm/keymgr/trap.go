package keymgr

import (
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// received processes an unsolicited GMP.
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
		a.claims.say(said)
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

// issuer returns the agent that a trap is from. ok is false if no device can have sent it.
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
			return x, kp, ok && a.runs() && held(a.ring) && !m.release.taking(c)
		}
	}
	return x, kp, false
}

// judge processes the violations that a device itself reports: only they count. It sets the key and its protection again,
// which clears the counters.
func (m *Manager) judge(x ref, k *mad.N2NKeyInfo) {
	d, a, c := m.at(x)
	lapsed := a.known && a.protect && !k.ProtectBit && !c.cfg.Readable
	now, said := m.now.Sub(m.born), a.claims.last
	if k.Violations == 0 && k.NodeKeyViolations == 0 && !lapsed {
		if said != nil {
			a.claims.checked()
			m.notCounted(x, now)
		}
		return
	}
	if a.guessed && !lapsed && k.NodeKeyViolations == 0 && k.Violations <= tries {
		a.guessed, a.clear = false, true // that was us
		a.claims.checked()
		return
	}
	if now < a.tell {
		m.after(x, a.tell-now)
		return
	}
	a.tell, a.clear = now+reactEvery, true
	a.times++
	e := &sm.ClassKeyViolation{
		Kind: c.kind, GUID: d.guid, Place: m.cabling.placed(d).Place, Count: sum(k.Violations, k.NodeKeyViolations), Node: k.NodeKeyViolations,
		Lapsed: lapsed, Times: a.times,
	}
	if said != nil && !a.claims.mixed {
		e.Told, e.SLID, e.SGID, e.QP, e.Method, e.Attr, e.Mod = true, said.slid, said.sgid, said.qp, said.method, said.attr, said.mod
	}
	m.out.event(e)
	m.out.judged(sm.ClassTrapJudged{Kind: c.kind, GUID: d.guid, Counted: uint32(e.Count), Unsure: a.claims.mixed})
	a.claims.count(e.Count, now)
	a.claims.checked()
	if k.NodeKeyViolations > 0 && d.node != nil {
		m.rereadNeighbors(x.dev, said)
	}
}

// notCounted processes a trap for which the device counted no violation since it was last
// asked: it is late, or false.
func (m *Manager) notCounted(x ref, now time.Duration) {
	d, a, c := m.at(x)
	if a.claims.late(now) {
		m.out.judged(sm.ClassTrapJudged{Kind: c.kind, GUID: d.guid, Earlier: true})
		return
	}
	m.falseTrap(x, m.cabling.placed(d), "the device counted no violation since it was last asked")
}

// rereadNeighbors reads the node keys of a switch, and of the neighbour in its trap: one of them may have lost its own.
func (m *Manager) rereadNeighbors(dev int32, said *claim) {
	m.cabling.fresh(&m.devices[dev])
	if said == nil {
		return
	}
	if far, ok := m.byLID[said.slid]; ok && m.devices[far].node != nil && !m.devices[far].agents[n2n].out {
		m.cabling.fresh(&m.devices[far])
		m.refresh(far)
	}
}

// sum adds counters that stop at their ends.
func sum(a, b uint16) uint16 { return uint16(min(uint32(a)+uint32(b), 1<<16-1)) }
