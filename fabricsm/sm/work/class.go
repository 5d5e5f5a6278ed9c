// Package work holds what a subnet manager has to do next: pieces of work that wait, requests that are out, and timers.
//
// A piece of work is a [Ref]: a [Class] and the node or port that it is about. The [Queue] knows what waits, by urgency.
// The [Window] knows the requests that are out, and bounds them. [Timers] knows what becomes due, and when. None of them
// knows what a piece of work does, or what a node is.
package work

import "portcullis/fabricsm/topo"

// Class is a kind of work on one node or one port, in order of urgency.
type Class uint8

// Classes.
const (
	Root   Class = iota // node: NodeInfo over no hop, the beginning of everything
	Switch              // node: SwitchInfo, read and write
	Info                // port: read PortInfo. Before probes: a switch that shows all its cables is not asked from the far side, too.
	Probe               // port: NodeInfo of the device at the other end of the cable
	SMInfo              // port: SMInfo of another subnet manager
	PKey                // port: P_Key table, read and write
	LFT                 // node: linear forwarding table, read and write
	SLtoVL              // port: SL-to-VL tables, read and write
	Set                 // port: write PortInfo
	Desc                // node: NodeDescription
	MFT                 // node: multicast forwarding table, read and write
	GUID                // port: GUIDInfo, read and write
	VLArb               // port: VL arbitration tables, read and write
	Vendor              // port: MlnxExtendedPortInfo
	Notice              // port: Notice, read and taken away
)

const (
	// NumClasses is how many classes there are.
	NumClasses = int(Notice) + 1

	// urgent is the level before all classes: a P_Key is to be taken away.
	urgent = 0
	levels = 1 + NumClasses
)

// IsOnNode reports whether work of a class is about a node.
func (cl Class) IsOnNode() bool {
	return cl == Root || cl == Switch || cl == LFT || cl == Desc || cl == MFT
}

// Discovers reports whether work of a class may find nodes or links.
func (cl Class) Discovers() bool { return cl <= Probe }

// discovering has the bits of these classes.
const discovering uint16 = 1<<(Probe+1) - 1

func (cl Class) level() int { return 1 + int(cl) }

func (cl Class) bit() uint16 { return 1 << cl }

// Ref names one piece of work: a class and a node or port id.
type Ref struct {
	Class Class
	ID    int32
}

// OnNode names work on a node.
func OnNode(cl Class, id topo.NodeID) Ref { return Ref{cl, int32(id)} }

// OnPort names work on a port.
func OnPort(cl Class, id topo.PortID) Ref { return Ref{cl, int32(id)} }

// Node returns the node that work is about, if its class is one of nodes.
func (x Ref) Node() topo.NodeID { return topo.NodeID(x.ID) }

// Port returns the port that work is about, if its class is one of ports.
func (x Ref) Port() topo.PortID { return topo.PortID(x.ID) }
