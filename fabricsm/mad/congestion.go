package mad

import "portcullis/fabricsm/ib"

// CongestionInfo has the congestion control capabilities of a device (class 0x21, attribute 0x0011).
type CongestionInfo struct {
	CongestionInfo  uint16   `mad:"0,16,hex"` // capability bits; their meaning is not public
	ControlTableCap uint8    `mad:"16,8"`     // blocks of 64 entries of the control table
	_               reserved `mad:"24,8"`
}

// CongestionKeyInfo is the CC_Key of a port and how it protects (class 0x21,
// attribute 0x0012; IBTA volume 1, annex A10).
type CongestionKeyInfo struct {
	CCKey            ib.MKey  `mad:"0,64"`  // none: no key is checked
	CCKeyProtectBit  bool     `mad:"64,1"`  // false: any requester may read the key
	_                reserved `mad:"65,15"` //
	CCKeyLeasePeriod uint16   `mad:"80,16"` // seconds until protection lapses after a violation; 0: never
	CCKeyViolations  uint16   `mad:"96,16"` // saturating count of violations; a Set may write 0 only
	_                reserved `mad:"112,16"`
}

// CCDualKey is the bit of EnhancedCongestionInfo.CapabilityMask that says the
// device holds two CC_Keys while one is being changed.
const CCDualKey = 1 << 5

// EnhancedCongestionInfo is NVIDIA's addition to CongestionInfo (class 0x21,
// attribute 0xFF00).
type EnhancedCongestionInfo struct {
	Ver0Supported  bool     `mad:"0,1"` // profiles of switches and HCAs
	Ver1Supported  bool     `mad:"1,1"` // programmable congestion control
	_              reserved `mad:"2,62"`
	CapabilityMask uint64   `mad:"64,64,hex"`
}
