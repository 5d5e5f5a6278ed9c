package mad

import "fmt"

// FECMode is the forward error correction mode of a link.
type FECMode uint16

// FEC modes.
const (
	FECNone       FECMode = 0
	FECFireCode   FECMode = 1
	FECRS         FECMode = 2
	FECRSLowDelay FECMode = 3
)

// String names the mode.
func (m FECMode) String() string {
	switch m {
	case FECNone:
		return "none"
	case FECFireCode:
		return "fire code"
	case FECRS:
		return "RS-FEC"
	case FECRSLowDelay:
		return "low-latency RS-FEC"
	default:
		return fmt.Sprintf("FECMode(%d)", uint16(m))
	}
}

// PortInfoExtended is the error correction of a port (attribute 0x0033),
// if CapabilityMask2 says IsPortInfoExtendedSupported. The modifier is the
// port.
type PortInfoExtended struct {
	CapMask             uint32   `mad:"0,32,hex"`   // bit 0: the modes below mean something
	FECModeActive       FECMode  `mad:"32,16"`      // in force
	FDRFECModeSupported uint16   `mad:"48,16,hex"`  // mask, at FDR
	FDRFECModeEnabled   uint16   `mad:"64,16,hex"`  // mask, at FDR
	EDRFECModeSupported uint16   `mad:"80,16,hex"`  // mask, at EDR
	EDRFECModeEnabled   uint16   `mad:"96,16,hex"`  // mask, at EDR
	HDRFECModeSupported uint16   `mad:"112,16,hex"` // mask, at HDR
	HDRFECModeEnabled   uint16   `mad:"128,16,hex"` // mask, at HDR
	NDRFECModeSupported uint16   `mad:"144,16,hex"` // mask, at NDR
	NDRFECModeEnabled   uint16   `mad:"160,16,hex"` // mask, at NDR
	_                   reserved `mad:"176,336"`
}
