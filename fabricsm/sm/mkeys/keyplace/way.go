package keyplace

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec/verify"
)

// A key is sent only over switches that are the ones they claim to be. Otherwise a host could show the GUIDs of a switch
// that is not found yet, after a restart or while that is off. It would be shown the key of the switch, and those of all
// devices that belong behind it.

// IsWayKnown reports whether each switch on the way to a node, the node included if it is one, is where its key may be
// shown.
func (m *Map) IsWayKnown(id topo.NodeID) bool {
	root, _ := m.fabric.Root()
	if !m.topo.IsSwitch(id) {
		return id == root
	}
	for policy := m.Policy(); ; {
		up := m.fabric.Up(id)
		if up == topo.None {
			return id == root
		}
		if !m.isHopKnown(policy, up, id) {
			return false
		}
		if id = m.topo.NodeOf(up); id == root {
			return true
		}
	}
}

// isHopKnown reports whether the switch behind a port may be the one it claims to be.
func (m *Map) isHopKnown(by Policy, up topo.PortID, id topo.NodeID) bool {
	if by == Seen {
		guid := m.topo.GUIDOf(m.topo.FirstPort(id))
		if m.IsOwnCable(up) {
			return m.Neighbour().GUID == guid || !m.IsKept(guid) || !m.opt.Controls.ProvesNeighbour()
		}
		if m.behindPort(up) == guid {
			return true
		}
		return !m.IsKept(guid)
	}
	if !m.law.IsOn() {
		return false
	}
	if !m.topo.IsExternal(up) {
		return m.law.Trusts(m.topo.NodeGUID(id))
	}
	if at := m.topo.PlaceOf(up); !m.law.IsLawful(at) {
		// Even if something else is wrong there, the device is the one that belongs there.
		v := m.law.VerdictAt(at)
		return v == verify.WrongPort || v == verify.Attributes
	}
	return true
}

// IsKept reports whether an end port was seen on a key that we know. A key that was taken over for it and not confirmed
// yet proves nothing about its place: the packets that would have confirmed it were lost. Such a port is asked again
// wherever it shows itself.
func (m *Map) IsKept(guid ib.GUID) bool {
	r := m.book.Ring(keys.MKey, guid)
	if r == nil {
		return false
	}
	rec := r.Record()
	return !rec.Current.IsZero() && (rec.Current.Origin != keys.OriginImported || !rec.Pending.IsZero())
}

// isSwitchKey reports whether the GUID of a port is that of a switch: its key is bound to no place, and is not for an
// adapter that shows that GUID.
func (m *Map) isSwitchKey(p topo.PortID) bool {
	r := m.Ring(p)
	return r != nil && r.Place().IsZero() && m.switches[m.topo.GUIDOf(p)]
}

// IsProven reports whether a port is of a switch that answers under its key, or never had one, and its cable is as
// declared.
func (m *Map) IsProven(p topo.PortID) bool {
	if m.law.IsOn() && m.topo.IsExternal(p) && !m.law.IsLawful(m.topo.PlaceOf(p)) && m.Policy() == Declared {
		return false
	}
	port0 := m.topo.EntryPort(p)
	switch guid := m.topo.GUIDOf(port0); {
	case guid == 0:
		return false // it is not known yet which switch it says it is
	case !m.IsKept(guid):
		return true
	}
	k, ok := m.Now(port0, m.Ring(port0))
	return ok && !k.IsZero()
}
