package mad

// saLayout returns the layout of an attribute of subnet administration, nil if it is not known. A Notice is one that is
// reported, with the GID of its issuer.
func saLayout(a AttrID) *Layout {
	switch a {
	case AttrClassPortInfo:
		return LayoutOf[ClassPortInfo]()
	case AttrNotice:
		return LayoutOf[ReportNotice]()
	case AttrInformInfo:
		return LayoutOf[InformInfo]()
	case AttrNodeRecord:
		return LayoutOf[NodeRecord]()
	case AttrPortInfoRecord:
		return LayoutOf[PortInfoRecord]()
	case AttrSLtoVLRecord:
		return LayoutOf[SLtoVLMappingTableRecord]()
	case AttrSwitchInfoRecord:
		return LayoutOf[SwitchInfoRecord]()
	case AttrLinearForwardingRecord:
		return LayoutOf[LinearForwardingTableRecord]()
	case AttrRandomForwardingRecord:
		return LayoutOf[RandomForwardingTableRecord]()
	case AttrMulticastForwardingRecord:
		return LayoutOf[MulticastForwardingTableRecord]()
	case AttrSMInfoRecord:
		return LayoutOf[SMInfoRecord]()
	case AttrLinkRecord:
		return LayoutOf[LinkRecord]()
	case AttrGUIDInfoRecord:
		return LayoutOf[GUIDInfoRecord]()
	case AttrServiceRecord:
		return LayoutOf[ServiceRecord]()
	case AttrPKeyTableRecord:
		return LayoutOf[PKeyTableRecord]()
	case AttrPathRecord:
		return LayoutOf[PathRecord]()
	case AttrVLArbitrationRecord:
		return LayoutOf[VLArbitrationTableRecord]()
	case AttrMCMemberRecord:
		return LayoutOf[MCMemberRecord]()
	case AttrTraceRecord:
		return LayoutOf[TraceRecord]()
	case AttrMultiPathRecord:
		return LayoutOf[MultiPathRecord]()
	case AttrInformInfoRecord:
		return LayoutOf[InformInfoRecord]()
	default:
		return nil
	}
}

// offsetUnit is the unit of AttributeOffset in bytes.
const offsetUnit = 8

// RecordSize is the distance in bytes from one record of an attribute to the next in an
// answer: its length, padded to a multiple of 8. It is 0 for an attribute that is not
// known. A MultiPathRecord counts without its GIDs.
func RecordSize(a AttrID) int {
	l := saLayout(a)
	if l == nil {
		return 0
	}
	return (l.size + offsetUnit - 1) / offsetUnit * offsetUnit
}

// AttributeOffset is RecordSize in the units of an SA MAD's AttributeOffset.
func AttributeOffset(a AttrID) uint16 { return uint16(RecordSize(a) / offsetUnit) }

// attrNameSA names the attributes that only class 0x03 has, others not at all.
func attrNameSA(a AttrID) string {
	switch a {
	case AttrPKeyTableRecord:
		return "P_KeyTableRecord"
	case AttrServiceAssociationRecord:
		return "ServiceAssociationRecord"
	}
	if l := saLayout(a); l != nil && a != AttrNotice {
		return l.Name()
	}
	return ""
}
