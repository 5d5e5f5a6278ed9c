package mad

import "portcullis/fabricsm/ib"

// SwitchInfo describes a switch's forwarding capabilities and defaults
// (attribute 0x0012; IBTA volume 1, 14.2.5.4).
type SwitchInfo struct {
	LinearFDBCap                      uint16     `mad:"0,16"`       // LIDs the linear forwarding table can hold
	RandomFDBCap                      uint16     `mad:"16,16"`      // entries of the random table; 0 when tables are linear
	MulticastFDBCap                   uint16     `mad:"32,16"`      // multicast LIDs, from 0xC000
	LinearFDBTop                      ib.LID     `mad:"48,16"`      // highest LID that is forwarded; packets above it are dropped
	DefaultPort                       ib.PortNum `mad:"64,8"`       // for random tables only
	DefaultMulticastPrimaryPort       ib.PortNum `mad:"72,8"`       // egress of unknown multicast that came in elsewhere; NoPort drops it
	DefaultMulticastNotPrimaryPort    ib.PortNum `mad:"80,8"`       // egress of unknown multicast that came in by the primary port
	LifeTimeValue                     ib.ExpTime `mad:"88,5"`       // longest stay of a packet in the switch; above 19: infinite
	PortStateChange                   bool       `mad:"93,1"`       // a port changed state; in a Set, true clears it and false leaves it
	OptimizedSLtoVLMappingProgramming uint8      `mad:"94,2"`       // bit 0: wildcard SLtoVL writes; bit 1: NVIDIA port mask form
	LIDsPerPort                       uint16     `mad:"96,16"`      // for random tables only
	PartitionEnforcementCap           uint16     `mad:"112,16"`     // P_Key entries of each external port; 0: no enforcement
	InboundEnforcementCap             bool       `mad:"128,1"`      // can check P_Keys of packets coming in
	OutboundEnforcementCap            bool       `mad:"129,1"`      // can check P_Keys of packets going out
	FilterRawInboundCap               bool       `mad:"130,1"`      // can drop raw packets coming in
	FilterRawOutboundCap              bool       `mad:"131,1"`      // can drop raw packets going out
	EnhancedPort0                     bool       `mad:"132,1"`      // port 0 behaves as an end port
	_                                 reserved   `mad:"133,11"`     //
	MulticastFDBTop                   ib.LID     `mad:"144,16,hex"` // highest multicast LID forwarded, 0xBFFF: none; if IsMulticastFDBTopSupported
}
