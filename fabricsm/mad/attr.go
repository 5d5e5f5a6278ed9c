package mad

import "fmt"

// AttrID is an attribute identifier. Its meaning depends on the class; the
// constants here are those of the subnet management classes and the one all
// other classes share, ClassPortInfo.
type AttrID uint16

// Attributes (IBTA volume 1, 14.2.5). The comment describes the attribute modifier.
const (
	AttrClassPortInfo            AttrID = 0x0001 // 0; not in SMPs
	AttrNotice                   AttrID = 0x0002 // 0
	AttrNodeDescription          AttrID = 0x0010 // 0
	AttrNodeInfo                 AttrID = 0x0011 // 0
	AttrSwitchInfo               AttrID = 0x0012 // 0
	AttrGUIDInfo                 AttrID = 0x0014 // block of 8 GUIDs
	AttrPortInfo                 AttrID = 0x0015 // see PortInfoMod
	AttrPKeyTable                AttrID = 0x0016 // see PKeyTableMod
	AttrSLtoVLMappingTable       AttrID = 0x0017 // see SLtoVLMod
	AttrVLArbitration            AttrID = 0x0018 // see VLArbitrationMod
	AttrLinearForwardingTable    AttrID = 0x0019 // block of 64 LIDs
	AttrRandomForwardingTable    AttrID = 0x001A // block of 16 entries; obsolete
	AttrMulticastForwardingTable AttrID = 0x001B // see MulticastForwardingMod
	AttrLinkSpeedWidthPairsTable AttrID = 0x001C
	AttrVendorSpecificMadsTable  AttrID = 0x001D
	AttrHierarchyInfo            AttrID = 0x001E // bits 15..8 index, 7..0 port
	AttrSMInfo                   AttrID = 0x0020 // 0 on Get, control code on Set
	AttrVendorDiag               AttrID = 0x0030 // index
	AttrLedInfo                  AttrID = 0x0031 // port of a switch
	AttrPortInfoExtended         AttrID = 0x0033 // port
	AttrSwitchPortStateTable     AttrID = 0x0034 // block of 128 ports
	AttrGeneralInfo              AttrID = 0xFF17 // NVIDIA
	AttrMlnxExtendedPortInfo     AttrID = 0xFF90 // NVIDIA; port
	AttrVirtualizationInfo       AttrID = 0xFFB0 // NVIDIA
	AttrVPortInfo                AttrID = 0xFFB1 // NVIDIA; virtual port index
	AttrVNodeInfo                AttrID = 0xFFB2 // NVIDIA; virtual port index
	AttrVPortState               AttrID = 0xFFB3 // NVIDIA; block of 128 virtual ports
	AttrVNodeDescription         AttrID = 0xFFB4 // NVIDIA; virtual port index
	AttrVPortGUIDInfo            AttrID = 0xFFB5 // NVIDIA; virtual port index and block
	AttrVPortPKeyTable           AttrID = 0xFFB6 // NVIDIA; virtual port index and block
	AttrRouterInfo               AttrID = 0xFFD0 // NVIDIA; 0
	AttrNextHopTable             AttrID = 0xFFD1 // NVIDIA; block
	AttrAdjacentSubnetsTable     AttrID = 0xFFD2 // NVIDIA; block of 8 subnets
)

// AttrName names the attribute of a class, by number where it is not known.
func (h Header) AttrName() string {
	if h.Class == ClassSubn || h.Class == ClassSubnDR || h.Attr == AttrClassPortInfo || h.Attr == AttrNotice {
		return h.Attr.String()
	}
	if h.Class == ClassSubnAdm {
		if name := attrNameSA(h.Attr); name != "" {
			return name
		}
	}
	if h.Class == ClassPerf {
		if name := attrNamePerf(h.Attr); name != "" {
			return name
		}
	}
	return fmt.Sprintf("AttrID(0x%04x)", uint16(h.Attr))
}

// String names the attributes above as the standard does, others by number.
func (a AttrID) String() string {
	switch a {
	case AttrClassPortInfo:
		return "ClassPortInfo"
	case AttrNotice:
		return "Notice"
	case AttrNodeDescription:
		return "NodeDescription"
	case AttrNodeInfo:
		return "NodeInfo"
	case AttrSwitchInfo:
		return "SwitchInfo"
	case AttrGUIDInfo:
		return "GUIDInfo"
	case AttrPortInfo:
		return "PortInfo"
	case AttrPKeyTable:
		return "P_KeyTable"
	case AttrSLtoVLMappingTable:
		return "SLtoVLMappingTable"
	case AttrVLArbitration:
		return "VLArbitration"
	case AttrLinearForwardingTable:
		return "LinearForwardingTable"
	case AttrRandomForwardingTable:
		return "RandomForwardingTable"
	case AttrMulticastForwardingTable:
		return "MulticastForwardingTable"
	case AttrLinkSpeedWidthPairsTable:
		return "LinkSpeedWidthPairsTable"
	case AttrVendorSpecificMadsTable:
		return "VendorSpecificMadsTable"
	case AttrHierarchyInfo:
		return "HierarchyInfo"
	case AttrSMInfo:
		return "SMInfo"
	case AttrVendorDiag:
		return "VendorDiag"
	case AttrLedInfo:
		return "LedInfo"
	case AttrPortInfoExtended:
		return "PortInfoExtended"
	case AttrSwitchPortStateTable:
		return "SwitchPortStateTable"
	case AttrGeneralInfo:
		return "GeneralInfo"
	case AttrMlnxExtendedPortInfo:
		return "MlnxExtendedPortInfo"
	case AttrVirtualizationInfo:
		return "VirtualizationInfo"
	case AttrVPortInfo:
		return "VPortInfo"
	case AttrVNodeInfo:
		return "VNodeInfo"
	case AttrVPortState:
		return "VPortState"
	case AttrVNodeDescription:
		return "VNodeDescription"
	case AttrVPortGUIDInfo:
		return "VPortGUIDInfo"
	case AttrVPortPKeyTable:
		return "VPortP_KeyTable"
	case AttrRouterInfo:
		return "RouterInfo"
	case AttrNextHopTable:
		return "NextHopTable"
	case AttrAdjacentSubnetsTable:
		return "AdjacentSiteLocalSubnetsTable"
	default:
		return fmt.Sprintf("AttrID(0x%04x)", uint16(a))
	}
}
