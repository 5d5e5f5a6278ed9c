package topotest

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Grid is a torus or mesh of up to three dimensions: radix switches along x, y
// and z, a ring where wrap says so and the radix is at least 3. Switch ports 1
// to 6 are +x -x +y -y +z -z, hosts follow from port 7. Switch (x,y,z) has
// index 1 + x + radix x * (y + radix y * z).
func Grid(radix [3]int, wrap [3]bool, hostsEach int) *Kit {
	k := &Kit{}
	sw := k.row(1, 0, radix[0]*radix[1]*radix[2], 6+hostsEach)
	index := func(c [3]int) int { return c[0] + radix[0]*(c[1]+radix[1]*c[2]) }
	for i := range sw {
		c := [3]int{i % radix[0], i / radix[0] % radix[1], i / (radix[0] * radix[1])}
		for dim, n := range radix {
			next := c
			if next[dim]++; next[dim] == n {
				if next[dim] = 0; !wrap[dim] || n < 3 {
					continue
				}
			}
			k.LinkPorts(sw[i], 2*dim+1, sw[index(next)], 2*dim+2)
		}
		for h := range hostsEach {
			k.LinkPorts(k.Host(1), 1, sw[i], 7+h)
		}
	}
	return k
}

// Hypercube is 2^dimensions switches; port d+1 leads along dimension d, hosts
// follow.
func Hypercube(dimensions, hostsEach int) *Kit {
	k := &Kit{}
	sw := k.row(1, 0, 1<<dimensions, dimensions+hostsEach)
	for i := range sw {
		for d := range dimensions {
			if peer := i ^ 1<<d; peer > i {
				k.LinkPorts(sw[i], d+1, sw[peer], d+1)
			}
		}
		for h := range hostsEach {
			k.LinkPorts(k.Host(1), 1, sw[i], dimensions+1+h)
		}
	}
	return k
}

// DragonflyPlus is groups of leaves and spines, each leaf with some hosts and one cable to each spine of its group. Between
// any two groups there are links cables, spread over the spines in turn. Leaf l of group g is tier 1, index g*leaves+l+1;
// spines are tier 2 likewise.
func DragonflyPlus(groups, leaves, spines, hostsEach, links int) *Kit {
	k := &Kit{}
	up := (groups-1)*links/spines + 1
	lf, sp := make([][]topo.NodeID, groups), make([][]topo.NodeID, groups)
	for g := range groups {
		lf[g] = k.row(1, g*leaves, leaves, hostsEach+spines)
		sp[g] = k.row(2, g*spines, spines, leaves+up)
		for _, leaf := range lf[g] {
			for range hostsEach {
				k.Link(k.Host(1), leaf)
			}
			for _, spine := range sp[g] {
				k.Link(leaf, spine)
			}
		}
	}
	next := make([]int, groups)
	for a := range groups {
		for b := range a {
			for range links {
				k.Link(sp[a][next[a]%spines], sp[b][next[b]%spines])
				next[a]++
				next[b]++
			}
		}
	}
	return k
}

// Remove takes a switch away, and the CAs that were cabled to it.
func (k *Kit) Remove(id topo.NodeID) {
	for n := 1; n <= int(k.Node(id).NumPorts); n++ {
		peer := k.Port(k.PortOf(id, ib.PortNum(n))).Peer
		if peer == topo.None {
			continue
		}
		node := k.Port(peer).Node
		k.Cut(id, n)
		if k.Node(node).Type != ib.NodeSwitch {
			k.RemoveNode(node)
		}
	}
	k.RemoveNode(id)
}
