package mad

import (
	"fmt"
	"math/bits"
	"strings"
)

// CapabilityMask is PortInfo.CapabilityMask: the capabilities of a port (IBTA volume 1, 14.2.5.6).
type CapabilityMask uint32

// Bits of CapabilityMask, by their names in the standard.
const (
	IsSM                                    CapabilityMask = 1 << 1 // an SM runs behind this port
	IsNoticeSupported                       CapabilityMask = 1 << 2
	IsTrapSupported                         CapabilityMask = 1 << 3
	IsOptionalIPDSupported                  CapabilityMask = 1 << 4
	IsAutomaticMigrationSupported           CapabilityMask = 1 << 5
	IsSLMappingSupported                    CapabilityMask = 1 << 6
	IsMKeyNVRAM                             CapabilityMask = 1 << 7 // the M_Key survives a power cycle
	IsPKeyNVRAM                             CapabilityMask = 1 << 8 // so does the P_Key table
	IsLEDInfoSupported                      CapabilityMask = 1 << 9
	IsSMDisabled                            CapabilityMask = 1 << 10
	IsSystemImageGUIDSupported              CapabilityMask = 1 << 11
	IsPKeySwitchExternalPortTrapSupported   CapabilityMask = 1 << 12 // sends trap 259
	IsCableInfoSupported                    CapabilityMask = 1 << 13
	IsExtendedSpeedsSupported               CapabilityMask = 1 << 14
	IsCapabilityMask2Supported              CapabilityMask = 1 << 15
	IsCommunicationManagementSupported      CapabilityMask = 1 << 16
	IsSNMPTunnelingSupported                CapabilityMask = 1 << 17
	IsReinitSupported                       CapabilityMask = 1 << 18
	IsDeviceManagementSupported             CapabilityMask = 1 << 19
	IsVendorClassSupported                  CapabilityMask = 1 << 20
	IsDRNoticeSupported                     CapabilityMask = 1 << 21
	IsCapabilityMaskNoticeSupported         CapabilityMask = 1 << 22
	IsBootManagementSupported               CapabilityMask = 1 << 23
	IsLinkRoundTripLatencySupported         CapabilityMask = 1 << 24
	IsClientReregistrationSupported         CapabilityMask = 1 << 25
	IsOtherLocalChangesNoticeSupported      CapabilityMask = 1 << 26
	IsLinkSpeedWidthPairsTableSupported     CapabilityMask = 1 << 27
	IsVendorSpecificMadsTableSupported      CapabilityMask = 1 << 28
	IsMulticastPKeyTrapSuppressionSupported CapabilityMask = 1 << 29
	IsMulticastFDBTopSupported              CapabilityMask = 1 << 30
	IsHierarchyInfoSupported                CapabilityMask = 1 << 31
)

// Has reports whether every bit of want is set.
func (c CapabilityMask) Has(want CapabilityMask) bool { return c&want == want }

