// Package topotest builds fabrics for tests: fat trees, chains, tori, random
// graphs, in the port and GUID conventions that the project's netlists use.
package topotest

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Capacities that every generated device has, about those of the ibsim simulator.
const (
	PartitionCap            = 64
	PartitionEnforcementCap = 64
	LinearFDBCap            = 30720
)

const (
	switchBase ib.GUID = 0x0010_0000_0000_0000
	hostBase   ib.GUID = 0x0020_0000_0000_0000
)

// Kit is a fabric under construction. Its builder may be used directly for changes without a method.
type Kit struct {
	topo.Builder
	Hosts []topo.NodeID // in the order of their index

	nextLID ib.LID
}

// SwitchGUID returns the node and port 0 GUID of a switch: tier 1 leaf, 2 spine or aggregation, 3 core; index from 1.
func SwitchGUID(tier, index int) ib.GUID { return switchBase + ib.GUID(tier)<<32 + ib.GUID(index) }

// HostGUID returns the node GUID of host index, from 0; port n has the GUID that is n higher.
func HostGUID(index int) ib.GUID { return hostBase + ib.GUID(index)<<8 }

// Switch adds a switch without cables.
func (k *Kit) Switch(tier, index, ports int) topo.NodeID {
	g := SwitchGUID(tier, index)
	id := k.AddNode(topo.Node{
		GUID: g, SystemImageGUID: g, Type: ib.NodeSwitch, NumPorts: uint8(ports),
		Description:  fmt.Sprintf("switch%d_%d", tier, index),
		PartitionCap: PartitionCap, PartitionEnforcementCap: PartitionEnforcementCap,
		LinearFDBCap: LinearFDBCap, MulticastFDBCap: 1024,
		InboundEnforcementCap: true, OutboundEnforcementCap: true,
	})
	k.endPort(k.PortOf(id, 0), g)
	return id
}

// Host adds the next CA, without cables.
func (k *Kit) Host(ports int) topo.NodeID {
	index := len(k.Hosts)
	g := HostGUID(index)
	id := k.AddNode(topo.Node{
		GUID: g, SystemImageGUID: g, Type: ib.NodeCA, NumPorts: uint8(ports),
		Description: fmt.Sprintf("h%d", index), PartitionCap: PartitionCap,
	})
	for n := 1; n <= ports; n++ {
		k.endPort(k.PortOf(id, ib.PortNum(n)), g+ib.GUID(n))
	}
	k.Hosts = append(k.Hosts, id)
	return id
}

func (k *Kit) endPort(id topo.PortID, g ib.GUID) {
	p := k.Port(id)
	p.GUID, p.State = g, ib.PortActive
	k.SetPort(id, p)
}

// Link cables the lowest free ports of two nodes.
func (k *Kit) Link(a, b topo.NodeID) { k.LinkPorts(a, k.free(a), b, k.free(b)) }

// LinkPorts cables two ports given by number, from 1.
func (k *Kit) LinkPorts(a topo.NodeID, pa int, b topo.NodeID, pb int) {
	x, y := k.PortOf(a, ib.PortNum(pa)), k.PortOf(b, ib.PortNum(pb))
	for _, id := range []topo.PortID{x, y} {
		p := k.Port(id)
		p.State = ib.PortActive
		k.SetPort(id, p)
	}
	k.Connect(x, y)
}

// Cut takes away the cable of a port.
func (k *Kit) Cut(a topo.NodeID, port int) { k.Disconnect(k.PortOf(a, ib.PortNum(port))) }

func (k *Kit) free(id topo.NodeID) int {
	for n := 1; n <= int(k.Node(id).NumPorts); n++ {
		if k.Port(k.PortOf(id, ib.PortNum(n))).Peer == topo.None {
			return n
		}
	}
	panic(fmt.Sprintf("topotest: node %d has no free port", id))
}

// SetLMC sets the LMC of a CA port before LIDs are assigned.
func (k *Kit) SetLMC(id topo.NodeID, port int, lmc ib.LMC) {
	p := k.PortOf(id, ib.PortNum(port))
	v := k.Port(p)
	v.LMC = lmc
	k.SetPort(p, v)
}

// Fabric assigns LIDs, from 1 and in the order of ids, to the end ports that have none, and publishes a snapshot.
func (k *Kit) Fabric() *topo.Fabric {
	f := k.Freeze()
	for i := range f.Ports() {
		id := i
		p := k.Port(id)
		if !f.IsEndPort(id) || p.GUID == 0 || p.LID != 0 {
			continue
		}
		size := ib.LID(1) << p.LMC
		k.nextLID = (k.nextLID + size) &^ (size - 1)
		p.LID = k.nextLID
		k.nextLID += size - 1
		k.SetPort(id, p)
	}
	return k.Freeze()
}
