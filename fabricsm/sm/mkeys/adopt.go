package mkeys

import (
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/topo"
)

// takeOver records the key that the import has for a device, once the device is where it belongs; a Get has to confirm
// it. It returns the ring, nil for none.
func (m *Keeper) takeOver(p topo.PortID) *keys.Ring {
	guid, at := m.topo.GUIDOf(p), m.places.KeyedAt(p)
	key, ok := m.cfg.Import.Key(guid)
	if !ok || guid == 0 || !m.places.IsVerified(p) || at.IsZero() && m.topo.Port(p).Num != 0 && p != m.fabric.Own() {
		return nil
	}
	r := m.book.Open(keys.MKey, guid, at)
	if err := r.Adopt(keys.Held{Key: key, Origin: keys.OriginImported, Since: m.core.Now()}); err != nil {
		m.problem(fault.Key{Kind: fault.NoKey, GUID: guid}, &keyevent.KeyProblem{GUID: guid, Place: m.topo.PlaceOf(p), Reason: err.Error()})
		return r
	}
	m.saveKey(r)
	return r
}

// dropWrong destroys a key that was taken over for a device which turns out to hold none. The device gets one of its
// own, and never the one of another manager.
func (m *Keeper) dropWrong(p topo.PortID, r *keys.Ring, seen keys.Seen) {
	rec := r.Record()
	if rec.Current.Origin != keys.OriginImported || !rec.Pending.IsZero() || !seen.Key.IsZero() || seen.Hidden {
		return
	}
	m.book.Retire(keys.MKey, m.topo.GUIDOf(p))
	m.saveKey(r)
}

// replaceImported assigns a new key to a device that is known to be on a key that was taken over, unless it is to stay on
// that key.
func (m *Keeper) replaceImported(p topo.PortID, r *keys.Ring) {
	rec := r.Record()
	switch {
	case rec.Current.Origin != keys.OriginImported || !r.Settled() || !m.places.IsVerified(p):
	case m.cfg.Import.IsKept(rec.GUID, rec.Current.Key):
		if r.Keep() {
			m.saveKey(r)
		}
	case m.core.IsWriting():
		m.planKey(r, rec.GUID)
	}
}
