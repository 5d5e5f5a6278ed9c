package netlist

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
)

// GUIDs of generated nodes are a function of kind and index, so that two runs produce the same file.
const (
	switchBase ib.GUID = 0x0010_0000_0000_0000 // + tier<<32 + index
	routerBase ib.GUID = 0x0030_0000_0000_0000 // + router<<8; port GUID = node GUID + port
	caBase     ib.GUID = 0x0020_0000_0000_0000 // + HCA<<32 + host<<8; port GUID = node GUID + port
)

// Tiers of generated switches.
const (
	tierLeaf  = 1
	tierSpine = 2
	tierCore  = 3
)

// builder puts a fabric together. Hosts come first in the file, because a
// client that names no node lands on the first port of it.
type builder struct {
	link     Link
	hosts    []*Node
	switches []*Node
	routers  []*Node
	wanted   int   // routers
	err      error // the first problem; the rest follows from it
}

func (b *builder) addNode(t ib.NodeType, name string, guid ib.GUID, ports int) *Node {
	if ports > maxPorts && b.err == nil {
		b.err = fmt.Errorf("node %s: %d ports, the most is %d", name, ports, maxPorts)
		ports = maxPorts
	}
	n := new(NewNode(t, name, guid, ports))
	return n
}

func (b *builder) addSwitch(name string, tier, index, ports int) *Node {
	n := b.addNode(ib.NodeSwitch, name, switchBase+ib.GUID(tier)<<32+ib.GUID(index), ports)
	b.switches = append(b.switches, n)
	return n
}

// hostName is "sm" for the first host and "h1", "h2", ... for the others.
func hostName(index int) string {
	if index == 0 {
		return "sm"
	}
	return fmt.Sprintf("h%d", index)
}

// addHCA adds HCA number hca, from 0, of a host. The first is called like the
// host, the others "h1-2", "h1-3", ...
func (b *builder) addHCA(host, hca, ports int) *Node {
	name := hostName(host)
	if hca > 0 {
		name = fmt.Sprintf("%s-%d", name, hca+1)
	}
	n := b.addNode(ib.NodeCA, name, caBase+ib.GUID(hca)<<32+ib.GUID(host)<<8, ports)
	b.hosts = append(b.hosts, n)
	return n
}

// nextFree is the lowest port from 1 without a cable.
func nextFree(n *Node) int {
	for p := 1; p < len(n.Ports); p++ {
		if n.Ports[p].Peer == "" {
			return p
		}
	}
	return len(n.Ports)
}

// cable joins two ports; port 0 means the next free one.
func (b *builder) cable(x *Node, px int, y *Node, py int) {
	if px == 0 {
		px = nextFree(x)
	}
	if py == 0 {
		py = nextFree(y)
	}
	if b.err != nil {
		return
	}
	for _, end := range []struct {
		n *Node
		p int
	}{{x, px}, {y, py}} {
		switch {
		case end.p >= len(end.n.Ports):
			b.err = fmt.Errorf("node %s has no port %d for another cable: use switches with more ports", end.n.Name, end.p)
			return
		case end.n.Ports[end.p].Peer != "":
			b.err = fmt.Errorf("port %d of node %s is needed twice: use switches with more ports", end.p, end.n.Name)
			return
		}
	}
	x.Ports[px] = Port{Peer: y.Name, PeerPort: ib.PortNum(py), Link: b.link}
	y.Ports[py] = Port{Peer: x.Name, PeerPort: ib.PortNum(px), Link: b.link}
}

func (b *builder) netlist() (*Netlist, error) {
	b.addRouters(b.wanted)
	if b.err != nil {
		return nil, b.err
	}
	l := &Netlist{}
	for _, n := range slices.Concat(b.hosts, b.routers, b.switches) {
		l.Nodes = append(l.Nodes, *n)
	}
	return l, nil
}
