package keymgr

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// release is how far giving all keys back is.
type release struct {
	on, told bool
	kept     int // keys that devices still held at the last report
}

// releaseAll begins to remove all keys.
func (m *Manager) releaseAll() {
	m.release.told, m.changed, m.shown = false, true, time.Time{}
	if m.release.on {
		return
	}
	m.release.on = true
	m.out.save(sm.Fact{Kind: sm.FactReleased, Mark: "released"})
	m.each(m.turnRound)
}

// resume begins to assign keys again.
func (m *Manager) resume() {
	if !m.release.on {
		return
	}
	m.release, m.changed, m.shown = release{}, true, time.Time{}
	m.out.save(sm.Fact{Kind: sm.FactReleased})
	m.each(m.turnRound)
}

// turnRound has an agent begin again when its wanted state changed.
func (m *Manager) turnRound(x ref) {
	_, a, _ := m.at(x)
	if a.stage != off {
		m.turned(x)
		m.resetAgent(x)
	}
}

// take brings an agent to have no key, no lease and no protect bit.
func (m *Manager) take(x ref, kp *sm.KeyPort) {
	d, a, c := m.at(x)
	if a.poll {
		a.poll, a.read, a.known = false, false, false
		a.again()
	}
	key, ok := m.takeUnder(x, kp)
	if !ok {
		return
	}
	switch {
	case !a.known:
		m.get(x, opRead, kp.LID, c.mad.KeyAttr, key)
	case !a.bare && !held(a.ring):
		m.fail(x, kp, "it has a key that somebody else gave it")
	case x.class == n2n && d.sw && m.clearNode(x, kp, key):
	case a.bare && !a.protect && a.lease == 0:
		retire(m.book, &m.out, c.kind, a.ring)
		m.done(x)
	case a.sets == maxSets:
		m.fail(x, kp, "it does not give its key back")
	default:
		m.setKey(x, opClear, kp.LID, key, keys.Key{})
	}
}

// takeUnder finds out under which key a device may be written to.
func (m *Manager) takeUnder(x ref, kp *sm.KeyPort) (keys.Key, bool) {
	d, a, c := m.at(x)
	m.adopt(x, kp)
	if !held(a.ring) {
		return keys.Key{}, !m.explore(x, kp)
	}
	if ofSwitch(a.ring, kp) {
		m.withhold(x, kp, "its key is withheld: it is that of a switch, and this is none")
		return keys.Key{}, false
	}
	if kp.Bound {
		m.book.Move(c.kind, d.guid, kp.Place)
	}
	s := a.ring.Next(kp.Place, true)
	m.out.ring(a.ring)
	switch s.Do {
	case keys.Ask:
		m.get(x, opAsk, kp.LID, c.mad.KeyAttr, s.Header)
	case keys.Program:
		return s.Header, true
	case keys.Nothing, keys.Refusing:
		return a.ring.Now(kp.Place, true)
	case keys.Withhold:
		m.withhold(x, kp, "its key is withheld: it is not seen where it was given one")
	case keys.Stranded:
		m.fail(x, kp, "it answers under none of the keys it was given, and keeps its key")
	case keys.Foreign:
		m.fail(x, kp, "it has a key that somebody else gave it")
	}
	return keys.Key{}, false
}

// clearNode has a switch forget node keys, before its manager key goes. It reports
// whether something is under way.
func (m *Manager) clearNode(x ref, kp *sm.KeyPort, key keys.Key) bool {
	d, _, _ := m.at(x)
	n := d.node
	if n.none {
		return false
	}
	if m.readBlocks(x, kp, key) {
		return true
	}
	for b, have := range n.blocks {
		if *have == (mad.N2NNeighborsInfo{}) {
			continue
		}
		if n.sets == maxSets {
			m.nodeFails(x, kp, "it does not give its node keys back")
			return false
		}
		m.putBlock(x, opBlockSet, kp.LID, b, key, &mad.N2NNeighborsInfo{})
		return true
	}
	retire(m.book, &m.out, keys.N2NNodeKey, n.ring)
	return false
}

// retireDevice destroys the keys of a device that is not there.
func (m *Manager) retireDevice(guid ib.GUID) {
	if x, known := m.byGUID[guid]; known && m.devices[x].up {
		return
	}
	for _, kind := range keys.Kinds() {
		if ofClass(kind) {
			retire(m.book, &m.out, kind, m.book.Ring(kind, guid))
		}
	}
}

// tellReleased says, once nothing is left to do, what became of the keys.
func (m *Manager) tellReleased() {
	if !m.release.on || m.release.told || !m.ready || m.classes.busy() {
		return
	}
	m.release.told = true
	e := &sm.ClassKeysReleased{}
	for _, r := range m.book.Records() {
		switch {
		case r.Retired:
			e.Released++
		case len(r.Try()) > 0:
			e.Kept++
		}
	}
	m.release.kept, m.changed = e.Kept, true
	m.out.event(e)
}

// retire destroys a key that a device was seen to hold no longer.
func retire(book *keys.Book, out *outbox, kind keys.Kind, ring *keys.Ring) {
	if held(ring) {
		rec := ring.Record()
		book.Retire(kind, rec.GUID)
		out.ring(ring)
	}
}
