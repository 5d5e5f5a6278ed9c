package mad

import (
	"reflect"
	"unsafe"

	"portcullis/fabricsm/ib"
)

// typeCase is one attribute type behind functions that do not name it.
type typeCase struct {
	layout *Layout
	fresh  func() codec
}

// codec is one value of an attribute type.
type codec struct {
	value  any // pointer to it
	at     unsafe.Pointer
	decode func(p []byte) error
	encode func(p []byte) error
	fill   func(next func() uint64)
	same   func(o codec) bool
}

func typeOf[T comparable]() typeCase {
	return typeCase{LayoutOf[T](), func() codec {
		v := new(T)
		return codec{
			value:  v,
			at:     unsafe.Pointer(v),
			decode: func(p []byte) error { return Decode(p, v) },
			encode: func(p []byte) error { return Encode(p, v) },
			fill:   func(next func() uint64) { Fill(v, next) },
			same:   func(o codec) bool { return *v == *o.value.(*T) },
		}
	}}
}

// allTypes are all attributes and notices of the package.
func allTypes() []typeCase {
	return []typeCase{
		typeOf[NodeInfo](), typeOf[NodeDescription](), typeOf[SwitchInfo](), typeOf[PortInfo](), typeOf[PortInfoExtended](),
		typeOf[GUIDInfo](), typeOf[PKeyTable](), typeOf[SLtoVLMappingTable](), typeOf[VLArbitration](),
		typeOf[LinearForwardingTable](), typeOf[MulticastForwardingTable](), typeOf[SMInfo](), typeOf[VendorDiag](), typeOf[LedInfo](),
		typeOf[HierarchyInfo](), typeOf[SwitchPortStateTable](), typeOf[ClassPortInfo](),
		typeOf[Notice](), typeOf[ReportNotice](), typeOf[Trap64](), typeOf[Trap128](), typeOf[Trap129](), typeOf[Trap144](),
		typeOf[Trap145](), typeOf[Trap256](), typeOf[Trap257](), typeOf[Trap259](),
		typeOf[Notice1144](), typeOf[Notice1257](), typeOf[Notice1318](), typeOf[Notice1300](), typeOf[Notice1301](),
		typeOf[Notice1302](), typeOf[Notice1303](), typeOf[Notice1306](), typeOf[Notice1308](), typeOf[Notice1309](),
		typeOf[Notice1310](), typeOf[Notice1311](), typeOf[Notice1315](), typeOf[Notice1316](), typeOf[Notice1601](),
		typeOf[MlnxExtendedPortInfo](), typeOf[VirtualizationInfo](), typeOf[VPortInfo](), typeOf[VNodeInfo](),
		typeOf[RouterInfo](), typeOf[AdjacentSubnetsTable](),
		typeOf[CongestionInfo](), typeOf[CongestionKeyInfo](), typeOf[EnhancedCongestionInfo](), typeOf[VSKeyInfo](),
		typeOf[N2NKeyInfo](), typeOf[N2NNeighborsInfo](), typeOf[NoticeKeyCC](), typeOf[NoticeKeyVS](), typeOf[GeneralInfoCapabilities](),
		typeOf[PortCounters](), typeOf[PortCountersExtended](),
		typeOf[NodeRecord](), typeOf[PortInfoRecord](), typeOf[SLtoVLMappingTableRecord](), typeOf[SwitchInfoRecord](),
		typeOf[LinearForwardingTableRecord](), typeOf[RandomForwardingTableRecord](), typeOf[MulticastForwardingTableRecord](),
		typeOf[SMInfoRecord](), typeOf[LinkRecord](), typeOf[GUIDInfoRecord](), typeOf[ServiceRecord](), typeOf[PKeyTableRecord](),
		typeOf[PathRecord](), typeOf[VLArbitrationTableRecord](), typeOf[MCMemberRecord](), typeOf[TraceRecord](),
		typeOf[MultiPathRecord](), typeOf[InformInfo](), typeOf[InformInfoRecord](),
	}
}

// fieldBits returns element i of a field as a number, by way of its Go type rather than of the compiled plan. GIDs and
// ServiceKeys are not numbers.
func fieldBits(f *Field, v unsafe.Pointer, i int) (uint64, bool) {
	switch x := f.element(v, i).(type) {
	case ib.MKey:
		return x.Reveal(), true
	case ib.SMKey:
		return x.Reveal(), true
	case ib.GID, ib.ServiceKey:
		return 0, false
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	default:
		return reflect.ValueOf(x).Uint(), true
	}
}
