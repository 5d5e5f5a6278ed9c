package route

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Lanes defines which virtual lane packets use on each link, by their source port and destination, for engines that let a
// packet change lanes on its way. Switches know only the class of a port.
type Lanes struct {
	Count int // virtual lanes on links between switches, 1 to MaxLayers
	// Levels is how many service levels are in use; packets of a higher one
	// are dropped. Levels is 16 if SL does not matter to VL.
	Levels int
	// Class returns the class of the port that an edge leaves by, below Classes. 0 is for ports that lead to no switch, and
	// for packets from a switch itself.
	Class   func(edge int32) uint8
	Classes int
	// VL returns the lane, below Count, of packets that came in by a port of one class and leave by one of another. To
	// ports of class 0 it is always VL 0.
	VL func(in, out uint8, sl ib.SL) ib.VL
	// SL returns the service level, below Levels, of packets between two switches and the CAs behind them, a > b, both
	// directions alike.
	SL func(a, b int32) uint8
}

// portLanes is Lanes as tables keep them.
type portLanes struct {
	count   int
	classes uint8
	class   []uint8       // by topo.PortID
	first   []topo.PortID // by topo.NodeID: port 0 of a switch, None
	vl      [][16]ib.VL   // by class of the ingress port, then of the egress port
}

// SetLanes sets the lanes and service levels of tables, while they are being made.
func (t *Tables) SetLanes(g *Graph, l Lanes) {
	if l.Count < 1 || l.Count > MaxLayers || l.Levels < 1 || l.Levels > 16 {
		panic(fmt.Sprintf("route: %d lanes, there can be 1 to %d, and %d service levels, there can be 1 to 16", l.Count, MaxLayers, l.Levels))
	}
	t.setLevels(g, l.Levels, l.SL)
	p := &portLanes{count: l.Count, classes: uint8(l.Classes), class: make([]uint8, len(g.portOut)), vl: make([][16]ib.VL, l.Classes*l.Classes)}
	p.first = make([]topo.PortID, len(g.Num))
	for id := range p.first {
		p.first[id] = topo.None
	}
	for s, id := range g.IDs {
		p.first[id] = g.slot[s].first
	}
	for id, e := range g.portOut {
		if e < 0 {
			continue
		}
		if p.class[id] = l.Class(e); p.class[id] == 0 || p.class[id] >= p.classes {
			panic(fmt.Sprintf("route: class %d of a port to a switch, there are 1 to %d", p.class[id], p.classes-1))
		}
	}
	for in := range p.classes {
		for out := range p.classes {
			p.vl[in*p.classes+out] = l.row(in, out)
		}
	}
	t.ports = p
}

// row returns the lanes of all service levels for a pair of classes.
func (l *Lanes) row(in, out uint8) (vl [16]ib.VL) {
	for sl := range ib.SL(16) {
		switch {
		case int(sl) >= l.Levels:
			vl[sl] = ib.VL15
		case out != 0:
			if vl[sl] = l.VL(in, out, sl); int(vl[sl]) >= l.Count {
				panic(fmt.Sprintf("route: lane %d of %d", vl[sl], l.Count))
			}
		}
	}
	return vl
}

// LanesByPort reports whether the lane of a packet depends on the ports that it
// passes a switch by. [Tables.SLtoVL] is then true for CAs only, and switches
// need [Tables.SwitchLanes] for each pair of ports.
func (t *Tables) LanesByPort() bool { return t != nil && t.ports != nil }

// SwitchLanes returns the virtual lane for each service level of packets that come into a switch by one port (0: from the
// switch itself) and leave by another.
func (t *Tables) SwitchLanes(id topo.NodeID, in, out ib.PortNum) [16]ib.VL {
	if !t.LanesByPort() {
		return t.SLtoVL()
	}
	p := t.ports
	return p.vl[p.classOf(id, in)*p.classes+p.classOf(id, out)]
}

// classOf returns the class of a port, 0 for ports that did not exist when the tables were made.
func (p *portLanes) classOf(id topo.NodeID, num ib.PortNum) uint8 {
	if id < 0 || int(id) >= len(p.first) || p.first[id] == topo.None {
		return 0
	}
	if port := int(p.first[id]) + int(num); port < len(p.class) {
		return p.class[port]
	}
	return 0
}

// PairSL returns the service level of packets between two switches and the CAs behind them, 0 for switches that the tables
// do not have.
func (t *Tables) PairSL(a, b topo.NodeID) ib.SL { return ib.SL(t.layerOf(a, b)) }

// Reverse returns the other direction of an edge that leaves a switch.
func (g *Graph) Reverse(s, e int32) int32 {
	return g.portOut[g.f.LinkUp(g.slot[s].first+topo.PortID(g.Port[e]))]
}

// SetMemo leaves something in tables, while they are being made, for the engine
// to find when it is given them as those before. It must not be written to
// afterwards.
func (t *Tables) SetMemo(v any) { t.memo = v }

// Memo returns the memo of the engine, nil if it left none.
func (t *Tables) Memo() any {
	if t == nil {
		return nil
	}
	return t.memo
}
