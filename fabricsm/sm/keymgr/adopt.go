package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// adopt takes over the key that a device of which nothing is recorded is said to have
// from another manager. A Get has to confirm it, and then it is replaced.
func (m *Manager) adopt(x ref, kp *sm.KeyPort) {
	d, a, c := m.at(x)
	key := m.cfg.Import[c.kind][d.guid]
	if key.IsZero() || m.book.Ring(c.kind, d.guid) != nil {
		return
	}
	r := m.book.Open(c.kind, d.guid, kp.Place)
	if err := r.Adopt(keys.Held{Key: key, Since: m.now}); err != nil {
		m.out.event(&sm.ClassKeyProblem{Kind: c.kind, GUID: d.guid, Place: kp.Place, Reason: err.Error()})
		return
	}
	a.ring = r
}

// imported reports whether a key was imported and not replaced yet.
func imported(r *keys.Ring) bool {
	return r != nil && r.Record().Current.Origin == keys.OriginImported
}

// own performs the next step of a key's ring. A device that is known to be on an imported key gets a new one. own returns
// the key for the header once no step is left.
func (m *Manager) own(x ref, kp *sm.KeyPort) (keys.Key, bool) {
	d, a, c := m.at(x)
	key, settled := m.follow(x, kp)
	if !settled || !imported(a.ring) || !a.ring.Settled() {
		return key, settled
	}
	h, err := m.cfg.Source.Make(c.kind, d.guid, a.ring.NextEpoch(), m.now)
	if err == nil {
		err = a.ring.Plan(h)
	}
	if err != nil {
		m.fail(x, kp, err.Error())
		return keys.Key{}, false
	}
	return m.follow(x, kp)
}

// wronglyImported destroys an imported key of a device that has no key. The device gets a new one, and never that of
// another device.
func wronglyImported(book *keys.Book, kind keys.Kind, guid ib.GUID, ring *keys.Ring) bool {
	if !imported(ring) || !ring.Record().Pending.IsZero() {
		return false
	}
	book.Retire(kind, guid)
	return true
}
