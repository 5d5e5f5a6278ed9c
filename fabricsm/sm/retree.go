package sm

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/blocks"
	"portcullis/fabricsm/topo"
)

// way is how a node may be asked: over a port of a node that is nearer to us.
type way struct {
	node topo.NodeID
	up   topo.PortID
}

// reattach finds other routes to a switch whose route is gone, and to all nodes that were reached over it. They are as
// short as the other links allow. It drops nodes that have none. Its cost depends on the number of nodes behind that
// switch.
func (c *Core) reattach(id topo.NodeID) {
	c.treeEpoch++
	if c.root == topo.None {
		return
	}
	lost, todo := c.hangingOn(id)
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
		c.topo.EachCable(x, func(own, far topo.PortID) {
			if y := c.ports[far].node; !lost.Has(int(y)) && c.probes(far) {
				offer(c.hopsTo(y)+1, way{x, far})
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
			if n := &c.nodes[w.node]; n.up != w.up {
				n.up = w.up
				c.tryWay(w.node)
			}
			c.topo.EachCable(w.node, func(own, far topo.PortID) {
				if z := c.ports[far].node; lost.Has(int(z)) && c.probes(own) {
					offer(hops+1, way{z, own})
				}
			})
		}
	}
	switch {
	case lost.IsEmpty():
	case further:
		c.retree() // the ways of others may have become longer than they need to be
	default:
		for x := lost.First(); x >= 0; x = lost.First() {
			lost.Remove(x)
			c.dropNode(topo.NodeID(x))
		}
	}
	c.treeEpoch++
}

// hangingOn returns a node and all nodes that are reached through it, as a set and in the order of their routes.
func (c *Core) hangingOn(id topo.NodeID) (set blocks.Set, list []topo.NodeID) {
	set.Add(int(id))
	list = []topo.NodeID{id}
	for i := 0; i < len(list); i++ {
		c.topo.EachCable(list[i], func(own, far topo.PortID) {
			x := c.ports[far].node
			if n := &c.nodes[x]; n.alive && n.up == own && !set.Has(int(x)) {
				set.Add(int(x))
				list = append(list, x)
			}
		})
	}
	return set, list
}

// hopsTo returns the length of the route by which a node is asked, or more than the maximum if it has none.
func (c *Core) hopsTo(id topo.NodeID) int {
	for hops := range mad.MaxHops + 1 {
		if id == c.root {
			return hops
		}
		up := c.nodes[id].up
		if up == topo.None {
			break
		}
		id = c.ports[up].node
	}
	return mad.MaxHops + 1
}

// retree finds shortest directed routes to all nodes again and drops those
// that have none.
func (c *Core) retree() {
	c.treeEpoch++
	if c.root == topo.None {
		return
	}
	seen := make([]bool, len(c.nodes))
	seen[c.root] = true
	c.nodes[c.root].up = topo.None
	todo := []topo.NodeID{c.root}
	hops := []int{0}
	for i := 0; i < len(todo); i++ {
		id := todo[i]
		tn := c.topo.Node(id)
		for q := 1; q <= int(tn.NumPorts); q++ {
			p := tn.FirstPort + topo.PortID(q)
			peer := c.topo.Peer(p)
			if peer == topo.None || !c.probes(p) || hops[i] >= mad.MaxHops {
				continue
			}
			if next := c.ports[peer].node; !seen[next] {
				seen[next] = true
				if c.nodes[next].up != p {
					c.nodes[next].up = p
					c.tryWay(next)
				}
				todo, hops = append(todo, next), append(hops, hops[i]+1)
			}
		}
	}
	for id := range c.nodes {
		if c.nodes[id].alive && !seen[id] {
			c.dropNode(topo.NodeID(id))
		}
	}
	c.treeEpoch++
}
