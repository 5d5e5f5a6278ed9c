package mkeys

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// Move binds the key of a device to another place, and probes that place. A zero place stands for the one at which the
// device is seen, unless that is disputed.
func (m *Keeper) Move(guid ib.GUID, at ib.Place) {
	if !m.IsOn() || m.book.Ring(keys.MKey, guid) == nil {
		return
	}
	p, seen := m.core.PortByGUID(guid)
	if at.IsZero() && seen && m.places.IsVerified(p) {
		at = m.places.KeyedAt(p)
	}
	if at.IsZero() {
		return
	}
	m.book.Move(keys.MKey, guid, at)
	m.saveKey(m.book.Ring(keys.MKey, guid))
	m.faults.Clear(fault.Key{Kind: fault.NoKey, GUID: guid})
	m.act.Report(&keyevent.KeyMoved{GUID: guid, Place: at})
	m.act.Disturb()
	if seen {
		m.showKey(p)
		m.queue.MarkPort(work.Info, p)
		m.queue.MarkPort(work.Set, p)
		if peer := m.topo.Peer(p); peer != topo.None {
			m.queue.MarkPort(work.Set, peer)
		}
	}
	if sp := m.topo.SwitchPortAt(at); sp != topo.None && m.topo.Peer(sp) == topo.None {
		m.act.ProbeAnew(sp)
	}
}

// Follow moves the keys of adapters that another revision of the declared topology has at another switch port: a recabled
// host, and every host of a switch that was replaced. The operator that approved the revision has decided where they
// belong. Without the move they would not answer there.
func (m *Keeper) Follow(was, now *topospec.Spec, mode topospec.Mode) {
	if !m.IsOn() || !m.places.MayMove(mode) {
		return
	}
	type move struct {
		guid ib.GUID
		to   ib.Place
	}
	var moves []move
	links := was.Revision().Links
	for i := range links {
		at, end := links[i].A, links[i].B
		own := was.DeviceByGUID(end.GUID)
		if own == topospec.None || was.Device(own).Kind == topospec.KindSwitch {
			continue
		}
		next := now.Belongs(end)
		if next.IsZero() || next == at {
			continue
		}
		for _, guid := range m.book.At(keys.MKey, at.Place()) {
			if was.Other(own, guid) == topospec.None {
				moves = append(moves, move{guid, next.Place()})
			}
		}
	}
	for _, mv := range moves {
		m.Move(mv.guid, mv.to)
	}
}
