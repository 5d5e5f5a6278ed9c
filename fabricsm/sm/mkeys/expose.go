package mkeys

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys/exposed"
	"portcullis/fabricsm/topo"
)

// expose records the progress of replacing a key that another party has.
func (m *Keeper) expose(guid ib.GUID, to exposed.Progress) {
	if m.exposed.Set(guid, to) {
		m.store.SaveExposed(guid, to.Mark())
		m.showKeyOf(guid)
	}
}

// renewKeys goes on with all devices whose keys another party has. Otherwise those that answered before this subnet manager
// was master would wait for the audit.
func (m *Keeper) renewKeys() {
	for _, guid := range m.exposed.All() {
		if p, here := m.core.PortByGUID(guid); here {
			if r := m.places.Ring(p); r != nil {
				m.renewKey(p, r)
			}
		}
	}
}

// renewKey goes on with a device whose key another party has, once it is known which key it is on. The device gets another
// key, and is then made to drop the first. Otherwise it would obey the first until the next rotation.
func (m *Keeper) renewKey(p topo.PortID, r *keys.Ring) {
	guid := m.topo.GUIDOf(p)
	x := m.exposed.Of(guid)
	if x == exposed.None || !m.places.IsVerified(p) || !m.core.IsWriting() || m.releasing {
		return
	}
	rec := r.Record()
	switch {
	case x == exposed.Shown:
		if (r.Settled() || r.Open()) && m.planKey(r, guid) {
			m.expose(guid, exposed.Replaced)
		}
	case !r.Settled(): // it is on its way
	case !rec.Previous.IsZero():
		r.Commit()
	default:
		m.expose(guid, exposed.None)
	}
}

// FindLapse reports a device on its key whose protection ended with its lease, and has the key replaced: each host could
// read it.
func (m *Keeper) FindLapse(p topo.PortID, is *mad.PortInfo) {
	if is.MKeyProtectBits > 0 || is.MKey.IsZero() || !m.topo.IsEndPort(p) || !m.IsOn() || m.releasing {
		return
	}
	if r := m.places.Ring(p); r != nil && r.Settled() {
		m.act.Report(&keyevent.ProtectionLapsed{GUID: m.topo.GUIDOf(p), Place: m.topo.PlaceOf(p)})
		if m.controls.ReplacesLapsed() {
			m.expose(m.topo.GUIDOf(p), exposed.Shown)
		}
	}
}
