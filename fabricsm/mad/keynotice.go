package mad

import "portcullis/fabricsm/ib"

// NoticeKeyCC is the notice of trap 0 of class 0x21: a MAD came with a wrong
// CC_Key. It is a generic notice.
type NoticeKeyCC struct {
	NoticeHeader
	SLID              ib.LID   `mad:"80,16"` // of the offending MAD
	Method            Method   `mad:"96,8"`
	_                 reserved `mad:"104,8"`
	AttributeID       AttrID   `mad:"112,16"`
	_                 reserved `mad:"128,16"`
	AttributeModifier uint32   `mad:"144,32,hex"`
	QP                uint32   `mad:"176,32,hex"` // source queue pair, 24 bits
	CCKey             ib.MKey  `mad:"208,64"`     // the wrong key
	SourceGID         ib.GID   `mad:"272,128"`    // if the MAD had a global header
	_                 reserved `mad:"400,112"`
}

// NoticeKeyVS is the notice of trap 0 of classes 0x0A and 0x0C, a MAD came
// with a wrong key, and of trap 1 of class 0x0C, the keys of neighbours do not
// match. Whether it is a generic notice or a vendor's is not public: take both.
type NoticeKeyVS struct {
	NoticeHeader
	SLID                ib.LID   `mad:"80,16"` // of the offending MAD
	Method              Method   `mad:"96,8"`
	_                   reserved `mad:"104,8"`
	AttributeID         AttrID   `mad:"112,16"`
	AttributeModifier   uint32   `mad:"128,32,hex"`
	QP                  uint32   `mad:"160,32,hex"` // source queue pair, 24 bits
	Key                 ib.MKey  `mad:"192,64"`     // the wrong key
	SourceGID           ib.GID   `mad:"256,128"`    // if the MAD had a global header
	_                   reserved `mad:"384,112"`
	TrapNumberInPayload uint16   `mad:"496,16"` // TrapKeyViolation or TrapKeyMisconfiguration
}

// LayoutIn is Layout for a notice that came in a MAD of class c: those of the
// classes with keys have numbers of their own.
func (n *Notice) LayoutIn(c Class) *Layout {
	switch c {
	case ClassCongestionControl:
		if n.IsGeneric && n.TrapNumber == TrapKeyViolation {
			return LayoutOf[NoticeKeyCC]()
		}
	case ClassVendorVS, ClassVendorN2N:
		return LayoutOf[NoticeKeyVS]()
	default:
	}
	return n.Layout()
}
