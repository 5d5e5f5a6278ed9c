package pkeys

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// port is what is kept of a port.
type port struct {
	table  *Table
	audit  uint16 // blocks that the audit has still to read
	done   bool   // nothing is to be written now
	prove  bool   // the block being written is to be read back
	listed bool   // the rest of the table waits in the background
	rest   bool   // the rest of the table is to be read now
	later  bool   // blocks wait for ReadNow

	foreign bool // what it loses was reported, since the table was last what is wanted
}

// known is what is known of all tables. Use newKnown.
type known struct {
	ports  []port                // by topo.PortID
	shown  topo.OwnPages[*Table] // the tables, for views
	shared shared
}

func newKnown() known { return known{shared: newShared()} }

// fewPorts is how many ports there is room for at least.
const fewPorts = 512

// extend makes room for ports.
func (n *known) extend(ports int) {
	n.ports = topo.ExtendPorts(n.ports, max(ports, fewPorts))
	n.shown.Grow(ports)
}

// table returns what is known of the table of a port, nil if that is nothing.
func (n *known) table(p topo.PortID) *Table { return n.ports[p].table }

// set takes what is known of the table of a port.
func (n *known) set(p topo.PortID, t *Table) {
	if n.ports[p].table != t {
		n.ports[p].table = t
		n.shown.Set(int32(p), t)
	}
}

// sharedTables is how many tables are remembered to be shared: most ports of a fabric hold the same.
const sharedTables = 8

// shared makes tables that ports share. Use newShared.
type shared struct {
	unknown map[int]*Table // by number of blocks: of which nothing is known
	last    [sharedTables]*Table
	at      int // of last
}

func newShared() shared { return shared{unknown: make(map[int]*Table)} }

// with returns a table with one block replaced.
func (s *shared) with(t *Table, b int, keys []ib.PKey, state blockState) *Table {
	if t.is(t, b, keys, state) {
		return t
	}
	for _, o := range s.last {
		if o != nil && o.is(t, b, keys, state) {
			return o
		}
	}
	n := t.with(b, keys, state)
	s.last[s.at] = n
	s.at = (s.at + 1) % sharedTables
	return n
}

// empty returns the table of a port whose P_Keys are not known.
func (s *shared) empty(blocks int) *Table {
	if s.unknown[blocks] == nil {
		s.unknown[blocks] = emptyTable(blocks)
	}
	return s.unknown[blocks]
}