// String returns the word in hexadecimal, and the names of its bits.
func (c CapabilityMask) String() string {
	return fmt.Sprintf("0x%08x%s", uint32(c), bitNames(uint64(c), func(i int) string {
		switch CapabilityMask(1) << i {
		case IsSM:
			return "IsSM"
		case IsNoticeSupported:
			return "IsNoticeSupported"
		case IsTrapSupported:
			return "IsTrapSupported"
		case IsOptionalIPDSupported:
			return "IsOptionalIPDSupported"
		case IsAutomaticMigrationSupported:
			return "IsAutomaticMigrationSupported"
		case IsSLMappingSupported:
			return "IsSLMappingSupported"
		case IsMKeyNVRAM:
			return "IsM_KeyNVRAM"
		case IsPKeyNVRAM:
			return "IsP_KeyNVRAM"
		case IsLEDInfoSupported:
			return "IsLEDInfoSupported"
		case IsSMDisabled:
			return "IsSMdisabled"
		case IsSystemImageGUIDSupported:
			return "IsSystemImageGUIDSupported"
		case IsPKeySwitchExternalPortTrapSupported:
			return "IsP_KeySwitchExternalPortTrapSupported"
		case IsCableInfoSupported:
			return "IsCableInfoSupported"
		case IsExtendedSpeedsSupported:
			return "IsExtendedSpeedsSupported"
		case IsCapabilityMask2Supported:
			return "IsCapabilityMask2Supported"
		case IsCommunicationManagementSupported:
			return "IsCommunicationManagementSupported"
		case IsSNMPTunnelingSupported:
			return "IsSNMPTunnelingSupported"
		case IsReinitSupported:
			return "IsReinitSupported"
		case IsDeviceManagementSupported:
			return "IsDeviceManagementSupported"
		case IsVendorClassSupported:
			return "IsVendorClassSupported"
		case IsDRNoticeSupported:
			return "IsDRNoticeSupported"
		case IsCapabilityMaskNoticeSupported:
			return "IsCapabilityMaskNoticeSupported"
		case IsBootManagementSupported:
			return "IsBootManagementSupported"
		case IsLinkRoundTripLatencySupported:
			return "IsLinkRoundTripLatencySupported"
		case IsClientReregistrationSupported:
			return "IsClientReregistrationSupported"
		case IsOtherLocalChangesNoticeSupported:
			return "IsOtherLocalChangesNoticeSupported"
		case IsLinkSpeedWidthPairsTableSupported:
			return "IsLinkSpeedWidthPairsTableSupported"
		case IsVendorSpecificMadsTableSupported:
			return "IsVendorSpecificMadsTableSupported"
		case IsMulticastPKeyTrapSuppressionSupported:
			return "IsMulticastP_KeyTrapSuppressionSupported"
		case IsMulticastFDBTopSupported:
			return "IsMulticastFDBTopSupported"
		case IsHierarchyInfoSupported:
			return "IsHierarchyInfoSupported"
		}
		return ""
	}))
}

// CapabilityMask2 is PortInfo.CapabilityMask2, valid if the port says
// IsCapabilityMask2Supported.
type CapabilityMask2 uint16

// Bits of CapabilityMask2.
const (
	IsSetNodeDescriptionSupported   CapabilityMask2 = 1 << 0
	IsPortInfoExtendedSupported     CapabilityMask2 = 1 << 1
	IsVirtualizationSupported       CapabilityMask2 = 1 << 2
	IsSwitchPortStateTableSupported CapabilityMask2 = 1 << 3
	IsLinkWidth2xSupported          CapabilityMask2 = 1 << 4
	IsLinkSpeedHDRSupported         CapabilityMask2 = 1 << 5
	IsLinkSpeedNDRSupported         CapabilityMask2 = 1 << 10
	IsExtendedSpeeds2Supported      CapabilityMask2 = 1 << 11
	IsLinkSpeedXDRSupported         CapabilityMask2 = 1 << 12
)

// Has reports whether every bit of want is set.
func (c CapabilityMask2) Has(want CapabilityMask2) bool { return c&want == want }

// String returns the word in hexadecimal, and the names of its bits.
func (c CapabilityMask2) String() string {
	return fmt.Sprintf("0x%04x%s", uint16(c), bitNames(uint64(c), func(i int) string {
		switch CapabilityMask2(1) << i {
		case IsSetNodeDescriptionSupported:
			return "IsSetNodeDescriptionSupported"
		case IsPortInfoExtendedSupported:
			return "IsPortInfoExtendedSupported"
		case IsVirtualizationSupported:
			return "IsVirtualizationSupported"
		case IsSwitchPortStateTableSupported:
			return "IsSwitchPortStateTableSupported"
		case IsLinkWidth2xSupported:
			return "IsLinkWidth2xSupported"
		case IsLinkSpeedHDRSupported:
			return "IsLinkSpeedHDRSupported"
		case IsLinkSpeedNDRSupported:
			return "IsLinkSpeedNDRSupported"
		case IsExtendedSpeeds2Supported:
			return "IsExtendedSpeeds2Supported"
		case IsLinkSpeedXDRSupported:
			return "IsLinkSpeedXDRSupported"
		}
		return ""
	}))
}

// bitNames lists the names of the bits set in v, " (a, b)", lowest first. A bit
// without a name is called by its number.
func bitNames(v uint64, name func(bit int) string) string {
	var names []string
	for ; v != 0; v &= v - 1 {
		i := bits.TrailingZeros64(v)
		n := name(i)
		if n == "" {
			n = fmt.Sprintf("bit %d", i)
		}
		names = append(names, n)
	}
	if names == nil {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}
