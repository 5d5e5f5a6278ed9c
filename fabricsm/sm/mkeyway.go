package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec/judge"
)

// The device that answers a request sees the key of that request. So a key is sent only over switches that are what they
// claim to be. Otherwise a host could show the GUIDs of a switch that is not found yet, after a restart or while that is
// off. It would be shown the key of the switch, and those of all devices that belong behind it.

// wayKnown reports whether each switch on the way to a node, the node included if it is one, is where its key may be shown.
func (c *Core) wayKnown(id topo.NodeID) bool {
	if c.topo.Node(id).Type != ib.NodeSwitch {
		return id == c.root
	}
	for {
		up := c.nodes[id].up
		if up == topo.None {
			return id == c.root
		}
		if !c.hopKnown(up, id) {
			return false
		}
		if id = c.ports[up].node; id == c.root {
			return true
		}
	}
}

// hopKnown reports whether the switch behind a port may be the one it claims to be.
func (c *Core) hopKnown(up topo.PortID, id topo.NodeID) bool {
	guid := c.topo.GUIDOf(c.topo.Node(id).FirstPort)
	if c.keyPlaces() == PlacesSeen {
		if c.ownCable(up) {
			return c.neighbour().guid == guid || !c.keptKey(guid) || c.cfg.Weakness.AnyNeighbour
		}
		if c.mkeys.behind[c.topo.LinkEnd(up)] == guid {
			return true
		}
		return !c.keptKey(guid)
	}
	if !c.law.IsOn() {
		return false
	}
	if !c.topo.IsExternal(up) {
		return c.law.Trusts(c.topo.NodeGUID(id))
	}
	if at := c.topo.PlaceOf(up); !c.law.IsLawful(at) {
		// Even if something else is wrong there, the device is the one that belongs there.
		v := c.law.VerdictAt(at)
		return v == judge.WrongPort || v == judge.Attributes
	}
	return true
}

// keptKey reports whether an end port was seen on a key that we know. A key that was taken over for it and not confirmed
// yet proves nothing about its place: the packets that would have confirmed it were lost. Such a port is asked again
// wherever it shows itself.
func (c *Core) keptKey(guid ib.GUID) bool {
	r := c.mkeys.book.Ring(keys.MKey, guid)
	if r == nil {
		return false
	}
	rec := r.Record()
	return !rec.Current.IsZero() && (rec.Current.Origin != keys.OriginImported || !rec.Pending.IsZero())
}

// ofSwitch reports whether a GUID is that of a switch: its key is bound to no place, and is not for an adapter that shows
// that GUID.
func (c *Core) ofSwitch(guid ib.GUID) bool {
	r := c.mkeys.book.Ring(keys.MKey, guid)
	if r == nil || !c.mkeys.switches[guid] {
		return false
	}
	rec := r.Record()
	return rec.Place.IsZero()
}

// seenBehind remembers which switch is behind a port.
func (m *mkeys) seenBehind(place ib.Place, guid ib.GUID) {
	m.behind[place] = guid
	m.switches[guid] = true
}
