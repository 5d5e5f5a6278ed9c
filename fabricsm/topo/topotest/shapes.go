package topotest

import (
	"portcullis/fabricsm/fattree"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Single is one switch with hosts on its first ports.
func Single(hosts, radix int) *Kit {
	k := &Kit{}
	sw := k.Switch(1, 1, max(hosts, radix))
	for range hosts {
		k.Link(k.Host(1), sw)
	}
	return k
}

// FatTree2 is leaves and spines; see package fattree.
func FatTree2(hosts, radix int) *Kit {
	t, err := fattree.TwoLevels(hosts, radix)
	if err != nil {
		panic(err)
	}
	k := &Kit{}
	leaves, spines := k.row(1, 0, t.Leaves, radix), k.row(2, 0, t.Spines, radix)
	for h := range hosts {
		k.Link(k.Host(1), leaves[h/(radix/2)])
	}
	for _, leaf := range leaves {
		k.linkUp(leaf, radix, spines)
	}
	return k
}

// FatTree3 is pods of leaves and aggregation switches with cores on top; see package fattree.
func FatTree3(hosts, radix int) *Kit {
	t, err := fattree.ThreeLevels(hosts, radix)
	if err != nil {
		panic(err)
	}
	k, half := &Kit{}, t.Half()
	cores := make([][]topo.NodeID, half)
	for g := range cores {
		cores[g] = k.row(3, g*t.Cores, t.Cores, radix)
	}
	for p := range t.Pods {
		leaves := k.row(1, p*half, t.LeavesOf(p), radix)
		above := k.row(2, p*half, half, radix)
		for _, leaf := range leaves {
			for i := 0; i < half && len(k.Hosts) < hosts; i++ {
				k.Link(k.Host(1), leaf)
			}
			k.linkUp(leaf, radix, above)
		}
		for g, a := range above {
			k.linkUp(a, radix, cores[g])
		}
	}
	return k
}

// linkUp cables the ports of a switch that lead up to the switches above.
func (k *Kit) linkUp(sw topo.NodeID, radix int, above []topo.NodeID) {
	for port, to := range fattree.Uplinks(radix, len(above)) {
		k.LinkPorts(sw, port, above[to], k.free(above[to]))
	}
}

// Chain is switches in a row, each with some hosts.
func Chain(switches, hostsEach int) *Kit {
	k := &Kit{}
	row := k.row(1, 0, switches, hostsEach+2)
	for i, sw := range row {
		for range hostsEach {
			k.Link(k.Host(1), sw)
		}
		if i > 0 {
			k.LinkPorts(row[i-1], hostsEach+2, sw, hostsEach+1)
		}
	}
	return k
}

// Torus is a two-dimensional torus, x and y at least 3; switch ports 1 to 4
// are +x -x +y -y, hosts follow from port 5. A y of 1 makes a ring.
func Torus(x, y, hostsEach int) *Kit {
	k := &Kit{}
	sw := k.row(1, 0, x*y, 4+hostsEach)
	at := func(i, j int) topo.NodeID { return sw[(j%y)*x+i%x] }
	for j := range y {
		for i := range x {
			k.LinkPorts(at(i, j), 1, at(i+1, j), 2)
			if y > 1 {
				k.LinkPorts(at(i, j), 3, at(i, j+1), 4)
			}
			for h := range hostsEach {
				k.LinkPorts(k.Host(1), 1, at(i, j), 5+h)
			}
		}
	}
	return k
}

// Islands is two switches that are not connected, each with some hosts.
func Islands(hostsEach int) *Kit {
	k := &Kit{}
	for i := range 2 {
		sw := k.Switch(1, i+1, hostsEach)
		for range hostsEach {
			k.Link(k.Host(1), sw)
		}
	}
	return k
}

// DualPort is two connected leaves with one host each, and a host with a port
// on either.
func DualPort() *Kit {
	k := &Kit{}
	row := k.row(1, 0, 2, 8)
	k.Link(row[0], row[1])
	k.Link(k.Host(1), row[0])
	k.Link(k.Host(1), row[1])
	both := k.Host(2)
	k.LinkPorts(both, 1, row[0], k.free(row[0]))
	k.LinkPorts(both, 2, row[1], k.free(row[1]))
	return k
}

// Random is up to maxSwitches switches with random links between them, parallel ones too, and random hosts, some with two
// ports, some with an LMC. It need not be connected. draw returns a number from 0 to its argument.
func Random(maxSwitches int, draw func(most int) int) *Kit {
	k := &Kit{}
	n := 1 + draw(maxSwitches-1)
	sw := k.row(1, 0, n, 128)
	for i := 1; i < n; i++ {
		if draw(9) > 0 {
			k.Link(sw[i], sw[draw(i-1)])
		}
	}
	for range draw(n) {
		if a, b := draw(n-1), draw(n-1); a != b {
			k.Link(sw[a], sw[b])
		}
	}
	for range draw(2 * n) {
		ports := 1 + draw(1)
		h := k.Host(ports)
		for p := 1; p <= ports; p++ {
			s := sw[draw(n-1)]
			k.LinkPorts(h, p, s, k.free(s))
			k.SetLMC(h, p, ib.LMC(draw(2)))
		}
	}
	return k
}

func (k *Kit) row(tier, first, n, ports int) []topo.NodeID {
	ids := make([]topo.NodeID, n)
	for i := range ids {
		ids[i] = k.Switch(tier, first+i+1, ports)
	}
	return ids
}
