package nexthop

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Share is what operators say of how destinations share links. The zero value
// routes all in the order of switch GUIDs, and counts all.
type Share struct {
	// First are GUIDs of end ports that are routed before all others, in this
	// order, when all is routed: they get the ways that are free. It is OpenSM's
	// guid_routing_order_file.
	First []ib.GUID
	// Ignored are end ports, or the switch ports that these are cabled to. Routes to them count as no load of any link. It
	// is OpenSM's port_prof_ignore_file.
	Ignored []Port
}

// Port is a port of a node.
type Port struct {
	Node ib.GUID
	Num  ib.PortNum
}

// End returns the end port that p is, or is cabled to; None if it is not there or leads to another switch.
func (p Port) End(f *topo.Fabric) topo.PortID {
	id := f.NodeByGUID(p.Node)
	if id == topo.None {
		return topo.None
	}
	at := f.PortOf(id, p.Num)
	if at == topo.None || f.Node(id).Type != ib.NodeSwitch || p.Num == 0 {
		return at
	}
	if at = f.LinkUp(at); at != topo.None && f.NodeOf(at).Type == ib.NodeSwitch {
		return topo.None
	}
	return at
}

// turns has, by LID, the place among those that are routed first, from 1; 0 is
// after them. It is nil if nothing comes first.
func (s *Share) turns(f *topo.Fabric, g *route.Graph) []int32 {
	if len(s.First) == 0 {
		return nil
	}
	turns := make([]int32, int(g.MaxLID)+1)
	for i, guid := range s.First {
		eachLID(f, f.PortByGUID(guid), len(turns), func(l ib.LID) { turns[l] = int32(i) + 1 })
	}
	return turns
}

// ignored has, by LID, those that count as no load; nil if all count.
func (s *Share) ignored(f *topo.Fabric, g *route.Graph) []bool {
	if len(s.Ignored) == 0 {
		return nil
	}
	ignored := make([]bool, int(g.MaxLID)+1)
	for _, p := range s.Ignored {
		eachLID(f, p.End(f), len(ignored), func(l ib.LID) { ignored[l] = true })
	}
	return ignored
}

func eachLID(f *topo.Fabric, p topo.PortID, end int, visit func(ib.LID)) {
	if p == topo.None || f.Port(p).LID == 0 {
		return
	}
	first := int(f.Port(p).LID)
	for l := first; l < min(end, first+1<<f.Port(p).LMC); l++ {
		visit(ib.LID(l))
	}
}

// turn is LIDs behind one switch that are routed one after the other.
type turn struct {
	dest int32
	lids []route.Target
}

// inTurn separates the LIDs that come first from the others, by destination, and returns them in their order.
func (s *spreader) inTurn(open []turn) (first, rest []turn) {
	if s.turns == nil {
		return nil, open
	}
	for _, o := range open {
		var left []route.Target
		for _, t := range o.lids {
			if s.turns[t.LID] == 0 {
				left = append(left, t)
			} else {
				first = append(first, turn{o.dest, []route.Target{t}})
			}
		}
		if len(left) > 0 {
			rest = append(rest, turn{o.dest, left})
		}
	}
	slices.SortStableFunc(first, func(a, b turn) int {
		return cmp.Or(cmp.Compare(s.turns[a.lids[0].LID], s.turns[b.lids[0].LID]), cmp.Compare(a.lids[0].LID, b.lids[0].LID))
	})
	joined := first[:0]
	for _, f := range first {
		if n := len(joined); n > 0 && joined[n-1].dest == f.dest {
			joined[n-1].lids = append(joined[n-1].lids, f.lids...)
			continue
		}
		joined = append(joined, f)
	}
	return joined, rest
}
