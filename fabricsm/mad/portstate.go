package mad

import "portcullis/fabricsm/ib"

// SwitchPortStateTable is the states of 128 ports of a switch (attribute
// 0x0034), if CapabilityMask2 says IsSwitchPortStateTableSupported. Entry i of
// block b is port 128*b+i. The layout is that of NVIDIA's SM headers; it also
// serves for virtual ports (VPortState).
type SwitchPortStateTable struct {
	PortState [128]ib.PortState `mad:"0,4"`
}
