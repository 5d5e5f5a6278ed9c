package topo

import (
	"iter"
	"sort"

	"portcullis/fabricsm/ib"
)

// NodeID numbers the nodes of a fabric densely from 0. It stays with a node
// for the life of the Builder, also while the node is gone.
type NodeID int32

// PortID numbers the ports of a fabric densely from 0, switch port 0 and one
// unused slot per CA included. Port i of a node has id Node.FirstPort + i.
type PortID int32

// None is the id of no node and no port.
const None = -1

// Node is a switch, CA or router as it described itself in NodeInfo and
// SwitchInfo.
type Node struct {
	GUID            ib.GUID
	SystemImageGUID ib.GUID
	Type            ib.NodeType // 0: a tombstone, the node has been removed
	BaseVersion     uint8       // of the MADs it speaks
	ClassVersion    uint8       // of those of subnet management
	NumPorts        uint8       // external ports, switch port 0 not counted
	Description     string
	FirstPort       PortID // slot of port 0; ports follow up to NumPorts
	VendorID        uint32 // OUI
	DeviceID        uint16 // by the vendor
	Revision        uint32 // by the vendor

	PartitionCap            uint16 // P_Key entries of a CA port or of switch port 0, at least 1
	LinearFDBCap            uint16 // switch: entries of the linear forwarding table, so LIDs below it
	MulticastFDBCap         uint16 // switch: MLIDs from 0xC000 on
	PartitionEnforcementCap uint16 // switch: P_Key entries of each external port, 0: cannot enforce
	InboundEnforcementCap   bool   // switch: can check packets that enter by an external port
	OutboundEnforcementCap  bool   // switch: can check packets that leave by an external port
	EnhancedPort0           bool   // switch: port 0 behaves like a CA port
}

// Port is one port as PortInfo described it, and the cable seen on it.
type Port struct {
	Node NodeID
	Num  ib.PortNum
	// Width and speed that the port supports and has enabled, to see links that run below them: a mask, and the fastest
	// speed.
	WidthOffered ib.LinkWidth
	SpeedOffered ib.Speed

	GUID ib.GUID // end ports only (CA and router ports, switch port 0); 0: not read yet
	LID  ib.LID  // base LID of an end port, 0: none
	LMC  ib.LMC
	// State is the logical state last read; PortNop means not read yet.
	State ib.PortState
	Peer  PortID // the other end of the cable, None without one

	MTUCap      ib.MTU
	NeighborMTU ib.MTU
	VLCap       ib.VLCap
	Width       ib.LinkWidth
	Speed       ib.Speed
	Phys        ib.PhysState // physical state last read
}

// Rate returns the nominal data rate of the port's link in Mb/s, as links are sold: 4x EDR is 100000. It is 0 without a
// link.
func (p *Port) Rate() int { return p.Width.Lanes() * p.Speed.LaneRate() }

// Fabric is an immutable snapshot. The slices and pointers it hands out are
// shared: they must not be written to.
type Fabric struct {
	nodes    Pages[Node]
	ports    Pages[Port]
	byGUID   order[NodeID] // live nodes
	switches []NodeID      // live switches by (GUID, id)
	endPorts order[PortID] // live end ports with a GUID
}

// Nodes visits all nodes by id, tombstones (Type 0) included.
func (f *Fabric) Nodes() iter.Seq2[NodeID, *Node] { return all[NodeID](&f.nodes) }

// Ports visits all ports by id, those of tombstones and the unused slot 0 of
// CAs included.
func (f *Fabric) Ports() iter.Seq2[PortID, *Port] { return all[PortID](&f.ports) }

// NumNodes returns the number of node ids, tombstones included.
func (f *Fabric) NumNodes() int { return f.nodes.n }

// NumPorts returns the number of port ids.
func (f *Fabric) NumPorts() int { return f.ports.n }

// Node returns the node with an id.
func (f *Fabric) Node(id NodeID) *Node { return f.nodes.at(int32(id)) }

// Port returns the port with an id.
func (f *Fabric) Port(id PortID) *Port { return f.ports.at(int32(id)) }

// NodeOf returns the node that a port belongs to.
func (f *Fabric) NodeOf(id PortID) *Node { return f.Node(f.Port(id).Node) }

// PortOf returns the id of a port by its number, None if the node has no such port or is gone.
func (f *Fabric) PortOf(id NodeID, num ib.PortNum) PortID { return portOf(f.Node(id), num) }

// ByGUID returns the ids of all live nodes in the order of their GUIDs, the order for output. It creates a slice: call it
// once.
func (f *Fabric) ByGUID() []NodeID { return f.byGUID.all() }

// Switches returns the ids of all live switches in the order of their GUIDs.
func (f *Fabric) Switches() []NodeID { return f.switches }

