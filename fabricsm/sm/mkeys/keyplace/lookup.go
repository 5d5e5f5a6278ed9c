package keyplace

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/topo"
)

// Each request asks for the key of its target and for all switches on the way to it. So what the tables of names say of a
// port is kept by port. An entry is used only for the name under which it was looked up. Nothing has to be forgotten when
// the fabric changes.

// lookups are what was looked up last.
type lookups struct {
	ports   []lookup // by topo.PortID
	saved   uint32   // changes with Map.behind
	numbers numbering
}

// lookup is what was looked up of one port.
type lookup struct {
	ring   *keys.Ring // nil: none was found
	guid   ib.GUID    // under which it was
	behind ib.GUID    // as in Map.behind
	end    ib.Place   // under which that was found
	saved  uint32     // value of lookups.saved at that time; 0: never
}

// numbering is the port GUID of a switch, by its node GUID.
type numbering struct {
	node, port ib.GUID
	saved      uint32 // as in lookup
}

// of returns the lookups of a port.
func (l *lookups) of(p topo.PortID, ports int) *lookup {
	if int(p) >= len(l.ports) {
		l.ports = topo.ExtendPorts(l.ports, ports)
	}
	return &l.ports[p]
}

// Ring returns the known keys of an end port, nil for none.
func (m *Map) Ring(p topo.PortID) *keys.Ring {
	g := m.topo.GUIDOf(p)
	if g == 0 {
		return nil
	}
	l := m.lookups.of(p, m.topo.NumPorts())
	if l.ring == nil || l.guid != g {
		l.ring, l.guid = m.book.Ring(keys.MKey, g), g
	}
	return l.ring
}

// ForgetRings takes that the book holds other rings than before.
func (m *Map) ForgetRings() { m.lookups.ports = nil }

// behindPort returns the end port of the switch that was found behind a port, 0 for none.
func (m *Map) behindPort(p topo.PortID) ib.GUID {
	l, end := m.lookups.of(p, m.topo.NumPorts()), m.topo.LinkEnd(p)
	if l.saved != m.lookups.saved || l.end != end {
		l.behind, l.end, l.saved = m.behind[end], end, m.lookups.saved
	}
	return l.behind
}

// switchPort returns the GUID of port 0 of a switch by its node GUID. They are the same
// unless it was saved otherwise.
func (m *Map) switchPort(node ib.GUID) ib.GUID {
	if node == 0 {
		return 0
	}
	n := &m.lookups.numbers
	if n.node != node || n.saved != m.lookups.saved {
		*n = numbering{node, node, m.lookups.saved}
		if guid := m.behind[ib.Place{Switch: node}]; guid != 0 {
			n.port = guid
		}
	}
	return n.port
}
