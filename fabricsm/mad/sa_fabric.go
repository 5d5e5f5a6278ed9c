package mad

import "portcullis/fabricsm/ib"

// The records of subnet administration that describe the fabric hold attributes of the subnet management class after the
// fields that name their port or node (IBTA volume 1, 15.2.5). A layout ends with its last field; RecordSize returns the
// length in a table. Fields marked RID identify the record.

// NodeRecord is a node, as one of its ports shows it (attribute 0x0011).
type NodeRecord struct {
	LID             ib.LID   `mad:"0,16"` // RID
	_               reserved `mad:"16,16"`
	NodeInfo        `mad:"32,320"`
	NodeDescription NodeDescription `mad:"352,512"`
}

// PortInfoRecord is a port (attribute 0x0012).
type PortInfoRecord struct {
	EndportLID ib.LID     `mad:"0,16"`     // RID; of a switch that of its port 0
	PortNum    ib.PortNum `mad:"16,8"`     // RID
	Options    uint8      `mad:"24,8,hex"` // see PortInfoRecordFull
	PortInfo   `mad:"32,512"`
}

// PortInfoRecordFull is the bit of PortInfoRecord.Options by which a requester asks for PortInfo as the port sent it.
// Without it the record of a port at extended speed reports QDR in the fields that old clients know.
const PortInfoRecordFull = 0x80

// SLtoVLMappingTableRecord maps the service levels of a port (attribute 0x0013).
type SLtoVLMappingTableRecord struct {
	LID                ib.LID     `mad:"0,16"` // RID
	InputPortNum       ib.PortNum `mad:"16,8"` // RID; 0 for a CA or router
	OutputPortNum      ib.PortNum `mad:"24,8"` // RID; 0 for a CA or router
	_                  reserved   `mad:"32,32"`
	SLtoVLMappingTable `mad:"64,64"`
}

// SwitchInfoRecord is a switch (attribute 0x0014).
type SwitchInfoRecord struct {
	LID        ib.LID   `mad:"0,16"` // RID
	_          reserved `mad:"16,16"`
	SwitchInfo `mad:"32,160"`
}

// LinearForwardingTableRecord is a block of the unicast routes of a switch (attribute
// 0x0015).
type LinearForwardingTableRecord struct {
	LID                   ib.LID   `mad:"0,16"`  // RID
	BlockNum              uint16   `mad:"16,16"` // RID
	_                     reserved `mad:"32,32"`
	LinearForwardingTable `mad:"64,512"`
}

// RandomForwardingTableRecord is a block of the unicast routes of a switch that keeps
// them by LID (attribute 0x0016; obsolete).
type RandomForwardingTableRecord struct {
	LID      ib.LID                    `mad:"0,16"`  // RID
	BlockNum uint16                    `mad:"16,16"` // RID
	_        reserved                  `mad:"32,32"`
	Entry    [16]RandomForwardingEntry `mad:"64,32"`
}

// RandomForwardingEntry is one route.
type RandomForwardingEntry struct {
	LID   ib.LID     `mad:"0,16"`
	Valid bool       `mad:"16,1"`
	LMC   ib.LMC     `mad:"17,3"`
	_     reserved   `mad:"20,4"`
	Port  ib.PortNum `mad:"24,8"`
}

// MulticastForwardingTableRecord is a block of the multicast routes of a switch, for 16
// of its ports (attribute 0x0017).
type MulticastForwardingTableRecord struct {
	LID                      ib.LID   `mad:"0,16"` // RID
	Position                 uint8    `mad:"16,4"` // RID
	_                        reserved `mad:"20,3"`
	BlockNum                 uint16   `mad:"23,9"` // RID
	_                        reserved `mad:"32,32"`
	MulticastForwardingTable `mad:"64,512"`
}

// SMInfoRecord is a subnet manager (attribute 0x0018). Its SM_Key is never sent.
type SMInfoRecord struct {
	LID    ib.LID   `mad:"0,16"` // RID
	_      reserved `mad:"16,16"`
	SMInfo `mad:"32,168"`
}

// LinkRecord is one direction of a link (attribute 0x0020).
type LinkRecord struct {
	FromLID  ib.LID     `mad:"0,16"` // RID
	FromPort ib.PortNum `mad:"16,8"` // RID
	ToPort   ib.PortNum `mad:"24,8"`
	ToLID    ib.LID     `mad:"32,16"`
}

// GUIDInfoRecord is a block of the GUIDs of an end port (attribute 0x0030).
type GUIDInfoRecord struct {
	LID      ib.LID   `mad:"0,16"` // RID
	BlockNum uint8    `mad:"16,8"` // RID
	_        reserved `mad:"24,8"`
	_        reserved `mad:"32,32"`
	GUIDInfo `mad:"64,512"`
}

// PKeyTableRecord is a block of the P_Keys of a port (attribute 0x0033
// P_KeyTableRecord).
type PKeyTableRecord struct {
	LID       ib.LID     `mad:"0,16"`  // RID
	BlockNum  uint16     `mad:"16,16"` // RID
	PortNum   ib.PortNum `mad:"32,8"`  // RID
	_         reserved   `mad:"40,24"`
	PKeyTable `mad:"64,512"`
}

// VLArbitrationTableRecord is half of an arbitration table of a port (attribute
// 0x0036).
type VLArbitrationTableRecord struct {
	LID           ib.LID     `mad:"0,16"` // RID
	OutputPortNum ib.PortNum `mad:"16,8"` // RID
	BlockNum      VLArbHalf  `mad:"24,8"` // RID
	_             reserved   `mad:"32,32"`
	VLArbitration `mad:"64,512"`
}
