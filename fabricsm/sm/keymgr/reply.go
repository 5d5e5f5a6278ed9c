package keymgr

import (
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// reply takes the end of a request.
func (m *Manager) reply(in *Reply) {
	r, ok := m.wire.End(uint32(in.ID))
	if !ok {
		return
	}
	m.classes[r.x.class].out--
	_, a, c := m.at(r.x)
	if a.life != r.life {
		return // the port was away since
	}
	a.out = false
	status := in.MAD.Status()
	if in.Outcome != sm.Answered || status.IsBusy() {
		m.unanswered(r.x, r.op)
		return
	}
	a.tries = 0
	data := c.mad.Attribute(&in.MAD)
	switch {
	case status != mad.StatusOK:
		m.refused(r.x, r.op)
	case r.op == opCaps, r.op == opTrapGet, r.op == opTrapSet:
		m.gotClassPortInfo(r.x, r.op, data)
	case r.op == opMore:
		var e mad.EnhancedCongestionInfo
		must(mad.Decode(data, &e))
		a.more, a.dual = true, e.CapabilityMask&mad.CCDualKey != 0
	case r.op <= opClear:
		m.gotKeyInfo(r.x, r.op, data)
	default:
		m.gotNeighbors(r.x, r.op, int(r.mod), data)
	}
	m.queue(r.x)
}

// unanswered takes that a request had no answer in time.
func (m *Manager) unanswered(x ref, o op) {
	d, a, _ := m.at(x)
	switch o {
	case opProgram:
		a.ring.Lost()
		m.queue(x)
		return
	case opNodeProgram:
		d.node.ring.Lost()
		m.queue(x)
		return
	default:
	}
	if a.tries++; a.tries < tries {
		m.queue(x)
		return
	}
	a.tries = 0
	if m.wait(x) {
		return
	}
	switch o {
	case opCaps, opRead:
		if held(a.ring) {
			m.giveUp(x)
			return
		}
		m.missing(x, true)
		return
	case opMore:
		a.more = true // it can do what ClassPortInfo says
	case opAsk:
		a.ring.Silent()
		a.guessed = true
	case opPoll:
		a.poll = false
		a.ring.Again()
	case opProtect, opClear:
		a.sets++
		a.known = false
		a.again()
	default:
		m.giveUp(x)
		return
	}
	m.queue(x)
}

// wait puts off to blame a device for silence while packets may not reach it: the
// fabric is at work, or was just now. It reports whether it did.
func (m *Manager) wait(x ref) bool {
	_, a, _ := m.at(x)
	switch {
	case !m.settled:
		a.parked = true
		m.parked++
	case m.now.Sub(m.calm) < calmFor:
		m.queue(x)
	default:
		return false
	}
	return true
}

// giveUp leaves a device alone for a while that no longer answers under its key.
func (m *Manager) giveUp(x ref) {
	d, _, _ := m.at(x)
	m.fail(x, m.cabling.placed(d), "it has its key, and does not answer other requests of the class")
}

// refused processes an answer that rejects the request.
func (m *Manager) refused(x ref, o op) {
	d, a, _ := m.at(x)
	switch o {
	case opCaps:
		a.caps, a.keyed = true, held(a.ring)
	case opMore:
		a.more = true
	case opRead:
		a.keyed, a.read = false, false
		m.missing(x, false)
	case opAsk:
		a.ring.Silent()
	case opProgram:
		a.ring.Sent(false)
	case opPoll:
		a.poll = false
		a.ring.Again()
	case opProtect, opClear:
		a.sets++
		a.known = false
		a.again()
	case opTrapGet, opTrapSet:
		a.trapsOurs = true // it sends none; nothing can be done about it
	case opNodeProgram:
		d.node.ring.Sent(false)
	case opBlock, opBlockSet, opNodeAsk:
		d.node.none = true
	}
}

// gsiQKey is the Q_Key of queue pair 1 (IBTA volume 1, 13.5.1.4).
const gsiQKey = 0x80010000

// gotClassPortInfo records the capabilities of a class, and the destination of its traps.
func (m *Manager) gotClassPortInfo(x ref, o op, data []byte) {
	d, a, c := m.at(x)
	var p mad.ClassPortInfo
	must(mad.Decode(data, &p))
	if o == opCaps {
		a.caps = true
		a.keyed = c.mad.KeyCap == 0 || p.CapabilityMask&c.mad.KeyCap != 0 || held(a.ring)
		if c.mad.DualCap != 0 {
			a.dual = p.CapabilityMask&c.mad.DualCap != 0
		}
		if !held(a.ring) {
			return
		}
	}
	if trapsTo(m.lid, &p) {
		a.trapsOurs = true
		return
	}
	if o == opTrapSet {
		if a.sets++; a.sets == maxSets {
			a.sets, a.trapsOurs = 0, true // it keeps its address; its violations are seen when it is asked
			return
		}
	}
	kp, ok := m.fabric.KeyPort(portID(d.port))
	if !ok || !kp.Verified || m.release.taking(c) || a.ring == nil {
		return
	}
	if key, ok := a.ring.Now(kp.Place, true); ok {
		at := m.send(x, opTrapSet, kp.LID, mad.Header{Method: mad.MethodSet, Attr: mad.AttrClassPortInfo}, key.M())
		must(mad.Encode(at, &p))
	}
}

// gotKeyInfo takes the key that a device shows, and how it protects it.
func (m *Manager) gotKeyInfo(x ref, o op, data []byte) {
	d, a, c := m.at(x)
	var k mad.N2NKeyInfo // in the three classes its fields have the same places
	must(mad.Decode(data, &k))
	if x.class != n2n {
		k.NodeKeyViolations = 0 // reserved there
	}
	shown := keys.New(k.ManagerKey.Reveal())
	switch o {
	case opProgram:
		a.ring.Sent(true)
		a.known = false
		return
	case opProtect, opClear:
		a.sets++
		a.known, a.clear = false, false
		a.again()
		return
	case opRead:
		a.read = true
		if !shown.IsZero() && !m.release.taking(c) {
			m.fail(x, m.cabling.placed(d), "it has a key that somebody else gave it")
			return
		}
	case opPoll:
		a.poll = false
		fallthrough
	case opAsk:
		if a.ring == nil {
			break
		}
		if a.ring.Answered(keys.Seen{Key: shown}) == keys.FoundOpen && !wronglyImported(m.book, c.kind, d.guid, a.ring) && !m.release.taking(c) {
			m.restarted(x)
		}
		m.out.ring(a.ring)
	default:
	}
	if held(a.ring) && !m.release.taking(c) {
		m.judge(x, &k)
	}
	a.known, a.bare, a.protect, a.lease = true, shown.IsZero(), k.ProtectBit, k.LeasePeriod
	if !m.release.taking(c) && !a.unprotected(&c.cfg) {
		a.sets = 0
	}
}

// restarted takes that a device holds no key: what else was set is gone, too.
func (m *Manager) restarted(x ref) {
	d, a, _ := m.at(x)
	a.trapsOurs, a.known = false, false
	if x.class == n2n && d.node != nil {
		m.cabling.fresh(d)
	}
}
