package mad

// VendorMellanox is NodeInfo.VendorID of NVIDIA's devices, as Mellanox registered
// it.
const VendorMellanox = 0x0002C9

// Bits of MlnxExtendedPortInfo.
const (
	MlnxSpeedFDR10      = 0x01   // LinkSpeedSupported, LinkSpeedEnabled, LinkSpeedActive
	MlnxSetSpeedEnabled = 0x01   // StateChangeEnable: LinkSpeedEnabled is to be applied
	MlnxDualMKey        = 0x0200 // CapabilityMask: two M_Keys at a time, for rotation
)

// MlnxExtendedPortInfo is NVIDIA's addition to PortInfo (attribute 0xFF90).
// The modifier is the port. Fields marked "newer" are reserved in older
// firmware.
type MlnxExtendedPortInfo struct {
	Flags                   uint8    `mad:"0,8,hex"`    // newer: 0x80 AME, 0x40 SHARP AN, 0x20 router LID, 0x10 port recovered
	_                       reserved `mad:"8,16"`       //
	StateChangeEnable       uint8    `mad:"24,8,hex"`   // in a Set, which fields to apply
	BandwidthUtilization    uint16   `mad:"32,16,hex"`  // newer: bit 10 enable, bits 9..0 value
	UnhealthyReason         uint8    `mad:"48,8"`       // newer
	LinkSpeedSupported      uint8    `mad:"56,8,hex"`   // mask
	_                       reserved `mad:"64,16"`      //
	MinBandwidthUtilization uint8    `mad:"80,8"`       // newer, low 7 bits
	LinkSpeedEnabled        uint8    `mad:"88,8,hex"`   // mask
	_                       reserved `mad:"96,24"`      //
	LinkSpeedActive         uint8    `mad:"120,8,hex"`  // one bit
	_                       reserved `mad:"128,8"`      //
	AdminState              uint8    `mad:"136,8,hex"`  // newer, bits 3..1
	CapabilityMask          uint16   `mad:"144,16,hex"` // newer, MlnxDualMKey
	_                       reserved `mad:"160,192"`    //
	IsServicePortFlags      uint8    `mad:"352,8,hex"`  // newer: 0x80 FNM port, 0x40 mission as FNM, 0x20 QoSConfigVL, 0x10 trunk
	_                       reserved `mad:"360,16"`     //
	SpecialPortType         uint8    `mad:"376,8,hex"`  // bit 7 special port; low nibble 1 aggregation node, 2 router, 3 gateway
	_                       reserved `mad:"384,32"`     //
	AdaptiveTimeoutSLMask   uint16   `mad:"416,16,hex"` // by SL
	OOOSLMask               uint16   `mad:"432,16,hex"` // by SL: out of order delivery
	_                       reserved `mad:"448,64"`     //
}
