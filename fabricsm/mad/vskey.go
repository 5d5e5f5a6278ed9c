package mad

import "portcullis/fabricsm/ib"

// VSKeyInfo is the VS_Key of a port and how it protects (class 0x0A, attribute
// 0x000F KeyInfo). That it begins at byte 32 of the MAD is [sim], see KeyClass.
type VSKeyInfo struct {
	VSKey       ib.MKey  `mad:"0,64"`  // none: no key is checked
	ProtectBit  bool     `mad:"64,1"`  // false: any requester may read the key
	_           reserved `mad:"65,15"` //
	LeasePeriod uint16   `mad:"80,16"` // seconds until protection lapses after a violation; 0: never
	Violations  uint16   `mad:"96,16"` // saturating count; that a Set to 0 clears it is [sim]
	_           reserved `mad:"112,16"`
}
