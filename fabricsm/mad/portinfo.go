package mad

import "portcullis/fabricsm/ib"

// PortInfo is state and settings of a port (attribute 0x0015; IBTA volume 1, 14.2.5.6). A Set carries the whole attribute:
// begin with the answer to a Get.
//
// On the external ports of a switch the fields of end ports (M_Key, LID and their like) mean nothing; those of port 0 hold
// for the whole switch.
type PortInfo struct {
	MKey                                ib.MKey         `mad:"0,64"`   // none: no key is checked; also when protection hides it
	GIDPrefix                           ib.Prefix       `mad:"64,64"`  // subnet prefix
	LID                                 ib.LID          `mad:"128,16"` // base LID; 0: not assigned
	MasterSMLID                         ib.LID          `mad:"144,16"` // where the port sends its traps
	CapabilityMask                      CapabilityMask  `mad:"160,32"` // what the port can; of a switch, see port 0
	DiagCode                            uint16          `mad:"192,16"` // 0: no fault
	MKeyLeasePeriod                     uint16          `mad:"208,16"` // seconds until protection lapses after a violation; 0: never
	LocalPortNum                        ib.PortNum      `mad:"224,8"`  // port by which the SMP came in
	LinkWidthEnabled                    ib.LinkWidth    `mad:"232,8"`  // in a Set, 0 changes nothing and 255 means supported
	LinkWidthSupported                  ib.LinkWidth    `mad:"240,8"`  // mask
	LinkWidthActive                     ib.LinkWidth    `mad:"248,8"`  // one bit
	LinkSpeedSupported                  ib.LinkSpeed    `mad:"256,4"`  // mask
	PortState                           ib.PortState    `mad:"260,4"`  // in a Set, Nop changes nothing
	PortPhysicalState                   ib.PhysState    `mad:"264,4"`  // in a Set, Nop changes nothing
	LinkDownDefaultState                ib.PhysState    `mad:"268,4"`  // Sleep or Polling; Nop in a Set changes nothing
	MKeyProtectBits                     uint8           `mad:"272,2"`  // 0 to 3, see the M_Key rules
	_                                   reserved        `mad:"274,3"`  //
	LMC                                 ib.LMC          `mad:"277,3"`  // the port owns 2^LMC LIDs
	LinkSpeedActive                     ib.LinkSpeed    `mad:"280,4"`  // one bit; 0 on some devices at extended speed
	LinkSpeedEnabled                    ib.LinkSpeed    `mad:"284,4"`  // in a Set, 0 changes nothing and 15 means supported
	NeighborMTU                         ib.MTU          `mad:"288,4"`  // MTU in force
	MasterSMSL                          ib.SL           `mad:"292,4"`  // service level to the SM
	VLCap                               ib.VLCap        `mad:"296,4"`  // data VLs the port has
	InitType                            uint8           `mad:"300,4"`  // 1 NoLoad, 2 PreserveContent, 4 PreservePresence, 8 DoNotResuscitate
	VLHighLimit                         uint8           `mad:"304,8"`  // high priority limit in units of 4 KB; 255: none
	VLArbitrationHighCap                uint8           `mad:"312,8"`  // entries of the high priority table, 0 to 64
	VLArbitrationLowCap                 uint8           `mad:"320,8"`  // entries of the low priority table, 0 to 64
	InitTypeReply                       uint8           `mad:"328,4"`  // what of InitType was granted
	MTUCap                              ib.MTU          `mad:"332,4"`  // largest MTU
	VLStallCount                        uint8           `mad:"336,3"`  // packets dropped by head-of-queue life before a VL stalls
	HOQLife                             ib.ExpTime      `mad:"339,5"`  // longest stay at the head of a VL queue; above 19: infinite
	OperationalVLs                      ib.VLCap        `mad:"344,4"`  // data VLs in use; 0 in a Set changes nothing
	PartitionEnforcementInbound         bool            `mad:"348,1"`  // external switch port checks P_Keys coming in
	PartitionEnforcementOutbound        bool            `mad:"349,1"`  // external switch port checks P_Keys going out
	FilterRawInbound                    bool            `mad:"350,1"`  // external switch port drops raw packets coming in
	FilterRawOutbound                   bool            `mad:"351,1"`  // external switch port drops raw packets going out
	MKeyViolations                      uint16          `mad:"352,16"` // saturating count; a Set may write 0 only
	PKeyViolations                      uint16          `mad:"368,16"` // saturating count; a Set may write 0 only
	QKeyViolations                      uint16          `mad:"384,16"` // saturating count; a Set may write 0 only
	GUIDCap                             uint8           `mad:"400,8"`  // entries of GUIDInfo
	ClientReregister                    bool            `mad:"408,1"`  // in a Set, asks the node to renew its registrations
	MulticastPKeyTrapSuppressionEnabled uint8           `mad:"409,2"`  // if IsMulticastPKeyTrapSuppressionSupported
	SubnetTimeOut                       ib.ExpTime      `mad:"411,5"`  // paces traps
	_                                   reserved        `mad:"416,3"`  //
	RespTimeValue                       ib.ExpTime      `mad:"419,5"`  // longest time from an SMP to its answer
	LocalPhyErrors                      uint8           `mad:"424,4"`  // threshold of trap 129
	OverrunErrors                       uint8           `mad:"428,4"`  // threshold of trap 130
	MaxCreditHint                       uint16          `mad:"432,16"` // largest buffer a hint may speak of
	_                                   reserved        `mad:"448,1"`  //
	LinkSpeedExtActive2                 uint8           `mad:"449,2"`  // 1 XDR; if IsExtendedSpeeds2Supported
	LinkSpeedExtSupported2              uint8           `mad:"451,2"`  // mask
	LinkSpeedExtEnabled2                uint8           `mad:"453,3"`  // 7 means supported
	LinkRoundTripLatency                uint32          `mad:"456,24"` // in units of 4 ns; all ones: not measured
	CapabilityMask2                     CapabilityMask2 `mad:"480,16"` // if IsCapabilityMask2Supported
	LinkSpeedExtActive                  ib.LinkSpeedExt `mad:"496,4"`  // one bit; 0: not at extended speed
	LinkSpeedExtSupported               ib.LinkSpeedExt `mad:"500,4"`  // mask
	_                                   reserved        `mad:"504,3"`  //
	LinkSpeedExtEnabled                 uint8           `mad:"507,5"`  // mask; 0 changes nothing, 30 disables, 31 means supported
}

// PortInfoExtSpeeds is the bit of the PortInfo modifier that says the
// requester understands extended link speeds. Without it a device may answer
// in a form for older managers.
const PortInfoExtSpeeds = 1 << 31

// PortInfoMod is the attribute modifier of PortInfo for a port of a switch, or
// 0 for the port asked of a CA or router. extSpeeds is PortInfoExtSpeeds or 0.
func PortInfoMod(port ib.PortNum, extSpeeds uint32) uint32 {
	return uint32(port) | extSpeeds&PortInfoExtSpeeds
}
