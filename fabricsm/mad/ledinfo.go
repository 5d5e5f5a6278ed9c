package mad

// LedInfo is the beacon of a port (attribute 0x0031; IBTA volume 1,
// 14.2.5.15). The modifier is the port of a switch.
type LedInfo struct {
	LedMask bool     `mad:"0,1"` // the beacon is on
	_       reserved `mad:"1,31"`
}
