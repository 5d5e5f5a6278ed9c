package netlist

import (
	"fmt"

	"portcullis/fabricsm/fattree"
)

// FatTree2 generates leaves "leaf1", ... below spines "spine1", ...: half of
// the ports of a leaf go down, half up, and there are as few spines as fit,
// unless the shape says how many switches there are. The HCAs of a host are
// cabled to consecutive leaves, so that a host survives the loss of one.
func FatTree2(s Shape) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	half := s.Radix / 2
	leaves := orDefault(s.Leaves, fattree.CeilDiv(s.cas(), half))
	spines := orDefault(s.Spines, fattree.Fewest(half, leaves, s.Radix))
	switch {
	case spines == 0:
		return nil, fmt.Errorf("%w: %d HCAs are too many for two levels of switches with %d ports", errShape, s.cas(), s.Radix)
	case spines > half || s.cas() > leaves*half:
		return nil, fmt.Errorf("%w: %d HCAs below %d leaves with %d spines, but a leaf has only %d ports each way", errShape, s.cas(), leaves, spines, half)
	}
	for i := range leaves {
		b.addSwitch(fmt.Sprintf("leaf%d", i+1), tierLeaf, i+1, s.Radix)
	}
	for i := range spines {
		b.addSwitch(fmt.Sprintf("spine%d", i+1), tierSpine, i+1, s.Radix)
	}
	b.attachHosts(&s, b.switches[:leaves], half)
	for _, leaf := range b.switches[:leaves] {
		for port, to := range fattree.Uplinks(s.Radix, spines) {
			b.cable(leaf, port, b.switches[leaves+to], 0)
		}
	}
	return b.netlist()
}

// attachHosts fills the leaves: with one HCA to a host leaf after leaf, with
// several each HCA on the leaf after that of the one before.
func (b *builder) attachHosts(s *Shape, leaves []*Node, half int) {
	perLeaf := half
	if s.Leaves != 0 || s.HCAs > 1 {
		perLeaf = fattree.CeilDiv(s.Hosts, len(leaves))
	}
	for h := range s.Hosts {
		for c := range s.hcas(h) {
			b.cable(b.addHCA(h, c, 1), 1, leaves[(h/perLeaf+c)%len(leaves)], 0)
		}
	}
}

// FatTree3 generates pods of radix/2 leaves and radix/2 aggregation switches with cores on top: aggregation switch i of
// every pod reaches core group i. A group has the smallest number of cores with full bisection. Hosts have one HCA.
func FatTree3(s Shape) (*Netlist, error) {
	b, err := s.prepare()
	if err != nil {
		return nil, err
	}
	if s.HCAs != 1 || s.Leaves != 0 || s.Spines != 0 {
		return nil, fmt.Errorf("%w: a three-level tree takes hosts, radix and link only", errShape)
	}
	t, err := fattree.ThreeLevels(s.Hosts, s.Radix)
	if err != nil {
		return nil, fmt.Errorf("%w: %d hosts are too many for three levels of switches with %d ports", errShape, s.Hosts, s.Radix)
	}
	cores := make([][]*Node, t.Half())
	for g := range cores {
		for c := range t.Cores {
			cores[g] = append(cores[g], b.addSwitch(fmt.Sprintf("core%d_%d", g+1, c+1), tierCore, g*t.Cores+c+1, s.Radix))
		}
	}
	for p := range t.Pods {
		b.addPod(&s, p, t.LeavesOf(p), cores)
	}
	return b.netlist()
}

func (b *builder) addPod(s *Shape, pod, leaves int, cores [][]*Node) {
	half := len(cores)
	down := make([]*Node, leaves)
	up := make([]*Node, half)
	for i := range down {
		down[i] = b.addSwitch(fmt.Sprintf("leaf%d_%d", pod+1, i+1), tierLeaf, pod*half+i+1, s.Radix)
	}
	for i := range up {
		up[i] = b.addSwitch(fmt.Sprintf("agg%d_%d", pod+1, i+1), tierSpine, pod*half+i+1, s.Radix)
	}
	for _, leaf := range down {
		for range half {
			if h := len(b.hosts); h < s.Hosts {
				b.cable(b.addHCA(h, 0, 1), 1, leaf, 0)
			}
		}
		for port, to := range fattree.Uplinks(s.Radix, half) {
			b.cable(leaf, port, up[to], 0)
		}
	}
	for g, agg := range up {
		for port, to := range fattree.Uplinks(s.Radix, len(cores[g])) {
			b.cable(agg, port, cores[g][to], 0)
		}
	}
}
