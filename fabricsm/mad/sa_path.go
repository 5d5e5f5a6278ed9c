package mad

import "portcullis/fabricsm/ib"

// PathRecord is a path between two ports (attribute 0x0035; IBTA volume 1, 15.2.5.16). In a request, the fields that the
// component mask selects are conditions on the path.
type PathRecord struct {
	ServiceID              ib.ServiceID `mad:"0,64"` // what the path is for; only QoS policy reads it
	DGID                   ib.GID       `mad:"64,128"`
	SGID                   ib.GID       `mad:"192,128"`
	DLID                   ib.LID       `mad:"320,16"`
	SLID                   ib.LID       `mad:"336,16"`
	RawTraffic             bool         `mad:"352,1"` // a path for raw packets; P_Key 0
	_                      reserved     `mad:"353,3"`
	FlowLabel              uint32       `mad:"356,20,hex"`
	HopLimit               uint8        `mad:"376,8"`
	TClass                 uint8        `mad:"384,8"`
	Reversible             bool         `mad:"392,1"`  // the path back is the same with ends exchanged
	NumbPath               uint8        `mad:"393,7"`  // most paths wanted by a GetTable for each pair of GIDs
	PKey                   ib.PKey      `mad:"400,16"` // as the source has it
	QoSClass               uint16       `mad:"416,12"`
	SL                     ib.SL        `mad:"428,4"`
	MTUSelector            Selector     `mad:"432,2"`
	MTU                    ib.MTU       `mad:"434,6"`
	RateSelector           Selector     `mad:"440,2"`
	Rate                   ib.Rate      `mad:"442,6"`
	PacketLifeTimeSelector Selector     `mad:"448,2"`
	PacketLifeTime         ib.ExpTime   `mad:"450,6"`
	Preference             uint8        `mad:"456,8"` // 0 best
	_                      reserved     `mad:"464,48"`
}

// MultiPathRecord asks for paths between two sets of ports (attribute 0x003A; IBTA
// volume 1, 15.2.5.20). SGIDCount GIDs of sources and DGIDCount of destinations follow
// it, see MultiPathGID. The answer are PathRecords.
type MultiPathRecord struct {
	RawTraffic             bool       `mad:"0,1"`
	_                      reserved   `mad:"1,3"`
	FlowLabel              uint32     `mad:"4,20,hex"`
	HopLimit               uint8      `mad:"24,8"`
	TClass                 uint8      `mad:"32,8"`
	Reversible             bool       `mad:"40,1"`
	NumbPath               uint8      `mad:"41,7"` // most paths wanted
	PKey                   ib.PKey    `mad:"48,16"`
	QoSClass               uint16     `mad:"64,12"`
	SL                     ib.SL      `mad:"76,4"`
	MTUSelector            Selector   `mad:"80,2"`
	MTU                    ib.MTU     `mad:"82,6"`
	RateSelector           Selector   `mad:"88,2"`
	Rate                   ib.Rate    `mad:"90,6"`
	PacketLifeTimeSelector Selector   `mad:"96,2"`
	PacketLifeTime         ib.ExpTime `mad:"98,6"`
	ServiceID8MSB          uint8      `mad:"104,8,hex"` // see ServiceID
	IndependenceSelector   uint8      `mad:"112,2"`     // 1: paths as fault independent as possible
	_                      reserved   `mad:"114,6"`
	SGIDCount              uint8      `mad:"120,8"`
	DGIDCount              uint8      `mad:"128,8"`
	ServiceID56LSB         uint64     `mad:"136,56,hex"`
}

// ServiceID joins the two parts of the field.
func (r *MultiPathRecord) ServiceID() ib.ServiceID {
	return ib.ServiceID(uint64(r.ServiceID8MSB)<<56 | r.ServiceID56LSB)
}

// multiPathHeader is where the GIDs of a MultiPathRecord begin.
const multiPathHeader = 24

// MultiPathGID is GID i of those that follow a MultiPathRecord, sources first; p begins
// with the record. It is false if p ends before it.
func MultiPathGID(p []byte, i int) (ib.GID, bool) {
	const size = 16
	if i < 0 || i >= (len(p)-multiPathHeader)/size {
		return ib.GID{}, false
	}
	return ib.GID(p[multiPathHeader+i*size:]), true
}

// TraceRecord is one node on a path (attribute 0x0039; IBTA volume 1, 15.2.5.19). The identifiers distinguish nodes and
// ports without being their GUIDs.
type TraceRecord struct {
	GIDPrefix    ib.Prefix   `mad:"0,64"`
	IDGeneration uint16      `mad:"64,16"` // changes when identifiers do
	_            reserved    `mad:"80,8"`
	NodeType     ib.NodeType `mad:"88,8"`
	NodeID       uint64      `mad:"96,64,hex"`
	ChassisID    uint64      `mad:"160,64,hex"`
	EntryPortID  uint64      `mad:"224,64,hex"`
	ExitPortID   uint64      `mad:"288,64,hex"`
	EntryPort    ib.PortNum  `mad:"352,8"` // 0 at the source
	ExitPort     ib.PortNum  `mad:"360,8"` // 0 at the destination
}
