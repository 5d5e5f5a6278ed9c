package mad

import "portcullis/fabricsm/ib"

// Attributes of the performance management class (0x04). They begin at byte 64 of a MAD, as in an SMP.
const (
	PerfAttrPortCounters         AttrID = 0x0012
	PerfAttrPortCountersExtended AttrID = 0x001D
)

// Bits of ClassPortInfo.CapabilityMask of the performance management class (IBTA volume 1, 16.1.3.1).
const (
	PerfAllPortSelect       = 1 << 8  // PortSelect 255 means all ports of a switch
	PerfExtendedWidth       = 1 << 9  // PortCountersExtended is there
	PerfExtendedWidthNoIETF = 1 << 10 // PortCountersExtended is there, without unicast and multicast packets
	PerfXmitWait            = 1 << 12 // PortCounters has PortXmitWait
	PerfQP1Dropped          = 1 << 15 // PortCounters has QP1Dropped
)

// PerfAdditionalExtended is the bit of ClassPortInfo.CapabilityMask2 of the performance management class that says that
// PortCountersExtended has errors, discards and waits, too.
const PerfAdditionalExtended = 1 << 1

// PortCounters has the counters of a port, which stay at their largest value when they reach it (class 0x04, attribute 0x0012;
// IBTA volume 1, 16.1.3.5). Data are words of four bytes.
type PortCounters struct {
	_                            reserved   `mad:"0,8"`
	PortSelect                   ib.PortNum `mad:"8,8"`
	CounterSelect                uint16     `mad:"16,16,hex"` // of a Set: which counters to write
	SymbolErrorCounter           uint16     `mad:"32,16"`
	LinkErrorRecoveryCounter     uint8      `mad:"48,8"`
	LinkDownedCounter            uint8      `mad:"56,8"`
	PortRcvErrors                uint16     `mad:"64,16"`
	PortRcvRemotePhysicalErrors  uint16     `mad:"80,16"`
	PortRcvSwitchRelayErrors     uint16     `mad:"96,16"`
	PortXmitDiscards             uint16     `mad:"112,16"`
	PortXmitConstraintErrors     uint8      `mad:"128,8"`
	PortRcvConstraintErrors      uint8      `mad:"136,8"`
	CounterSelect2               uint8      `mad:"144,8,hex"`
	LocalLinkIntegrityErrors     uint8      `mad:"152,4"`
	ExcessiveBufferOverrunErrors uint8      `mad:"156,4"`
	QP1Dropped                   uint16     `mad:"160,16"` // see PerfQP1Dropped
	VL15Dropped                  uint16     `mad:"176,16"`
	PortXmitData                 uint32     `mad:"192,32"`
	PortRcvData                  uint32     `mad:"224,32"`
	PortXmitPkts                 uint32     `mad:"256,32"`
	PortRcvPkts                  uint32     `mad:"288,32"`
	PortXmitWait                 uint32     `mad:"320,32"` // see PerfXmitWait
}

// PortCountersExtended has counters of 64 bits (class 0x04, attribute 0x001D; IBTA volume 1, 16.1.3.6). Those from
// SymbolErrorCounter on are there with PerfAdditionalExtended.
type PortCountersExtended struct {
	_                            reserved   `mad:"0,8"`
	PortSelect                   ib.PortNum `mad:"8,8"`
	CounterSelect                uint16     `mad:"16,16,hex"`
	CounterSelect2               uint32     `mad:"32,32,hex"`
	PortXmitData                 uint64     `mad:"64,64"`
	PortRcvData                  uint64     `mad:"128,64"`
	PortXmitPkts                 uint64     `mad:"192,64"`
	PortRcvPkts                  uint64     `mad:"256,64"`
	PortUnicastXmitPkts          uint64     `mad:"320,64"`
	PortUnicastRcvPkts           uint64     `mad:"384,64"`
	PortMulticastXmitPkts        uint64     `mad:"448,64"`
	PortMulticastRcvPkts         uint64     `mad:"512,64"`
	SymbolErrorCounter           uint64     `mad:"576,64"`
	LinkErrorRecoveryCounter     uint64     `mad:"640,64"`
	LinkDownedCounter            uint64     `mad:"704,64"`
	PortRcvErrors                uint64     `mad:"768,64"`
	PortRcvRemotePhysicalErrors  uint64     `mad:"832,64"`
	PortRcvSwitchRelayErrors     uint64     `mad:"896,64"`
	PortXmitDiscards             uint64     `mad:"960,64"`
	PortXmitConstraintErrors     uint64     `mad:"1024,64"`
	PortRcvConstraintErrors      uint64     `mad:"1088,64"`
	LocalLinkIntegrityErrors     uint64     `mad:"1152,64"`
	ExcessiveBufferOverrunErrors uint64     `mad:"1216,64"`
	VL15Dropped                  uint64     `mad:"1280,64"`
	PortXmitWait                 uint64     `mad:"1344,64"`
	QP1Dropped                   uint64     `mad:"1408,64"`
}

// attrNamePerf names an attribute of performance management, "" for none.
func attrNamePerf(a AttrID) string {
	switch a {
	case PerfAttrPortCounters:
		return "PortCounters"
	case PerfAttrPortCountersExtended:
		return "PortCountersExtended"
	default:
		return ""
	}
}

func perfLayout(a AttrID) *Layout {
	switch a {
	case PerfAttrPortCounters:
		return LayoutOf[PortCounters]()
	case PerfAttrPortCountersExtended:
		return LayoutOf[PortCountersExtended]()
	case AttrNotice:
		return LayoutOf[Notice]()
	default:
		return nil
	}
}
