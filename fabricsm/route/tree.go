package route

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// OneLane is an engine whose tables never need more than one virtual lane for data, so that the service level of a path is
// known before the tables are.
type OneLane interface{ OneLane() }

// Tree returns tables by which each LID is delivered from every switch of its island, along one spanning tree for all. They
// are made in a fraction of the time that an engine takes, and are correct without the checker: a tree has one way between two
// switches, and no credit loop. They show what can be reached, for instance before tables of switches are read. No switch should get them:
// all traffic would share few links. Errors are those of [NewGraph].
func Tree(f *topo.Fabric) (*Tables, error) {
	g, err := NewGraph(f, nil)
	if err != nil {
		return nil, err
	}
	t := NewTables("tree", g, nil)
	x := span{g: g, t: t, parent: make([]int32, len(g.IDs)), up: make([]ib.PortNum, len(g.IDs)), down: make([]ib.PortNum, len(g.IDs))}
	for s := range x.parent {
		x.parent[s] = unvisited
	}
	for s := range int32(len(g.IDs)) {
		if x.parent[s] == unvisited {
			x.grow(s)
			x.fill()
		}
	}
	t.checked = true
	return t, nil
}

const (
	unvisited int32 = -2
	noParent  int32 = -1
)

// span grows the tree of one island after the other.
type span struct {
	g      *Graph
	t      *Tables
	order  []int32      // switches of the island, from the root on
	parent []int32      // by switch number: unvisited, noParent for a root
	up     []ib.PortNum // by switch number: its port to its parent
	down   []ib.PortNum // by switch number: the port of its parent to it
}

// grow visits the island of a root, the nearest switches first.
func (x *span) grow(root int32) {
	g := x.g
	x.order, x.parent[root] = append(x.order[:0], root), noParent
	for i := 0; i < len(x.order); i++ {
		s := x.order[i]
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			to := g.To[e]
			if x.parent[to] != unvisited {
				continue
			}
			peer := g.f.LinkUp(g.PortAt(s, g.Port[e]))
			x.parent[to], x.down[to], x.up[to] = s, g.Port[e], g.f.Port(peer).Num
			x.order = append(x.order, to)
		}
	}
}

// fill writes the tables of the island: every LID of it leads up, except from the switches above its home, and from that one.
func (x *span) fill() {
	for _, s := range x.order {
		lft := x.t.Writable(nil, x.g.IDs[s])
		for _, home := range x.order {
			for _, target := range x.g.Targets[home] {
				lft[target.LID] = x.up[s]
			}
		}
	}
	for _, home := range x.order {
		for _, target := range x.g.Targets[home] {
			x.t.LFT(x.g.IDs[home])[target.LID] = target.Out
			for s := home; x.parent[s] >= 0; s = x.parent[s] {
				x.t.LFT(x.g.IDs[x.parent[s]])[target.LID] = x.down[s]
			}
		}
	}
}
