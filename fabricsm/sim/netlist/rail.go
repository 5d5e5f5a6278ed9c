package netlist

import (
	"fmt"

	"portcullis/fabricsm/fattree"
	"portcullis/fabricsm/ib"
)

const (
	railUnit      = 32 // hosts of a scalable unit
	railHCAs      = 8
	railRadix     = 64
	railTwoLevels = 4 // units up to which leaves and spines suffice
)

// RailPods generates rail-optimised pods as DGX SuperPODs have them: scalable
// units of as many hosts as a leaf has ports down (32 of 64), where HCA r of each
// host is cabled to leaf "leafUNIT_r" of its unit, at the port that has the
// number of the host's slot. Up to four units share spines "spine1", ... Above
// that each rail has spines "spineRAIL_1", ... of its own, and spines of the same
// position in all rails share cores "corePOSITION_1", ... The last slot of the
// first unit is that of "sm", which is on the first rail alone. By default there
// are 32 hosts of 8 HCAs and switches of 64 ports.
func RailPods(s Shape) (*Netlist, error) {
	s.Hosts, s.HCAs, s.Radix = orDefault(s.Hosts, railUnit), orDefault(s.HCAs, railHCAs), orDefault(s.Radix, railRadix)
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	if s.Leaves != 0 || s.Spines != 0 || s.Radix%2 != 0 {
		return nil, fmt.Errorf("%w: rail pods take hosts, HCAs, link, and switches with an even number of ports", errShape)
	}
	half := s.Radix / 2
	units := fattree.CeilDiv(s.Hosts, half)
	leaves := make([][]*Node, units) // by unit and rail
	for u := range leaves {
		for r := range s.HCAs {
			leaves[u] = append(leaves[u], b.addSwitch(fmt.Sprintf("leaf%d_%d", u+1, r+1), tierLeaf, u*s.HCAs+r+1, s.Radix))
		}
	}
	for h := range s.Hosts {
		slot := h - 1 // sm's place is at the end of the first unit
		if h == 0 {
			slot = min(half, s.Hosts) - 1
		} else if h >= half {
			slot = h
		}
		for r := range s.hcas(h) {
			b.cable(b.addHCA(h, r, 1), 1, leaves[slot/half][r], slot%half+1)
		}
	}
	if units <= railTwoLevels {
		return b.railSpines(leaves, half)
	}
	return b.railCores(leaves, half)
}

// railSpines joins the leaves of a few units by as few spines as fit.
func (b *builder) railSpines(leaves [][]*Node, half int) (*Netlist, error) {
	below := len(leaves) * len(leaves[0])
	spines := fattree.Fewest(half, below, 2*half)
	if spines == 0 {
		return nil, fmt.Errorf("%w: %d leaves are too many for spines with %d ports", errShape, below, 2*half)
	}
	for i := range spines {
		spine := b.addSwitch(fmt.Sprintf("spine%d", i+1), tierSpine, i+1, 2*half)
		for _, unit := range leaves {
			for _, leaf := range unit {
				b.bundle(leaf, half+1+i*(half/spines), spine, half/spines)
			}
		}
	}
	return b.netlist()
}

// railCores builds separate spines for each rail, in blocks of up to half units, and joins spines of the same position by
// cores.
func (b *builder) railCores(leaves [][]*Node, half int) (*Netlist, error) {
	rails, units := len(leaves[0]), len(leaves)
	perBlock := min(half, units)
	spines := perBlock // of a rail in a block; leaves have as many cables to each
	for spines < half && half%spines != 0 {
		spines++
	}
	blocks := fattree.CeilDiv(units, perBlock)
	group := fattree.Fewest(half, rails*blocks, 2*half)
	if group == 0 {
		return nil, fmt.Errorf("%w: %d units of %d rails are too many for cores with %d ports", errShape, units, rails, 2*half)
	}
	positions := make([][]*Node, spines) // the spines that share cores
	for r := range rails {
		for i := range blocks * spines {
			spine := b.addSwitch(fmt.Sprintf("spine%d_%d", r+1, i+1), tierSpine, r*blocks*spines+i+1, 2*half)
			positions[i%spines] = append(positions[i%spines], spine)
			block := i / spines * perBlock
			for _, unit := range leaves[block:min(block+perBlock, units)] {
				b.bundle(unit[r], half+1+i%spines*(half/spines), spine, half/spines)
			}
		}
	}
	for at, below := range positions {
		for c := range group {
			core := b.addSwitch(fmt.Sprintf("core%d_%d", at+1, c+1), tierCore, at*group+c+1, 2*half)
			for _, spine := range below {
				b.bundle(spine, half+1+c*(half/group), core, half/group)
			}
		}
	}
	return b.netlist()
}

// bundle joins two switches by the given number of cables, at the lower one from a port on.
func (b *builder) bundle(low *Node, from int, high *Node, cables int) {
	for k := range cables {
		b.cable(low, from+k, high, 0)
	}
}

// addRouters adds routers "rt1", ... of two ports, each cabled by its first port
// to a switch of its own that has a port free, leaves first.
func (b *builder) addRouters(routers int) {
	at := 0
	for i := range routers {
		for at < len(b.switches) && nextFree(b.switches[at]) == len(b.switches[at].Ports) {
			at++
		}
		if at == len(b.switches) {
			if b.err == nil {
				b.err = fmt.Errorf("%w: no switch has a port free for router %d of %d", errShape, i+1, routers)
			}
			return
		}
		rt := b.addNode(ib.NodeRouter, fmt.Sprintf("rt%d", i+1), routerBase+ib.GUID(i+1)<<8, 2)
		b.routers = append(b.routers, rt)
		b.cable(rt, 1, b.switches[at], 0)
		at++
	}
}
