package route

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// MaxLayers is how many layers tables may have: one per data virtual lane that
// common switches carry.
const MaxLayers = 8

// layers defines which virtual lane the packets between two switches' LIDs use. Routes that would cause a credit loop on
// one lane are assigned to several. A pair of switches has one layer for both directions, as an answer comes back with the
// SL of the request.
//
// The proof that there is no credit loop holds for senders that use the assigned SL. A host can use any other: where hosts
// are hostile, an engine that needs one layer is the safe one.
type layers struct {
	count int
	num   []int32 // by topo.NodeID: the switch number when the layers were set, -1
	of    []uint8 // by pair of switch numbers, see pair
}

// pair numbers the unordered pairs of switches.
func pair(a, b int32) int {
	if a < b {
		a, b = b, a
	}
	return int(a)*(int(a)+1)/2 + int(b)
}

// SetLayers assigns the routes between each two switches to a layer, while tables are being made: of(a, b) returns the
// layer, below count, for two switch numbers of the graph, a > b.
func (t *Tables) SetLayers(g *Graph, count int, of func(a, b int32) uint8) {
	if count < 1 || count > MaxLayers {
		panic(fmt.Sprintf("route: %d layers, there can be 1 to %d", count, MaxLayers))
	}
	t.setLevels(g, count, of)
}

// setLevels assigns each pair of switches one of count service levels.
func (t *Tables) setLevels(g *Graph, count int, of func(a, b int32) uint8) {
	n := int32(len(g.IDs))
	l := &layers{count: count, num: g.Num, of: make([]uint8, pair(n, 0))}
	for a := range n {
		for b := range a {
			layer := of(a, b)
			if int(layer) >= count {
				panic(fmt.Sprintf("route: layer %d of %d", layer, count))
			}
			l.of[pair(a, b)] = layer
		}
	}
	t.layers = l
}

// Layers returns the number of virtual lanes that the routes are assigned to, 1 for most engines. Every link between
// switches must carry as many.
func (t *Tables) Layers() int {
	switch {
	case t.LanesByPort():
		return t.ports.count
	case t == nil || t.layers == nil:
		return 1
	}
	return t.layers.count
}

// SL returns the service level that packets from one LID to another must have, and those back. It is 0 for LIDs without
// routes.
func (t *Tables) SL(from, to ib.LID) ib.SL {
	return ib.SL(t.layerOf(t.Home(from), t.Home(to)))
}

// SLtoVL returns the virtual lane for each service level, the same on all ports: a level in use has the lane of the same
// number. With several layers a level that is not in use is dropped (VL15), as nothing is known of it. Where lanes depend
// on ports this is the table of CAs, and [Tables.SwitchLanes] has the others.
func (t *Tables) SLtoVL() [16]ib.VL {
	var vl [16]ib.VL
	switch {
	case t.LanesByPort():
		return t.ports.vl[0]
	case t.Layers() == 1:
		return vl
	}
	for sl := range vl {
		vl[sl] = ib.VL15
		if sl < t.layers.count {
			vl[sl] = ib.VL(sl)
		}
	}
	return vl
}

func (t *Tables) layerOf(a, b topo.NodeID) uint8 {
	if t == nil || t.layers == nil || a == b || a == topo.None || b == topo.None {
		return 0
	}
	if num := t.layers.num; int(a) < len(num) && int(b) < len(num) && num[a] >= 0 && num[b] >= 0 {
		return t.layers.of[pair(num[a], num[b])]
	}
	return 0
}
