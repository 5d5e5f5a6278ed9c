package mkeys

import (
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Release begins to remove all keys. A second call reports again how it ended.
func (m *Keeper) Release() {
	if !m.IsOn() {
		return
	}
	m.act.Disturb()
	m.released = false
	if m.releasing {
		return
	}
	m.releasing = true
	m.store.SaveReleased(true)
	m.touchAll()
}

// Resume begins to assign keys again.
func (m *Keeper) Resume() {
	if !m.IsOn() || !m.releasing || m.cfg.Release {
		return
	}
	m.act.Disturb()
	m.releasing, m.released = false, false
	m.store.SaveReleased(false)
	m.act.Report(&keyevent.KeysResumed{})
	m.touchAll()
	m.rotation.Soon()
}

// touchAll looks at all end ports again.
func (m *Keeper) touchAll() {
	for i := range m.topo.NumPorts() {
		if p := topo.PortID(i); m.isAlive(p) && m.topo.IsEndPort(p) && m.topo.GUIDOf(p) != 0 {
			m.queue.MarkPort(work.Set, p)
		}
	}
}

// wantNone completes a PortInfo that takes the key of an end port away.
func (m *Keeper) wantNone(p topo.PortID, w *mad.PortInfo) (differs, may bool) {
	r := m.places.Ring(p)
	if r == nil || !hasKey(r) {
		return false, true
	}
	k, known := m.places.Now(p, r)
	if !known {
		if m.places.Next(p, r).Do == keys.Ask {
			m.queue.MarkPort(work.Info, p)
		}
		return false, false
	}
	w.MKey, w.MKeyProtectBits, w.MKeyLeasePeriod = keys.Key{}.M(), 0, 0
	if k.IsZero() {
		m.book.Retire(keys.MKey, m.topo.GUIDOf(p)) // it was seen to hold none
		m.saveKey(r)
		return false, true
	}
	m.setSetting(p, true)
	return true, true
}

// tellReleased reports, once nothing is left to do, how many keys were removed and kept.
func (m *Keeper) tellReleased() {
	if !m.releasing || m.released {
		return
	}
	m.released = true
	e := &keyevent.KeysReleased{}
	for _, r := range m.book.Records() {
		switch {
		case r.Retired:
			e.Released++
		case len(r.Try()) > 0:
			e.Kept++
		}
	}
	m.act.Report(e)
}
