package inquiry

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Ways are the shortest ways from one port to each device of a fabric. They do not change.
type Ways struct {
	fabric *topo.Fabric
	own    topo.PortID
	before []topo.PortID          // by node: the port by which the node before is left; None: not reached, or the own node
	ends   map[ib.LID]topo.NodeID // whose LIDs these are; None: of several nodes
}

// Target is a device, and how it is reached from the own port.
type Target struct {
	Route mad.Route
	// Place is the port in front of the device, as keys are bound to it: the GUID of the node before, and the port by which it is left.
	// It is zero for the own node.
	Place ib.Place
	Known bool // the fabric has a device there
}

// NewWays returns the ways from the port with a GUID. Without such a port nothing is reached but by directed routes.
func NewWays(f *topo.Fabric, own ib.GUID) *Ways {
	w := &Ways{fabric: f, own: f.PortByGUID(own), before: make([]topo.PortID, f.NumNodes()), ends: map[ib.LID]topo.NodeID{}}
	for i := range w.before {
		w.before[i] = topo.None
	}
	w.lids()
	w.search()
	return w
}

// lids keeps whose each LID is.
func (w *Ways) lids() {
	for _, p := range w.fabric.EndPorts() {
		port := w.fabric.Port(p)
		if port.LID == 0 {
			continue
		}
		for i := range ib.LID(1) << port.LMC {
			lid := port.LID + i
			if other, taken := w.ends[lid]; taken && other != port.Node {
				w.ends[lid] = topo.None
				continue
			}
			w.ends[lid] = port.Node
		}
	}
}

// search finds the shortest ways, breadth first.
func (w *Ways) search() {
	if w.own == topo.None {
		return
	}
	start := w.fabric.Port(w.own).Node
	seen := make([]bool, w.fabric.NumNodes())
	seen[start] = true
	queue := []topo.NodeID{start}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, p := range w.leave(n, start) {
			far := w.fabric.LinkUp(p)
			if far == topo.None || seen[w.fabric.Port(far).Node] {
				continue
			}
			to := w.fabric.Port(far).Node
			seen[to] = true
			w.before[to] = p
			queue = append(queue, to)
		}
	}
}

// leave returns the ports by which packets can leave a node: of the own node its own port, of others those of a switch.
func (w *Ways) leave(n, start topo.NodeID) []topo.PortID {
	node := w.fabric.Node(n)
	switch {
	case node.Type == ib.NodeSwitch:
		out := make([]topo.PortID, 0, node.NumPorts)
		for num := 1; num <= int(node.NumPorts); num++ {
			out = append(out, node.FirstPort+topo.PortID(num))
		}
		return out
	case n == start:
		return []topo.PortID{w.own}
	}
	return nil
}

// ToLID returns the device that has a LID. It reports false if there is none, or several, or no way leads there.
func (w *Ways) ToLID(lid ib.LID) (Target, bool) {
	n, known := w.ends[lid]
	if !known || n == topo.None || w.own == topo.None {
		return Target{}, false
	}
	start := w.fabric.Port(w.own).Node
	var ports []ib.PortNum
	for at := n; at != start; {
		p := w.before[at]
		if p == topo.None || len(ports) >= mad.MaxHops {
			return Target{}, false
		}
		ports = append(ports, w.fabric.Port(p).Num)
		at = w.fabric.Port(p).Node
	}
	var route mad.Route
	for i := len(ports) - 1; i >= 0; i-- {
		route, _ = route.Append(ports[i]) // at most MaxHops
	}
	return Target{Route: route, Place: w.placeOf(w.before[n]), Known: true}, true
}

// Along returns the device at the end of a directed route. The route may lead to a device that the fabric does not have, or out of it.
func (w *Ways) Along(route mad.Route) Target {
	out := Target{Route: route}
	if w.own == topo.None {
		return out
	}
	at, last := w.fabric.Port(w.own).Node, topo.PortID(topo.None)
	for i := range route.Len() {
		num := route.At(i)
		p := w.fabric.PortOf(at, num)
		// No adapter but the own one is on a way: its host would see the key of what is said to be behind it.
		if p == topo.None || num == 0 || w.fabric.Node(at).Type != ib.NodeSwitch && p != w.own {
			return out
		}
		far := w.fabric.LinkUp(p)
		if far == topo.None {
			return out
		}
		at, last = w.fabric.Port(far).Node, p
	}
	out.Place, out.Known = w.placeOf(last), true
	return out
}

// placeOf returns the place of a port; of none, which is in front of the own node, the zero place.
func (w *Ways) placeOf(p topo.PortID) ib.Place {
	if p == topo.None {
		return ib.Place{}
	}
	return ib.Place{Switch: w.fabric.NodeOf(p).GUID, Port: w.fabric.Port(p).Num}
}
