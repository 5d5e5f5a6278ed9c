package mad

import "portcullis/fabricsm/ib"

// HierarchyInfo says where in a system a port sits (attribute 0x001E), if
// CapabilityMask says IsHierarchyInfoSupported. The modifier is the index in
// bits 15..8 and the port in bits 7..0. The layout is that of NVIDIA's SM
// headers.
type HierarchyInfo struct {
	TemplateGUID      ib.GUID    `mad:"0,64"`  // names the template that defines the levels
	MaxSupportedIndex uint8      `mad:"64,8"`  // highest index there can be
	MaxActiveIndex    uint8      `mad:"72,8"`  // highest index in use
	ActiveLevels      uint8      `mad:"80,8"`  // levels in use
	_                 reserved   `mad:"88,8"`  //
	Level             [13]uint32 `mad:"96,32"` // outermost first
}
