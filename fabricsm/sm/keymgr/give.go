package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// give performs the steps until an agent has a key of its own.
func (m *Manager) give(x ref, kp *sm.KeyPort) {
	d, a, c := m.at(x)
	m.adopt(x, kp)
	if !held(a.ring) && (m.explore(x, kp) || !m.plan(x, kp)) {
		return
	}
	key, settled := m.own(x, kp)
	if !settled {
		return
	}
	switch {
	case !a.caps:
		m.get(x, opCaps, kp.LID, mad.AttrClassPortInfo, key)
	case x.class == cc && !a.more:
		m.get(x, opMore, kp.LID, mad.CCAttrEnhancedCongestionInfo, key)
	case a.poll:
		m.get(x, opPoll, kp.LID, c.mad.KeyAttr, key)
	case a.known && a.unprotected(&c.cfg):
		if a.sets == maxSets {
			m.fail(x, kp, "it does not keep how its key protects")
			return
		}
		m.setKey(x, opProtect, kp.LID, key, key)
	case !a.trapsOurs:
		m.get(x, opTrapGet, kp.LID, mad.AttrClassPortInfo, key)
	case x.class == n2n && d.sw && m.workNode(x, kp, key):
	default:
		m.done(x)
	}
}

// explore reads the capabilities of a device that has no key of ours. It reports whether there is nothing more to do now.
func (m *Manager) explore(x ref, kp *sm.KeyPort) bool {
	_, a, c := m.at(x)
	switch {
	case !a.caps:
		m.get(x, opCaps, kp.LID, mad.AttrClassPortInfo, keys.Key{})
	case x.class == cc && !a.more:
		m.get(x, opMore, kp.LID, mad.CCAttrEnhancedCongestionInfo, keys.Key{})
	case !a.keyed:
		m.missing(x, false)
	case !a.read:
		m.get(x, opRead, kp.LID, c.mad.KeyAttr, keys.Key{})
	default:
		return false
	}
	return true
}

// plan begins to assign a new key to a device that was just read to have none.
func (m *Manager) plan(x ref, kp *sm.KeyPort) bool {
	d, a, c := m.at(x)
	r := m.book.Open(c.kind, d.guid, kp.Place)
	m.book.Move(c.kind, d.guid, kp.Place) // of a device that was retired
	h, err := m.cfg.Source.Make(c.kind, d.guid, r.NextEpoch(), m.now)
	if err == nil {
		err = r.Plan(h)
	}
	if err != nil {
		m.fail(x, kp, err.Error())
		return false
	}
	a.ring = r
	r.Answered(keys.Seen{})
	return true
}

// follow performs the next step of a key's ring. It returns the key for the header once no step is left.
func (m *Manager) follow(x ref, kp *sm.KeyPort) (keys.Key, bool) {
	d, a, c := m.at(x)
	if kp.Bound {
		m.book.Move(c.kind, d.guid, kp.Place) // it follows the M_Key
	}
	if ofSwitch(a.ring, kp) {
		m.withhold(x, kp, "its key is withheld: it is that of a switch, and this is none")
		return keys.Key{}, false
	}
	s := a.ring.Next(kp.Place, true)
	m.out.ring(a.ring)
	switch s.Do {
	case keys.Ask:
		m.get(x, opAsk, kp.LID, c.mad.KeyAttr, s.Header)
	case keys.Program:
		m.setKey(x, opProgram, kp.LID, s.Header, s.New)
	case keys.Withhold:
		m.withhold(x, kp, "its key is withheld: it is not seen where it was given one")
	case keys.Stranded:
		m.fail(x, kp, "it answers under none of the keys it was given")
	case keys.Refusing:
		m.fail(x, kp, "it does not keep the key it is given")
	case keys.Foreign:
		m.fail(x, kp, "it has a key that somebody else gave it")
	case keys.Nothing:
		return a.ring.Now(kp.Place, true)
	}
	return keys.Key{}, false
}

// get asks for an attribute.
func (m *Manager) get(x ref, o op, lid ib.LID, attr mad.AttrID, key keys.Key) {
	m.send(x, o, lid, mad.Header{Method: mad.MethodGet, Attr: attr}, key.M())
}

// setKey writes KeyInfo. In the three classes its fields have the same places.
func (m *Manager) setKey(x ref, o op, lid ib.LID, header, key keys.Key) {
	_, _, c := m.at(x)
	info := mad.N2NKeyInfo{ManagerKey: key.M()}
	if o != opClear {
		info.ProtectBit, info.LeasePeriod = !c.cfg.Readable, c.cfg.Lease
	}
	data := m.send(x, o, lid, mad.Header{Method: mad.MethodSet, Attr: c.mad.KeyAttr}, header.M())
	must(mad.Encode(data, &info))
}

func must(err error) {
	if err != nil {
		panic("keymgr: " + err.Error())
	}
}
