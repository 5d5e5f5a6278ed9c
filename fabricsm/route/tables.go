package route

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// BlockSize is the number of entries that one LinearForwardingTable attribute
// carries.
const BlockSize = 64

// Tables is the linear forwarding table of every switch. Engines fill it; once
// published it is immutable, and rows that did not change are shared with the
// tables before it.
type Tables struct {
	// Engine names the engine that made the tables.
	Engine string
	// MaxLID is the highest LID with a route, what LinearFDBTop should be.
	MaxLID ib.LID

	rows []row         // by topo.NodeID
	home []topo.NodeID // by LID: the switch that the LID is behind, None
	peer []topo.PortID // by switch port: the other end of its link when the tables were made

	graph  *Graph     // that they were made for, nil: not known
	layers *layers    // nil: all routes are in one
	ports  *portLanes // nil: the lane is that of the layer
	memo   any        // of the engine, for its next call
	notes  *Notes     // what package spread wants to find again, nil: nothing
	proof  *proof     // of the checker, nil: there is none

	checked bool // First took them
}

type row struct {
	guid ib.GUID // of the switch, since slots of forgotten nodes are reused
	lft  []ib.PortNum
}

// NewTables returns tables for the switches and targets of a graph. A row is shared with prev where prev (which may be nil)
// has one of the same size for the same switch. Otherwise it has the entries of prev and NoPort. Use [Tables.Writable] to
// change entries.
func NewTables(engine string, g *Graph, prev *Tables) *Tables {
	t := &Tables{Engine: engine, MaxLID: g.MaxLID, graph: g, rows: make([]row, len(g.Num)), home: make([]topo.NodeID, int(g.MaxLID)+1), peer: PeersOf(g)}
	for i := range t.home {
		t.home[i] = topo.None
	}
	for s, targets := range g.Targets {
		for _, target := range targets {
			t.home[target.LID] = g.IDs[s]
		}
	}
	size := (int(g.MaxLID)/BlockSize + 1) * BlockSize
	for s, id := range g.IDs {
		old := prev.rowOf(id, g.GUID(int32(s)))
		if len(old) != size {
			fresh := make([]ib.PortNum, size)
			for i := copy(fresh, old); i < size; i++ {
				fresh[i] = ib.NoPort
			}
			old = fresh
		}
		t.rows[id] = row{guid: g.GUID(int32(s)), lft: old}
	}
	return t
}

// graphFor returns the graph of a fabric with the LIDs that tables keep routes for. It is the graph that they were made
// for, if it was the same fabric.
func (t *Tables) graphFor(f *topo.Fabric) (*Graph, error) {
	if t != nil && t.graph != nil && t.graph.f == f {
		return t.graph, nil
	}
	return NewGraph(f, t)
}

// LFT returns the table of a switch, by LID: the egress port, 0 for the switch's own LIDs, NoPort where packets are
// dropped. The length is a whole number of blocks above MaxLID. It is nil for a node that was no switch, and must not be
// written to.
func (t *Tables) LFT(id topo.NodeID) []ib.PortNum {
	if t == nil || id < 0 || int(id) >= len(t.rows) {
		return nil
	}
	return t.rows[id].lft
}

// Home returns the switch that a LID is behind: the switch itself, or the one that the LID's CA port is cabled to, or was
// cabled to when it was last seen. None for a LID without routes.
func (t *Tables) Home(lid ib.LID) topo.NodeID {
	if t == nil || int(lid) >= len(t.home) {
		return topo.None
	}
	return t.home[lid]
}

// KnewLink reports whether an edge of a graph existed, between the same ports,
// when the tables were made.
func (t *Tables) KnewLink(g *Graph, s, edge int32) bool {
	out := g.slot[s].first + topo.PortID(g.Port[edge])
	return int(out) < len(t.peer) && t.peer[out] == g.f.LinkUp(out)
}

// Checked reports whether the checker accepted the tables for the fabric they were made for: over the links of
// [Tables.Peers] each LID is delivered from every switch of its island.
func (t *Tables) Checked() bool { return t != nil && t.checked }

// Writable returns the table of a switch to write to while tables are being made. prev are the tables that NewTables got: a
// row shared with them is copied first.
func (t *Tables) Writable(prev *Tables, id topo.NodeID) []ib.PortNum {
	r := &t.rows[id]
	if old := prev.LFT(id); len(old) > 0 && &old[0] == &r.lft[0] {
		r.lft = slices.Clone(r.lft)
	}
	return r.lft
}

// ChangedBlocks returns the numbers of the blocks in which a wanted table differs from the one a switch has. An entry that
// have lacks counts as different unless want has NoPort there.
func ChangedBlocks(want, have []ib.PortNum) []uint16 {
	var changed []uint16
	for b := 0; b*BlockSize < len(want); b++ {
		lo, hi := b*BlockSize, min((b+1)*BlockSize, len(want))
		if hi <= len(have) && string(want[lo:hi]) == string(have[lo:hi]) { // many bytes at a time
			continue
		}
		for i := lo; i < hi; i++ {
			if i < len(have) && want[i] != have[i] || i >= len(have) && want[i] != ib.NoPort {
				changed = append(changed, uint16(b))
				break
			}
		}
	}
	return changed
}

// rowOf returns the row of a switch if the tables were made for that switch.
func (t *Tables) rowOf(id topo.NodeID, guid ib.GUID) []ib.PortNum {
	if t == nil || int(id) >= len(t.rows) || t.rows[id].guid != guid {
		return nil
	}
	return t.rows[id].lft
}
