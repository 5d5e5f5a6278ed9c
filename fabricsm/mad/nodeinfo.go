package mad

import "portcullis/fabricsm/ib"

// NodeInfo describes a node (attribute 0x0011; IBTA volume 1, 14.2.5.3). It is read only, and answered in any link state
// above Down.
type NodeInfo struct {
	BaseVersion     uint8       `mad:"0,8"`        // MAD base version, 1
	ClassVersion    uint8       `mad:"8,8"`        // subnet management class version, 1
	NodeType        ib.NodeType `mad:"16,8"`       // CA, switch or router
	NumPorts        uint8       `mad:"24,8"`       // physical ports, without switch port 0
	SystemImageGUID ib.GUID     `mad:"32,64"`      // shared by the nodes of one system; 0: not given
	NodeGUID        ib.GUID     `mad:"96,64"`      // GUID of the node
	PortGUID        ib.GUID     `mad:"160,64"`     // GUID of the port asked; of a switch always that of port 0
	PartitionCap    uint16      `mad:"224,16"`     // P_Key table entries of a CA or router port or switch port 0, at least 1
	DeviceID        uint16      `mad:"240,16,hex"` // device, given by the vendor
	Revision        uint32      `mad:"256,32,hex"` // device revision, given by the vendor
	LocalPortNum    ib.PortNum  `mad:"288,8"`      // port by which the SMP came in
	VendorID        uint32      `mad:"296,24,hex"` // OUI of the vendor
}
