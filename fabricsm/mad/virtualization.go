package mad

import "portcullis/fabricsm/ib"

// VirtualizationInfo has the capabilities of a port for virtual ports (NVIDIA attribute 0xFFB0).
type VirtualizationInfo struct {
	VPortCap               uint16   `mad:"0,16"`     // virtual ports it can have
	VPortIndexTop          uint16   `mad:"16,16"`    // highest index in use
	VirtualizationEnable   bool     `mad:"32,1"`     //
	VClientReregister      bool     `mad:"33,1"`     // in a Set, asks virtual ports to renew their registrations
	VPortStateChange       bool     `mad:"34,1"`     // a virtual port changed state; in a Set, true clears it
	_                      reserved `mad:"35,13"`    //
	VirtualizationRevision uint8    `mad:"48,8"`     // of the interface
	CapabilityMask         uint8    `mad:"56,8,hex"` //
	_                      reserved `mad:"64,448"`   //
}

// VPortInfo is state and settings of a virtual port (NVIDIA attribute 0xFFB1).
// The modifier is its index.
type VPortInfo struct {
	VPortState       ib.PortState `mad:"0,4"`
	ClientReregister bool         `mad:"4,1"`
	LIDRequired      bool         `mad:"5,1"` // the virtual port has a LID of its own
	_                reserved     `mad:"6,2"`
	GUIDCap          uint8        `mad:"8,8"`       // entries of VPortGUIDInfo
	CapabilityMask   uint16       `mad:"16,16,hex"` // 0 CM, 1 SNMP, 2 device management, 3 vendor class, 4 boot management, 5 IsSM, 6 IsSMdisabled
	PKeyViolations   uint16       `mad:"32,16"`     // saturating count
	QKeyViolations   uint16       `mad:"48,16"`     // saturating count
	VPortLID         ib.LID       `mad:"64,16"`     // if LIDRequired
	LIDByVPortIndex  uint16       `mad:"80,16"`     // else the virtual port whose LID it shares
	VPortGUID        ib.GUID      `mad:"96,64"`
	PortProfile      uint64       `mad:"160,64,hex"`
	_                reserved     `mad:"224,288"`
}

// VNodeInfo is the node that a virtual port belongs to (NVIDIA attribute
// 0xFFB2). The modifier is the index of the virtual port.
type VNodeInfo struct {
	PartitionCap uint16     `mad:"0,16"`  // P_Key table entries of a virtual port
	LocalPortNum ib.PortNum `mad:"16,8"`  // port of the virtual node
	NumPorts     uint8      `mad:"24,8"`  // virtual ports of the virtual node
	VNodeGUID    ib.GUID    `mad:"32,64"` //
	_            reserved   `mad:"96,416"`
}
