package mad

// KeyClass describes the MADs of a management class with keys. The key stands where SMPs have the M_Key: MAD.MKey and
// SetMKey read and write it, and ib.MKey holds it, as it holds any 64-bit key of a management port.
//
// Values marked [sim] are not public: this project chose them, and they are to be replaced here when facts appear.
type KeyClass struct {
	Class   Class
	Version uint8  // class version; of 0x0C [sim]
	Data    int    // byte at which attributes begin
	KeyAttr AttrID // the attribute that holds the key
	KeyCap  uint16 // bit of ClassPortInfo.CapabilityMask: the class has a key; 0: nothing there says so; of 0x0C [sim]
	DualCap uint16 // bit of it: two keys at a time; 0: nothing there says so; of 0x0A [sim]
}

// Attributes of the classes with keys.
const (
	CCAttrCongestionInfo         AttrID = 0x0011
	CCAttrCongestionKeyInfo      AttrID = 0x0012
	CCAttrSwitchSetting          AttrID = 0x0014
	CCAttrSwitchPortSetting      AttrID = 0x0015 // block of 32 ports
	CCAttrCASetting              AttrID = 0x0016
	CCAttrControlTable           AttrID = 0x0017 // block of 64 entries
	CCAttrEnhancedCongestionInfo AttrID = 0xFF00 // NVIDIA

	VSAttrKeyInfo           AttrID = 0x000F
	VSAttrConfigSpaceAccess AttrID = 0x0050 // reads and writes registers of the device

	N2NAttrKeyInfo       AttrID = 0x000F
	N2NAttrNeighborsInfo AttrID = 0x0010 // block of 14 ports
)

// Bits of ClassPortInfo.CapabilityMask that all classes have.
const (
	ClassSendsTraps   uint16 = 1 << 0
	ClassTakesNotices uint16 = 1 << 1
)

// Numbers of the traps by which devices report wrong keys, in classes 0x21, 0x0A and 0x0C; 1 in class 0x0C only.
const (
	TrapKeyViolation        TrapNum = 0
	TrapKeyMisconfiguration TrapNum = 1
)

// LookupKeyClass returns the table of a class, and reports whether the class has keys.
func LookupKeyClass(c Class) (KeyClass, bool) {
	switch c {
	case ClassCongestionControl:
		return KeyClass{Class: c, Version: 2, Data: 64, KeyAttr: CCAttrCongestionKeyInfo}, true
	case ClassVendorVS:
		return KeyClass{Class: c, Version: 1, Data: 32, KeyAttr: VSAttrKeyInfo, KeyCap: 1 << 8, DualCap: 1 << 9}, true
	case ClassVendorN2N:
		return KeyClass{Class: c, Version: 1, Data: 32, KeyAttr: N2NAttrKeyInfo, KeyCap: 1 << 8, DualCap: 1 << 9}, true
	default:
		return KeyClass{}, false
	}
}

// Attribute is the attribute of a MAD of the class, to its end. It is a view
// of m.
func (k KeyClass) Attribute(m *MAD) []byte { return m[k.Data:] }

// keyLayout returns the layout of an attribute of a class with keys.
func keyLayout(c Class, a AttrID) *Layout {
	switch {
	case a == AttrNotice:
		return LayoutOf[Notice]()
	case c == ClassCongestionControl && a == CCAttrCongestionInfo:
		return LayoutOf[CongestionInfo]()
	case c == ClassCongestionControl && a == CCAttrCongestionKeyInfo:
		return LayoutOf[CongestionKeyInfo]()
	case c == ClassCongestionControl && a == CCAttrEnhancedCongestionInfo:
		return LayoutOf[EnhancedCongestionInfo]()
	case c == ClassVendorVS && a == VSAttrKeyInfo:
		return LayoutOf[VSKeyInfo]()
	case c == ClassVendorN2N && a == N2NAttrKeyInfo:
		return LayoutOf[N2NKeyInfo]()
	case c == ClassVendorN2N && a == N2NAttrNeighborsInfo:
		return LayoutOf[N2NNeighborsInfo]()
	default:
		return nil
	}
}
