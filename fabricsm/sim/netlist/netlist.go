package netlist

import (
	"portcullis/fabricsm/ib"
)

// Limits of a file. They are above those of ibsim.
const (
	maxSize     = 64 << 20 // bytes
	maxNodes    = 100_000
	maxPorts    = 254 // of one node
	maxName     = 31  // bytes of a node name, as a client can send them
	maxProblems = 50  // reported at once
)

// Netlist is a described fabric, in the order of the file. The first CA is
// where a client that names no node attaches.
type Netlist struct {
	Nodes []Node
}

// Node is one switch, CA or router.
type Node struct {
	Type            ib.NodeType
	Name            string  // unique; its name for cables and clients
	Description     string  // NodeDescription
	GUID            ib.GUID // node GUID; port p of a CA or router has GUID+p
	SystemImageGUID ib.GUID
	VendorID        uint32
	DeviceID        uint16
	EnhancedPort0   bool // of a switch
	Ports           []Port
	Line            int // of its header in the file, 0 if generated
}

// Port is one port; Node.Ports[p] is port number p, so Ports[0] is the
// management port of a switch and unused in a CA or router.
type Port struct {
	Peer     string     // name of the node at the other end; empty: no cable
	PeerPort ib.PortNum // its port
	LID      ib.LID     // assigned from the start; 0: none
	LMC      ib.LMC
	Link     Link
}

// Link has the capabilities of a port, as masks of the enabled values.
type Link struct {
	Width    ib.LinkWidth
	Speed    ib.LinkSpeed
	SpeedExt ib.LinkSpeedExt
	FDR10    bool // the vendor's speed between QDR and FDR

	SpeedExt2 ib.LinkSpeedExt2
}

// defaultLink is the link of a port without a specification: 4x SDR.
var defaultLink = Link{Width: 2, Speed: 1}

// NumPorts is the number of ports without port 0 of a switch.
func (n *Node) NumPorts() int { return len(n.Ports) - 1 }

// PortGUID is the GUID of port p: that of the node for every port of a switch.
func (n *Node) PortGUID(p ib.PortNum) ib.GUID {
	if n.Type == ib.NodeSwitch {
		return n.GUID
	}
	return n.GUID + ib.GUID(p)
}

// Find returns the node with a name, or failing that a description, or nil.
func (l *Netlist) Find(name string) *Node {
	for i := range l.Nodes {
		if l.Nodes[i].Name == name {
			return &l.Nodes[i]
		}
	}
	for i := range l.Nodes {
		if l.Nodes[i].Description == name {
			return &l.Nodes[i]
		}
	}
	return nil
}

// NewNode creates a node with the given number of ports, none of them cabled; its description is its name.
func NewNode(t ib.NodeType, name string, guid ib.GUID, ports int) Node {
	n := Node{Type: t, Name: name, Description: name, GUID: guid, SystemImageGUID: guid, Ports: make([]Port, ports+1)}
	for i := range n.Ports {
		n.Ports[i].Link = defaultLink
	}
	return n
}
