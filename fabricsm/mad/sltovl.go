package mad

import "portcullis/fabricsm/ib"

// SLtoVLMappingTable maps service levels to virtual lanes (attribute 0x0017;
// IBTA volume 1, 14.2.5.8): one table for each pair of input and output port
// of a switch, one for a port of a CA or router.
type SLtoVLMappingTable struct {
	VL [16]ib.VL `mad:"0,4"` // by SL; VL15 drops the packet
}

// Wildcards of the SLtoVLMappingTable modifier, if
// SwitchInfo.OptimizedSLtoVLMappingProgramming has bit 0.
const (
	SLtoVLAllOutputs = 1 << 16
	SLtoVLAllInputs  = 1 << 17
)

// SLtoVLMod is the attribute modifier for packets from port in to port out of
// a switch; both are 0 for a CA or router.
func SLtoVLMod(in, out ib.PortNum) uint32 { return uint32(in)<<8 | uint32(out) }