// EndPorts returns the ids of all live end ports whose GUID is known (CA and router ports, switch port 0) in the order of
// their GUIDs. It creates a slice: call it once.
func (f *Fabric) EndPorts() []PortID { return f.endPorts.all() }

// NodeByGUID returns the live node with a GUID, None if there is none. If several nodes claim the GUID, it returns the one
// found first (lowest id).
func (f *Fabric) NodeByGUID(g ib.GUID) NodeID {
	return f.byGUID.first(f.nodeGUID, g)
}

// PortByGUID returns the end port with a GUID, None if there is none. If several ports claim the GUID, it returns the one
// with the lowest id. Decisions about access must use [Fabric.PortsByGUID] and [Fabric.PlaceOf].
func (f *Fabric) PortByGUID(g ib.GUID) PortID {
	if p := f.PortsByGUID(g); len(p) > 0 {
		return p[0]
	}
	return None
}

// PortsByGUID returns every end port that claims a GUID. If there is more than one, a GUID is false or cloned.
func (f *Fabric) PortsByGUID(g ib.GUID) []PortID {
	return f.endPorts.with(f.portGUID, g)
}

// IsEndPort reports whether a port is addressed by LIDs: a CA or router port,
// or port 0 of a switch. Ports of tombstones are not.
func (f *Fabric) IsEndPort(id PortID) bool { return isEndNum(f.NodeOf(id).Type, f.Port(id).Num) }

// LinkUp returns the other end of a port's cable, None when there is no cable or either end is Down.
func (f *Fabric) LinkUp(id PortID) PortID {
	p := f.Port(id)
	if p.Peer == None || p.State == ib.PortDown || f.Port(p.Peer).State == ib.PortDown {
		return None
	}
	return p.Peer
}

// SwitchPortOf returns the external switch port that an end port is cabled to, None for switch port 0, without a cable, and
// when the other end is no switch.
func (f *Fabric) SwitchPortOf(id PortID) PortID {
	if !f.IsEndPort(id) {
		return None
	}
	peer := f.Port(id).Peer
	if peer == None || f.NodeOf(peer).Type != ib.NodeSwitch {
		return None
	}
	return peer
}

// PlaceOf returns the place where an end port is cabled, the zero Place when [Fabric.SwitchPortOf] finds no switch port.
func (f *Fabric) PlaceOf(id PortID) ib.Place {
	peer := f.SwitchPortOf(id)
	if peer == None {
		return ib.Place{}
	}
	return ib.Place{Switch: f.NodeOf(peer).GUID, Port: f.Port(peer).Num}
}

// PortAt returns the end port cabled to a place, None if there is none. A switch GUID that several switches claim names no
// place. A CA that claims it does not matter.
func (f *Fabric) PortAt(p ib.Place) PortID {
	sw := f.onlySwitch(p.Switch)
	if sw == None || p.Port == 0 {
		return None
	}
	port := f.PortOf(sw, p.Port)
	if port == None {
		return None
	}
	peer := f.Port(port).Peer
	if peer == None || !f.IsEndPort(peer) {
		return None
	}
	return peer
}

// onlySwitch returns the switch with a GUID if exactly one claims it.
func (f *Fabric) onlySwitch(g ib.GUID) NodeID {
	guid := func(i int) ib.GUID { return f.Node(f.switches[i]).GUID }
	i := sort.Search(len(f.switches), func(i int) bool { return guid(i) >= g })
	if i == len(f.switches) || guid(i) != g || i+1 < len(f.switches) && guid(i+1) == g {
		return None
	}
	return f.switches[i]
}

func portOf(n *Node, num ib.PortNum) PortID {
	if n.Type == 0 || uint8(num) > n.NumPorts {
		return None
	}
	return n.FirstPort + PortID(num)
}

// isEndNum reports whether nodes of a type have an end port with a number.
func isEndNum(t ib.NodeType, num ib.PortNum) bool {
	switch t {
	case ib.NodeSwitch:
		return num == 0
	case ib.NodeCA, ib.NodeRouter:
		return num != 0
	default:
		return false
	}
}

// How orders compare and choose. An id that this snapshot did not know yet is not
// asked for its GUID.

func (f *Fabric) nodeGUID(id NodeID) ib.GUID { return f.Node(id).GUID }

func (f *Fabric) portGUID(id PortID) ib.GUID { return f.Port(id).GUID }

func (f *Fabric) lives(id NodeID) bool { return int(id) < f.nodes.n && f.Node(id).Type != 0 }

func (f *Fabric) isSwitch(id NodeID) bool {
	return int(id) < f.nodes.n && f.Node(id).Type == ib.NodeSwitch
}

// listed reports whether a port is a live end port with a GUID.
func (f *Fabric) listed(id PortID) bool {
	return int(id) < f.ports.n && f.Port(id).GUID != 0 && f.IsEndPort(id)
}
