package mad

import "portcullis/fabricsm/ib"

// ClassPortInfo is how an agent of a general management class is reached and
// where it sends its traps (attribute 0x0001; IBTA volume 1, 13.4.8.1). SMPs
// do not have it.
type ClassPortInfo struct {
	BaseVersion     uint8      `mad:"0,8"`        // MAD base version, 1
	ClassVersion    uint8      `mad:"8,8"`        // version of the class
	CapabilityMask  uint16     `mad:"16,16,hex"`  // bit 0 sends traps, bit 1 takes notices; 8 and up belong to the class
	CapabilityMask2 uint32     `mad:"32,27,hex"`  // belongs to the class
	RespTimeValue   ib.ExpTime `mad:"59,5"`       // longest time from a request to its answer
	RedirectGID     ib.GID     `mad:"64,128"`     // where to send requests instead
	RedirectTC      uint8      `mad:"192,8"`      // traffic class for it
	RedirectSL      ib.SL      `mad:"200,4"`      // service level for it
	RedirectFL      uint32     `mad:"204,20,hex"` // flow label for it
	RedirectLID     ib.LID     `mad:"224,16"`     // 0: no redirection
	RedirectPKey    ib.PKey    `mad:"240,16"`
	_               reserved   `mad:"256,8"`
	RedirectQP      uint32     `mad:"264,24,hex"`
	RedirectQKey    uint32     `mad:"288,32,hex"`
	TrapGID         ib.GID     `mad:"320,128"`    // where the agent sends its traps
	TrapTC          uint8      `mad:"448,8"`      // traffic class for them
	TrapSL          ib.SL      `mad:"456,4"`      // service level for them
	TrapFL          uint32     `mad:"460,20,hex"` // flow label for them
	TrapLID         ib.LID     `mad:"480,16"`     // 0: no traps
	TrapPKey        ib.PKey    `mad:"496,16"`
	TrapHL          uint8      `mad:"512,8"` // hop limit
	TrapQP          uint32     `mad:"520,24,hex"`
	TrapQKey        uint32     `mad:"544,32,hex"` // 0x80010000 for QP1
}
