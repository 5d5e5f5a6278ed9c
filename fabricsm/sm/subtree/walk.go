package subtree

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// walk is a search of the switches for cables that are the only way to what is behind
// them.
type walk struct {
	order  []topo.NodeID // switches, each after the one it was found from
	size   []int         // by topo.NodeID: of what is not vouched for there and behind
	hosts  []int         // by topo.NodeID: adapters and routers there and behind
	in     []topo.PortID // by topo.NodeID: port of another switch that it was found by
	bridge []bool        // by topo.NodeID: no other cable leads there
	stem   bool          // see isStem
}

// stemHosts is how many hosts a switch may have, ours included, that is there for
// managers alone.
const stemHosts = 4

// isStem reports whether our own switch is there for managers alone, and each of its cables to another switch is the only
// one there. Then one of them is the way to the fabric rather than to a part of it.
func (w *walk) isStem(parent func(topo.NodeID) topo.NodeID) bool {
	first := w.order[0]
	hosts := w.hosts[first]
	for _, id := range w.order[1:] {
		if parent(id) != first {
			continue
		}
		if !w.bridge[id] {
			return false
		}
		hosts -= w.hosts[id]
	}
	return hosts <= stemHosts
}

// step is a switch that the search stands at, and the next of its ports.
type step struct {
	id   topo.NodeID
	next int
}

// walkSwitches walks over all cables between switches, from ours on. Adapters forward
// nothing, so each counts with the switch that it is asked over.
func (t *Tracker) walkSwitches() *walk {
	n := len(t.nodes)
	w := &walk{size: make([]int, n), hosts: make([]int, n), in: make([]topo.PortID, n), bridge: make([]bool, n)}
	t.weighNodes(w)
	first := t.firstSwitch()
	if first == topo.None {
		return w
	}
	seen, low := make([]int32, n), make([]int32, n)
	clock := int32(1)
	seen[first], low[first], w.in[first] = clock, clock, topo.None
	w.order = append(w.order, first)
	way := []step{{id: first, next: 1}}
	for len(way) > 0 {
		at := &way[len(way)-1]
		tn := t.topo.Node(at.id)
		if at.next > int(tn.NumPorts) {
			v := at.id
			way = way[:len(way)-1]
			if len(way) > 0 {
				u := way[len(way)-1].id
				low[u] = min(low[u], low[v])
				w.bridge[v] = low[v] > seen[u]
				w.size[u] += w.size[v]
				w.hosts[u] += w.hosts[v]
			}
			continue
		}
		p := tn.FirstPort + topo.PortID(at.next)
		at.next++
		q := t.topo.Port(p).Peer
		if q == topo.None || !t.isExternal(q) || q == w.in[at.id] {
			continue
		}
		v := t.topo.Port(q).Node
		if seen[v] != 0 {
			low[at.id] = min(low[at.id], seen[v])
			continue
		}
		clock++
		seen[v], low[v], w.in[v] = clock, clock, p
		w.order = append(w.order, v)
		way = append(way, step{id: v, next: 1})
	}
	w.stem = w.isStem(func(id topo.NodeID) topo.NodeID { return t.topo.Port(w.in[id]).Node })
	return w
}

// weighNodes counts each node at the switch that it counts with.
func (t *Tracker) weighNodes(w *walk) {
	for i := range t.nodes {
		id := topo.NodeID(i)
		if !t.fabric.IsAlive(id) {
			continue
		}
		at, tn := id, t.topo.Node(id)
		if up := t.fabric.Up(id); tn.Type != ib.NodeSwitch && up != topo.None {
			at = t.topo.Port(up).Node
			w.hosts[at]++
		}
		if !t.nodes[i].vouched {
			w.size[at] += Size(tn.NumPorts)
		}
	}
}

// isExternal reports whether a port is an external port of a switch.
func (t *Tracker) isExternal(p topo.PortID) bool {
	tp := t.topo.Port(p)
	return tp.Num != 0 && t.topo.Node(tp.Node).Type == ib.NodeSwitch
}

// firstSwitch returns the switch next to us.
func (t *Tracker) firstSwitch() topo.NodeID {
	root, port := t.fabric.Root()
	if root == topo.None || t.topo.Node(root).Type == ib.NodeSwitch {
		return root
	}
	if p := t.topo.Port(port).Peer; p != topo.None && t.isExternal(p) {
		return t.topo.Port(p).Node
	}
	return topo.None
}
