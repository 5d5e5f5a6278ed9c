package main

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
)

// The fabric: two rails of leaves below common spines. HCA r of a host is cabled to rail r.
// The adapters of the managers are cabled to the leaves of the first rail.
const (
	rails        = 2
	hostsPerLeaf = 18
	spines       = 6
	leafPorts    = 36
	firstUplink  = 25 // leaf ports 25 to 30 lead to the spines
	managerPort  = 36 // of the leaf of a manager
	probePort    = 31 // of the first leaf
	maxHosts     = 324
	maxManagers  = 3

	leafGUIDs    ib.GUID = 0x0010_0001_0000_0000
	spineGUIDs   ib.GUID = 0x0010_0002_0000_0000
	hcaGUIDs     ib.GUID = 0x0020_0000_0000_0000
	managerGUIDs ib.GUID = 0x0030_0000_0000_0000
	probeGUID    ib.GUID = 0x0040_0000_0000_0000

	// probe is an adapter of no host. Its link is taken down and up to see that a manager
	// is at work.
	probe = "probe"
)

// hca is an adapter with one port.
type hca struct {
	node  string // its name in the simulator
	guid  ib.GUID
	port  ib.GUID
	leaf  string
	place ib.Place
}

// planned is a host of the plan.
type planned struct {
	id   string
	hcas [rails]hca
}

// plan is the design of the site.
type plan struct {
	hosts    []planned
	leaves   []string
	spines   []string
	managers []string // names of the nodes at which instances attach
	list     *netlist.Netlist
	index    map[string]int // of nodes in list
}

// newPlan returns the design for a number of hosts, a multiple of hostsPerLeaf, and of
// instances.
func newPlan(hosts, instances int) *plan {
	p := &plan{list: &netlist.Netlist{}, index: map[string]int{}}
	leavesPerRail := hosts / hostsPerLeaf
	for m := range instances {
		p.managers = append(p.managers, fmt.Sprintf("sm-%d", m+1))
		p.add(netlist.NewNode(ib.NodeCA, p.managers[m], managerGUIDs+ib.GUID(m+1)<<8, 1))
	}
	for i := range hosts {
		h := planned{id: fmt.Sprintf("host-%03d", i+1)}
		for r := range rails {
			guid := hcaGUIDs + ib.GUID(i+1)<<16 + ib.GUID(r+1)<<8
			leaf := r*leavesPerRail + i/hostsPerLeaf
			h.hcas[r] = hca{
				node: fmt.Sprintf("%s-hca-%d", h.id, r+1), guid: guid, port: guid + 1,
				leaf: leafName(leaf), place: ib.Place{Switch: leafGUID(leaf), Port: ib.PortNum(i%hostsPerLeaf + 1)},
			}
			p.add(netlist.NewNode(ib.NodeCA, h.hcas[r].node, guid, 1))
		}
		p.hosts = append(p.hosts, h)
	}
	for l := range rails * leavesPerRail {
		p.leaves = append(p.leaves, leafName(l))
		p.add(netlist.NewNode(ib.NodeSwitch, leafName(l), leafGUID(l), leafPorts))
	}
	for s := range spines {
		p.spines = append(p.spines, fmt.Sprintf("spine-%d", s+1))
		p.add(netlist.NewNode(ib.NodeSwitch, p.spines[s], spineGUIDs+ib.GUID(s+1), max(leafPorts, len(p.leaves))))
	}
	p.add(netlist.NewNode(ib.NodeCA, probe, probeGUID, 1))
	p.cable(probe, 1, p.leaves[0], probePort)
	for _, h := range p.hosts {
		for _, a := range h.hcas {
			p.cable(a.node, 1, a.leaf, a.place.Port)
		}
	}
	for l, leaf := range p.leaves {
		for s, spine := range p.spines {
			p.cable(leaf, firstUplink+ib.PortNum(s), spine, ib.PortNum(l+1))
		}
	}
	for m, name := range p.managers {
		p.cable(name, 1, p.leaves[m%leavesPerRail], managerPort-ib.PortNum(m/leavesPerRail))
	}
	return p
}

func leafName(i int) string  { return fmt.Sprintf("leaf-%02d", i+1) }
func leafGUID(i int) ib.GUID { return leafGUIDs + ib.GUID(i+1) }

func (p *plan) add(n netlist.Node) {
	p.index[n.Name] = len(p.list.Nodes)
	p.list.Nodes = append(p.list.Nodes, n)
}

// cable connects two ports.
func (p *plan) cable(a string, aPort ib.PortNum, b string, bPort ib.PortNum) {
	for _, end := range []struct {
		node, peer string
		port, far  ib.PortNum
	}{{a, b, aPort, bPort}, {b, a, bPort, aPort}} {
		port := &p.find(end.node).Ports[end.port]
		port.Peer, port.PeerPort = end.peer, end.far
		port.Link = netlist.Link{Width: 2, Speed: 4}
	}
}

// inventory returns the inventory and the cables as YAML. ek returns the digest of a host's
// endorsement key.
func (p *plan) inventory(ek func(id string) string) (hosts, cables string) {
	var h, c strings.Builder
	h.WriteString("hosts:\n")
	c.WriteString("cables:\n")
	for _, host := range p.hosts {
		fmt.Fprintf(&h, "  - id: %s\n    ek_sha256: %s\n    hcas:\n", host.id, ek(host.id))
		for _, a := range host.hcas {
			fmt.Fprintf(&h, "      - {node_guid: %v, system_image_guid: %v, ports: [{port: 1, guid: %v}]}\n", a.guid, a.guid, a.port)
			fmt.Fprintf(&c, "  - {guid: %v, switch: %v, port: %d}\n", a.port, a.place.Switch, a.place.Port)
		}
	}
	return h.String(), c.String()
}

// end returns the end port of an adapter in the simulator.
func (a *hca) end() sim.Endpoint { return sim.Endpoint{Node: a.node, Port: 1} }

// gate returns the switch port that an adapter is cabled to.
func (a *hca) gate() sim.Endpoint { return sim.Endpoint{Node: a.leaf, Port: a.place.Port} }

// connected reports whether cables lead from one node to another past what is cut.
func (p *plan) connected(c cut, from, to string) bool {
	seen, next := map[string]bool{from: true}, []string{from}
	if c.hits(sim.Endpoint{Node: from, Port: 1}) || c.hits(sim.Endpoint{Node: to, Port: 1}) {
		return false
	}
	for len(next) > 0 && !seen[to] {
		name := next[0]
		next = next[1:]
		for i, port := range p.find(name).Ports {
			out := c.hits(sim.Endpoint{Node: name, Port: ib.PortNum(i)}) || c.hits(sim.Endpoint{Node: port.Peer, Port: port.PeerPort})
			if port.Peer != "" && !out && !seen[port.Peer] {
				seen[port.Peer] = true
				next = append(next, port.Peer)
			}
		}
	}
	return seen[to]
}

// find returns the node with a name, which the plan has.
func (p *plan) find(name string) *netlist.Node { return &p.list.Nodes[p.index[name]] }
