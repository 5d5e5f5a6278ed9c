package mkeys

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys/exposed"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Retire destroys the key of a device that is not there.
func (m *Keeper) Retire(guid ib.GUID) {
	r := m.book.Ring(keys.MKey, guid)
	if !m.IsOn() || r == nil || !m.controls.Retires() {
		return
	}
	rec := r.Record()
	if rec.Retired {
		m.noteRetired(guid)
		return
	}
	if p, known := m.core.PortByGUID(guid); known && m.isAlive(p) {
		m.act.Report(&keyevent.KeyProblem{GUID: guid, Place: m.topo.PlaceOf(p), Reason: "its key is not destroyed, for it is seen: take it away first"})
		return
	}
	m.book.Retire(keys.MKey, guid)
	m.saveKey(r)
	m.expose(guid, exposed.None)
	m.leases.Forget(guid)
	m.faults.Clear(fault.Key{Kind: fault.NoKey, GUID: guid})
	m.act.Report(&keyevent.KeyRetired{GUID: guid, Place: rec.Place})
	m.noteRetired(guid)
	m.act.Disturb()
	if sp := m.topo.SwitchPortAt(rec.Place); sp != topo.None && m.topo.Peer(sp) == topo.None {
		m.queue.MarkPort(work.Probe, sp) // the device there now may have waited behind that key
	}
}

// maxRetired bounds the devices that a view lists as retired.
const maxRetired = 64

// noteRetired shows in views that the key of a device is destroyed. Views share the
// list.
func (m *Keeper) noteRetired(guid ib.GUID) {
	list := append(slices.Clone(m.retired), guid)
	m.retired = list[max(0, len(list)-maxRetired):]
	m.act.ShowSoon()
}
