package mad

import "reflect"

// LookupLayout returns the layout of an attribute of a class, and reports whether it is known. Notices are known by their
// uninterpreted form; see Notice.Layout. Those of subnet administration are reports.
func LookupLayout(c Class, a AttrID) (*Layout, bool) {
	var l *Layout
	switch {
	case c == ClassSubn || c == ClassSubnDR:
		l = smLayout(a)
	case c == ClassSubnAdm:
		l = saLayout(a)
	case a == AttrClassPortInfo:
		l = LayoutOf[ClassPortInfo]()
	case c == ClassPerf:
		l = perfLayout(a)
	default:
		l = keyLayout(c, a)
	}
	return l, l != nil
}

func smLayout(a AttrID) *Layout {
	switch a {
	case AttrNotice:
		return LayoutOf[Notice]()
	case AttrNodeDescription, AttrVNodeDescription:
		return LayoutOf[NodeDescription]()
	case AttrNodeInfo:
		return LayoutOf[NodeInfo]()
	case AttrSwitchInfo:
		return LayoutOf[SwitchInfo]()
	case AttrGUIDInfo, AttrVPortGUIDInfo:
		return LayoutOf[GUIDInfo]()
	case AttrPortInfo:
		return LayoutOf[PortInfo]()
	case AttrPKeyTable, AttrVPortPKeyTable:
		return LayoutOf[PKeyTable]()
	case AttrSLtoVLMappingTable:
		return LayoutOf[SLtoVLMappingTable]()
	case AttrVLArbitration:
		return LayoutOf[VLArbitration]()
	case AttrLinearForwardingTable:
		return LayoutOf[LinearForwardingTable]()
	case AttrMulticastForwardingTable:
		return LayoutOf[MulticastForwardingTable]()
	case AttrHierarchyInfo:
		return LayoutOf[HierarchyInfo]()
	case AttrSMInfo:
		return LayoutOf[SMInfo]()
	case AttrVendorDiag:
		return LayoutOf[VendorDiag]()
	case AttrLedInfo:
		return LayoutOf[LedInfo]()
	case AttrPortInfoExtended:
		return LayoutOf[PortInfoExtended]()
	case AttrSwitchPortStateTable, AttrVPortState:
		return LayoutOf[SwitchPortStateTable]()
	case AttrMlnxExtendedPortInfo:
		return LayoutOf[MlnxExtendedPortInfo]()
	case AttrVirtualizationInfo:
		return LayoutOf[VirtualizationInfo]()
	case AttrVPortInfo:
		return LayoutOf[VPortInfo]()
	case AttrVNodeInfo:
		return LayoutOf[VNodeInfo]()
	case AttrRouterInfo:
		return LayoutOf[RouterInfo]()
	case AttrAdjacentSubnetsTable:
		return LayoutOf[AdjacentSubnetsTable]()
	default:
		return nil
	}
}

// Layout returns the layout that interprets the details of n, by its trap number or, in a vendor notice of NVIDIA, by the
// number in the last two bytes. Unknown ones have the layout of Notice itself.
func (n *Notice) Layout() *Layout {
	var l *Layout
	switch {
	case n.IsGeneric:
		l = trapLayout(n.TrapNumber)
	case n.ProducerType == OUINVIDIA:
		l = vendorNoticeLayout(uint16(n.DataDetails[52])<<8 | uint16(n.DataDetails[53]))
	}
	if l == nil {
		return LayoutOf[Notice]()
	}
	return l
}

func trapLayout(t TrapNum) *Layout {
	switch t {
	case TrapGIDInService, TrapGIDOutOfService, TrapMulticastCreated, TrapMulticastDeleted:
		return LayoutOf[Trap64]()
	case TrapLinkStateChange:
		return LayoutOf[Trap128]()
	case TrapLinkIntegrity, TrapBufferOverrun, TrapFlowControl:
		return LayoutOf[Trap129]()
	case TrapLocalChange:
		return LayoutOf[Trap144]()
	case TrapSystemImageGUID:
		return LayoutOf[Trap145]()
	case TrapBadMKey:
		return LayoutOf[Trap256]()
	case TrapBadPKey, TrapBadQKey:
		return LayoutOf[Trap257]()
	case TrapBadPKeySwitch:
		return LayoutOf[Trap259]()
	default:
		return nil
	}
}

func vendorNoticeLayout(number uint16) *Layout {
	switch number {
	case 1144:
		return LayoutOf[Notice1144]()
	case 1257, 1258:
		return LayoutOf[Notice1257]()
	case 1300:
		return LayoutOf[Notice1300]()
	case 1301:
		return LayoutOf[Notice1301]()
	case 1302:
		return LayoutOf[Notice1302]()
	case 1303, 1304, 1305:
		return LayoutOf[Notice1303]()
	case 1306, 1307:
		return LayoutOf[Notice1306]()
	case 1308:
		return LayoutOf[Notice1308]()
	case 1309:
		return LayoutOf[Notice1309]()
	case 1310:
		return LayoutOf[Notice1310]()
	case 1311:
		return LayoutOf[Notice1311]()
	case 1315:
		return LayoutOf[Notice1315]()
	case 1316:
		return LayoutOf[Notice1316]()
	case 1318:
		return LayoutOf[Notice1318]()
	case 1601:
		return LayoutOf[Notice1601]()
	default:
		return nil
	}
}

// Decode reads an attribute from the start of p, as the generic Decode does, into a new value of the layout's type and
// returns a pointer to it.
func (l *Layout) Decode(p []byte) (any, error) {
	v := reflect.New(l.typ)
	if err := l.decode(p, v.UnsafePointer()); err != nil {
		return nil, err
	}
	return v.Interface(), nil
}

// Encode writes v, a pointer to a value of the layout's type, to the start of
// p, as the generic Encode does. A value of another type is a programming
// error and panics.
func (l *Layout) Encode(p []byte, v any) error {
	return l.encode(p, l.pointer(v).UnsafePointer())
}

// pointer returns v as a pointer to the layout's type.
func (l *Layout) pointer(v any) reflect.Value {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Pointer || r.IsNil() || r.Type().Elem() != l.typ {
		panic("mad: " + l.Name() + " given " + reflect.TypeOf(v).String())
	}
	return r
}
