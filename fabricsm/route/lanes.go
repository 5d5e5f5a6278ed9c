package route

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// PairSL gives the service level of packets between two switches and what is
// behind them, 0 for switches that the tables do not know.
func (t *Tables) PairSL(a, b topo.NodeID) ib.SL { return ib.SL(t.layerOf(a, b)) }

// Reverse gives the other direction of an edge that leaves a switch.
func (g *Graph) Reverse(s, e int32) int32 {
	return g.portOut[g.f.LinkUp(g.slot[s].first+topo.PortID(g.Port[e]))]
}
