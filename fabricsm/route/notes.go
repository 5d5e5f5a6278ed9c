package route

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Notes are kept by an engine beside its tables, so that next time it need only examine the changes. Like tables they are
// immutable once published, and the checker trusts nothing in them.
type Notes struct {
	// Basis is the input of the choices besides the links, by topo.NodeID, -1 for a node that is no switch. If it differs
	// for a switch, all is routed again.
	Basis []int32
	// First is the basis of the last whole routing. Where the present one is another,
	// since a link was lost, it is the one to come back to.
	First []int32
	// Usual is the other end of every link between switches at the last whole
	// routing, by topo.PortID. Links that were lost since are still in it.
	Usual []topo.PortID
	// Detours are the entries that were moved since because a link was lost, with their earlier ports, so that they go back
	// when it returns.
	Detours map[Entry]ib.PortNum
	// Provisional are the switches with LIDs that were first routed while usual
	// links were missing, by topo.NodeID.
	Provisional map[topo.NodeID]bool
}

// Entry names one entry of the tables.
type Entry struct {
	Switch topo.NodeID
	LID    ib.LID
}

// Notes returns the notes that the engine kept, nil if it keeps none.
func (t *Tables) Notes() *Notes {
	if t == nil {
		return nil
	}
	return t.notes
}

// SetNotes keeps notes with tables that are being made.
func (t *Tables) SetNotes(n *Notes) { t.notes = n }

// Peer returns the other end of a switch port's link to another switch when the tables were made, None without one.
func (t *Tables) Peer(p topo.PortID) topo.PortID {
	if t == nil || int(p) >= len(t.peer) {
		return topo.None
	}
	return t.peer[p]
}

// Has reports whether the tables were made for a switch.
func (t *Tables) Has(id topo.NodeID, guid ib.GUID) bool { return t.rowOf(id, guid) != nil }

// proof is the checker's result for tables with one layer.
type proof struct{ survey *survey }

// Proven reports whether the tables were given by [First], so that
// [Tables.Hops] and [Tables.Load] say something. Tables with several layers
// never are.
func (t *Tables) Proven() bool { return t != nil && t.proof != nil }

// Hops returns the number of links from a switch to the LIDs behind another, -1 if there is no way, it is not known, or not
// the same for all of them.
func (t *Tables) Hops(from, home topo.NodeID) int {
	if t.proof == nil {
		return -1
	}
	v := t.proof.survey
	num := v.g.Num
	if from < 0 || home < 0 || int(from) >= len(num) || int(home) >= len(num) || num[from] < 0 || num[home] < 0 {
		return -1
	}
	if d := v.depth[int(num[from])*len(v.g.IDs)+int(num[home])]; d != farDepth {
		return int(d)
	}
	return -1
}

// Depths returns the number of links from every switch of a graph to the LIDs behind every other, by switch and then home:
// 255 where it is not known. The caller must not write to it, unless own is set: then it is a copy.
func (t *Tables) Depths(g *Graph, own bool) []uint8 {
	v := t.proof.survey
	if !slices.Equal(v.g.IDs, g.IDs) {
		return v.depthsFor(g)
	}
	if own {
		return slices.Clone(v.depth)
	}
	return v.depth
}

// depthsFor puts the depths into the order of another graph.
func (v *survey) depthsFor(g *Graph) []uint8 {
	n, m := len(g.IDs), len(v.g.IDs)
	num := make([]int32, n) // by switch: its number in the survey, -1
	for s, id := range g.IDs {
		num[s] = -1
		if int(id) < len(v.g.Num) {
			num[s] = v.g.Num[id]
		}
	}
	d := make([]uint8, n*n)
	for s, from := range num {
		for h, home := range num {
			d[s*n+h] = farDepth
			if from >= 0 && home >= 0 {
				d[s*n+h] = v.depth[int(from)*m+int(home)]
			}
		}
	}
	return d
}

// Load returns the number of routes between CA ports that leave a switch by a port to another switch, see [Report].
func (t *Tables) Load(p topo.PortID) int64 {
	if t.proof == nil {
		return 0
	}
	v := t.proof.survey
	if int(p) >= len(v.g.portOut) || v.g.portOut[p] < 0 {
		return 0
	}
	return v.load[v.g.portOut[p]]
}

// Out returns the port id by which an edge leaves its switch.
func (g *Graph) Out(s, edge int32) topo.PortID { return g.slot[s].first + topo.PortID(g.Port[edge]) }

// Peers returns the other end of every link between switches when the tables were made, by topo.PortID, None for other
// ports. It does not have ports that came later, and must not be written to.
func (t *Tables) Peers() []topo.PortID {
	if t == nil {
		return nil
	}
	return t.peer
}
