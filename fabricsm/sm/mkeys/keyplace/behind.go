package keyplace

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// LoadBehind takes what was saved: which switch is behind a port.
func (m *Map) LoadBehind(place ib.Place, guid ib.GUID) {
	m.behind[place] = guid
	m.switches[guid] = true
	m.lookups.saved++
}

// Behind returns the end port of the switch that was found behind a port, 0 for none.
func (m *Map) Behind(place ib.Place) ib.GUID { return m.behind[place] }

// Switches returns the end ports of switches that are, or were, behind a port. The caller must not write to the result.
func (m *Map) Switches() map[ib.GUID]bool { return m.switches }

// Remember saves which switch is behind a port, once that switch is proven to be the one.
func (m *Map) Remember(p topo.PortID) {
	peer := m.topo.Peer(p)
	guid, place := m.topo.GUIDOf(m.topo.EntryPort(peer)), m.topo.LinkEnd(p)
	if guid == 0 || m.behind[place] == guid || !m.IsProven(peer) || m.topo.IsExternal(p) && !m.IsProven(p) {
		return
	}
	m.saveSwitchPort(peer)
	m.LoadBehind(place, guid)
	m.fabric.SaveBehind(place, guid)
}

// saveSwitchPort saves the port GUID of a switch that differs from its node GUID: a place
// has only the node GUID, and the key goes by the port GUID.
func (m *Map) saveSwitchPort(p topo.PortID) {
	node, guid := m.topo.NodeGUID(m.topo.Port(p).Node), m.topo.GUIDOf(m.topo.EntryPort(p))
	if at := (ib.Place{Switch: node}); guid != 0 && guid != m.switchPort(node) {
		m.LoadBehind(at, guid)
		m.fabric.SaveBehind(at, guid)
	}
}
