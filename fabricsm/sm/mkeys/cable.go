package mkeys

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/mkeys/exposed"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Linked remembers which switch is behind a port, so that it can be asked
// under its key after a restart.
func (m *Keeper) Linked(p topo.PortID) {
	if !m.IsOn() || !m.mayLead(p) || m.topo.Peer(p) == topo.None || !m.topo.IsExternal(m.topo.Peer(p)) {
		return
	}
	if m.places.IsOwnCable(p) {
		m.bindOwn()
	}
	m.places.Remember(p)
}

// mayLead reports whether another node may be behind a port: it is our own, or an external port of a switch.
func (m *Keeper) mayLead(p topo.PortID) bool {
	_, own := m.fabric.Root()
	return p == own || m.topo.IsExternal(p)
}

// rememberLinks remembers behind which ports a switch is that answers under its key.
func (m *Keeper) rememberLinks(p topo.PortID) {
	if tp := m.topo.Port(p); tp.Num == 0 {
		m.topo.EachExternal(tp.Node, func(q topo.PortID) {
			if peer := m.topo.Peer(q); peer != topo.None {
				m.Linked(peer)
				m.Linked(q)
			}
		})
	}
}

// bindOwn saves at which switch port our own adapter is, once that switch has proven to be
// the one: so the adapter is found there when the subnet manager runs on another one.
func (m *Keeper) bindOwn() {
	p := m.fabric.Own()
	if !m.IsOn() || !m.places.IsOwnCable(p) || m.topo.Peer(p) == topo.None || !m.places.IsProven(m.topo.Peer(p)) {
		return
	}
	r, at := m.places.Ring(p), m.topo.PlaceOf(p)
	if r == nil || at.IsZero() || !hasKey(r) {
		return
	}
	if rec := r.Record(); rec.Place != at {
		m.book.Move(keys.MKey, rec.GUID, at)
		m.saveKey(r)
		m.queue.MarkPort(work.Info, p)
	}
}

// Attachment returns which switch belongs at our own cable, and the switches that have keys, by GUID.
func (m *Keeper) Attachment() (keyplace.Neighbour, []ib.GUID) {
	var keyed []ib.GUID
	for guid := range m.places.Switches() {
		if r := m.book.Ring(keys.MKey, guid); r != nil && hasKey(r) {
			keyed = append(keyed, guid)
		}
	}
	slices.Sort(keyed)
	return m.places.Neighbour(), keyed
}

// LinkLost records that a link is known to be gone: of an adapter, or the one over which a switch was asked.
func (m *Keeper) LinkLost(p, q topo.PortID) {
	for _, x := range [2][2]topo.PortID{{p, q}, {q, p}} {
		end := m.topo.EntryPort(x[1])
		if !m.topo.IsExternal(x[1]) || m.fabric.Up(m.topo.Port(end).Node) == x[0] {
			m.endLost(end)
		}
	}
}

// endLost records that the link of an end port is known to be gone.
func (m *Keeper) endLost(p topo.PortID) {
	if !m.IsOn() || !m.topo.IsEndPort(p) || p == m.fabric.Own() {
		return
	}
	recent := m.exposed.LinkLost(p, m.core.Age())
	if guid := m.topo.GUIDOf(p); recent && guid != 0 && m.places.IsKept(guid) {
		m.expose(guid, exposed.Shown)
	}
}
