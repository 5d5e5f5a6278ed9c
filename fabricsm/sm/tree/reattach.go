package tree

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/blocks"
	"portcullis/fabricsm/topo"
)

// way is a port by which a node may be asked.
type way struct {
	node topo.NodeID
	up   topo.PortID
}

// reattach finds other routes to a switch whose route is gone, and to all nodes that were reached over it. They are as
// short as the other links allow. It drops nodes that have none. Its cost depends on the number of nodes behind that
// switch.
func (t *Tree) reattach(id topo.NodeID) {
	t.epoch++
	root, _ := t.fabric.Root()
	if root == topo.None {
		return
	}
	lost, todo := t.hangingOn(id)
	var at [mad.MaxHops + 1][]way // by the length of the way
	further := false              // there are ways, which are too long
	offer := func(hops int, w way) {
		if hops > mad.MaxHops {
			further = true
			return
		}
		at[hops] = append(at[hops], w)
	}
	for _, x := range todo {
		t.topo.EachCable(x, func(own, far topo.PortID) {
			if y := t.nodeOf(far); !lost.Has(int(y)) && t.Probes(far) {
				offer(t.Hops(y)+1, way{x, far})
			}
		})
	}
	for hops := range at {
		slices.SortFunc(at[hops], func(a, b way) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.up, b.up)) })
		for _, w := range at[hops] {
			if !lost.Has(int(w.node)) {
				continue
			}
			lost.Remove(int(w.node))
			if t.nodes[w.node].up != w.up {
				t.use(w.node, w.up)
			}
			t.topo.EachCable(w.node, func(own, far topo.PortID) {
				if z := t.nodeOf(far); lost.Has(int(z)) && t.Probes(own) {
					offer(hops+1, way{z, own})
				}
			})
		}
	}
	switch {
	case lost.IsEmpty():
	case further:
		t.rebuild() // the ways of others may have become longer than they need to be
	default:
		for x := lost.First(); x >= 0; x = lost.First() {
			lost.Remove(x)
			t.fabric.Drop(topo.NodeID(x))
		}
	}
	t.epoch++
}

// hangingOn returns a node and all nodes that are reached through it, as a set and in the order of their routes.
func (t *Tree) hangingOn(id topo.NodeID) (set blocks.Set, list []topo.NodeID) {
	set.Add(int(id))
	list = []topo.NodeID{id}
	for i := 0; i < len(list); i++ {
		t.topo.EachCable(list[i], func(own, far topo.PortID) {
			x := t.nodeOf(far)
			if t.fabric.IsAlive(x) && t.nodes[x].up == own && !set.Has(int(x)) {
				set.Add(int(x))
				list = append(list, x)
			}
		})
	}
	return set, list
}

// rebuild finds shortest directed routes to all nodes again and drops those
// that have none.
func (t *Tree) rebuild() {
	t.epoch++
	root, _ := t.fabric.Root()
	if root == topo.None {
		return
	}
	seen := make([]bool, len(t.nodes))
	seen[root] = true
	t.nodes[root].up = topo.None
	todo := []topo.NodeID{root}
	hops := []int{0}
	for i := 0; i < len(todo); i++ {
		id := todo[i]
		tn := t.topo.Node(id)
		for q := 1; q <= int(tn.NumPorts); q++ {
			p := tn.FirstPort + topo.PortID(q)
			peer := t.topo.Peer(p)
			if peer == topo.None || !t.Probes(p) || hops[i] >= mad.MaxHops {
				continue
			}
			if next := t.nodeOf(peer); !seen[next] {
				seen[next] = true
				if t.nodes[next].up != p {
					t.use(next, p)
				}
				todo, hops = append(todo, next), append(hops, hops[i]+1)
			}
		}
	}
	for id := range t.nodes {
		if t.fabric.IsAlive(topo.NodeID(id)) && !seen[id] {
			t.fabric.Drop(topo.NodeID(id))
		}
	}
	t.epoch++
}
