package keyplace

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// The subnet manager may start on another adapter than before, on another machine too.
// The switch that this adapter is cabled to answers nothing before it is shown its M_Key,
// so the key has to be shown to a device that has proven nothing. No request can prove
// more: an answer holds no secret that the request did not hold. So the place has to be
// known from elsewhere, and only the key of the one switch that belongs there is shown.
// Where nothing says which switch that is, none is shown, whatever answers claims to be.

// Neighbour says which switch our own port is cabled to, and what says so.
type Neighbour struct {
	GUID ib.GUID // port GUID of the switch's port 0; 0: nothing says it
	By   string
}

// Sources from which it is known which switch our own port is cabled to.
const (
	bySetting  = "the setting attached_to"
	byTopology = "the declared topology"
	byState    = "the saved state"
	byImport   = "the file neighbors of the import"
)

// Neighbour returns the switch that our own port is cabled to by the first that says
// so: the operator's setting; the topology, where places are declared; the place at which
// this adapter was given its M_Key; the switch that an earlier run found behind this
// port; the import; a topology that is not enforced.
func (m *Map) Neighbour() Neighbour {
	_, port := m.fabric.Root()
	own := m.topo.LinkEnd(port)
	if guid := m.switchPort(m.opt.AttachedTo); guid != 0 {
		return Neighbour{guid, bySetting}
	}
	declared := Neighbour{m.declaredNeighbour(own), byTopology}
	if declared.GUID != 0 && m.Policy() == Declared {
		return declared
	}
	if r := m.Ring(port); r != nil {
		if guid := m.switchPort(r.Place().Switch); guid != 0 {
			return Neighbour{guid, byState}
		}
	}
	if guid := m.behindPort(port); guid != 0 {
		return Neighbour{guid, byState}
	}
	if guid := m.opt.Import.Neighbour(m.topo.GUIDOf(port), own.Port); guid != 0 {
		return Neighbour{guid, byImport}
	}
	return declared // with 0 if nothing says it
}

// declaredNeighbour returns the end port of the switch that the declared topology has
// behind our own port, 0 for none.
func (m *Map) declaredNeighbour(own ib.Place) ib.GUID {
	if !m.law.IsOn() {
		return 0
	}
	spec := m.law.Spec()
	peer := spec.Belongs(topospec.EndAt(own))
	if id := spec.DeviceByGUID(peer.GUID); id == topospec.None || spec.Device(id).Kind != topospec.KindSwitch {
		return 0
	}
	return m.switchPort(peer.GUID)
}

// IsOwnCable reports whether a port is our own, and that of an adapter.
func (m *Map) IsOwnCable(p topo.PortID) bool {
	_, port := m.fabric.Root()
	return p != topo.None && p == port && !m.topo.IsExternal(p) && p == m.fabric.Own()
}
