package mad

import "portcullis/fabricsm/ib"

// RouterInfo is what NVIDIA's routers say of their tables (SMP attribute 0xFFD0).
// Older firmware has nothing after AdjacentSiteLocalSubnetsTableCap.
type RouterInfo struct {
	CapabilityMask                   uint32   `mad:"0,32,hex"`   //
	NextHopTableCap                  uint32   `mad:"32,32"`      // records
	NextHopTableTop                  uint32   `mad:"64,32"`      // records in use
	TableChanges                     uint16   `mad:"96,16,hex"`  // newer: which tables changed
	AdjacentSiteLocalSubnetsTableTop uint8    `mad:"112,8"`      // records in use
	AdjacentSiteLocalSubnetsTableCap uint8    `mad:"120,8"`      // records
	SupportedSubnets                 uint8    `mad:"128,8"`      // newer
	_                                reserved `mad:"136,8"`      //
	ARGroupToRouterLIDTableCap       uint16   `mad:"144,16"`     // newer: groups
	_                                reserved `mad:"160,7"`      //
	FastRecoveryEnabled              bool     `mad:"167,1"`      // newer
	AdjacentSubnetsRouterLIDInfo     uint8    `mad:"168,8"`      // newer: records in use
	RouterLIDCap                     uint16   `mad:"176,16"`     // newer: router LIDs
	MaxARGroup                       uint16   `mad:"192,12"`     // newer
	GlobalRouterLIDBase              uint32   `mad:"204,20,hex"` // newer
	_                                reserved `mad:"224,12"`     //
	GlobalRouterLIDTop               uint32   `mad:"236,20,hex"` // newer
	_                                reserved `mad:"256,12"`     //
	LocalRouterLIDBase               uint32   `mad:"268,20,hex"` // newer
	_                                reserved `mad:"288,12"`     //
	LocalRouterLIDTop                uint32   `mad:"300,20,hex"` // newer
}

// AdjacentSubnet is a subnet that another port of a router is in. The zero value
// is an empty record.
type AdjacentSubnet struct {
	PKey                ib.PKey  `mad:"0,16"`      // of the router's port there
	SubnetPrefix        uint16   `mad:"16,16,hex"` // lowest bits of the prefix there
	_                   reserved `mad:"32,3"`      //
	FastRecoveryEnabled bool     `mad:"35,1"`      // newer
	MaxARGroup          uint16   `mad:"36,12"`     // newer
	MasterSMLID         ib.LID   `mad:"48,16"`     // of the subnet manager there
}

// AdjacentSubnetsPerBlock is the number of records in one AdjacentSubnetsTable.
const AdjacentSubnetsPerBlock = 8

// AdjacentSubnetsTable is a block of AdjacentSiteLocalSubnetsTable of NVIDIA's
// routers (SMP attribute 0xFFD2). The modifier is the number of the block.
type AdjacentSubnetsTable struct {
	Subnet [AdjacentSubnetsPerBlock]AdjacentSubnet `mad:"0,64"`
}
