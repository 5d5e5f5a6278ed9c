package mad

// ComponentMask says which components of a record a request specifies: bit n is the n-th field of the record, reserved ones
// counted too (IBTA volume 1, 15.2.1.3).
type ComponentMask uint64

// Has reports whether all of the components are given.
func (m ComponentMask) Has(all ComponentMask) bool { return m&all == all }

// Components of a NodeRecord.
const (
	NodeComponentLID ComponentMask = 1 << iota
	_
	NodeComponentBaseVersion
	NodeComponentClassVersion
	NodeComponentNodeType
	NodeComponentNumPorts
	NodeComponentSystemImageGUID
	NodeComponentNodeGUID
	NodeComponentPortGUID
	NodeComponentPartitionCap
	NodeComponentDeviceID
	NodeComponentRevision
	NodeComponentLocalPortNum
	NodeComponentVendorID
	NodeComponentNodeDescription
)

// Components of a PortInfoRecord that are more than a value to compare.
const (
	PortInfoComponentEndportLID      ComponentMask = 1 << 0
	PortInfoComponentPortNum         ComponentMask = 1 << 1
	PortInfoComponentOptions         ComponentMask = 1 << 2
	PortInfoComponentMKey            ComponentMask = 1 << 3
	PortInfoComponentLID             ComponentMask = 1 << 5
	PortInfoComponentCapabilityMask  ComponentMask = 1 << 7
	PortInfoComponentCapabilityMask2 ComponentMask = 1 << 53
)

// Components of an SLtoVLMappingTableRecord.
const (
	SLtoVLComponentLID           ComponentMask = 1 << 0
	SLtoVLComponentInputPortNum  ComponentMask = 1 << 1
	SLtoVLComponentOutputPortNum ComponentMask = 1 << 2
)

// Components of a SwitchInfoRecord.
const SwitchInfoComponentLID ComponentMask = 1 << 0

// Components of a LinearForwardingTableRecord and a RandomForwardingTableRecord.
const (
	ForwardingComponentLID      ComponentMask = 1 << 0
	ForwardingComponentBlockNum ComponentMask = 1 << 1
)

// Components of a MulticastForwardingTableRecord.
const (
	MulticastForwardingComponentLID      ComponentMask = 1 << 0
	MulticastForwardingComponentPosition ComponentMask = 1 << 1
	MulticastForwardingComponentBlockNum ComponentMask = 1 << 3
)

// Components of an SMInfoRecord.
const (
	SMInfoComponentLID ComponentMask = 1 << iota
	_
	SMInfoComponentGUID
	SMInfoComponentSMKey
	SMInfoComponentActCount
	SMInfoComponentPriority
	SMInfoComponentSMState
)

// Components of a LinkRecord.
const (
	LinkComponentFromLID ComponentMask = 1 << iota
	LinkComponentFromPort
	LinkComponentToPort
	LinkComponentToLID
)

// Components of a GUIDInfoRecord.
const (
	GUIDInfoComponentLID      ComponentMask = 1 << 0
	GUIDInfoComponentBlockNum ComponentMask = 1 << 1

	guidInfoFirst = 4
)

// GUIDInfoComponentGUID is the component of entry i, 0 to 7, of a GUIDInfoRecord.
func GUIDInfoComponentGUID(i int) ComponentMask { return 1 << (guidInfoFirst + i&(GUIDsPerBlock-1)) }

// Components of a ServiceRecord. Those of the data follow, one for each element.
const (
	ServiceComponentServiceID ComponentMask = 1 << iota
	ServiceComponentServiceGID
	ServiceComponentServicePKey
	_
	ServiceComponentServiceLease
	ServiceComponentServiceKey
	ServiceComponentServiceName
)

// Components of a PKeyTableRecord.
const (
	PKeyTableComponentLID      ComponentMask = 1 << 0
	PKeyTableComponentBlockNum ComponentMask = 1 << 1
	PKeyTableComponentPortNum  ComponentMask = 1 << 2
)

// Components of a PathRecord.
const (
	PathComponentServiceID8MSB ComponentMask = 1 << iota
	PathComponentServiceID56LSB
	PathComponentDGID
	PathComponentSGID
	PathComponentDLID
	PathComponentSLID
	PathComponentRawTraffic
	_
	PathComponentFlowLabel
	PathComponentHopLimit
	PathComponentTClass
	PathComponentReversible
	PathComponentNumbPath
	PathComponentPKey
	PathComponentQoSClass
	PathComponentSL
	PathComponentMTUSelector
	PathComponentMTU
	PathComponentRateSelector
	PathComponentRate
	PathComponentPacketLifeTimeSelector
	PathComponentPacketLifeTime
	PathComponentPreference
)

// PathServiceID are both components of the ServiceID of a PathRecord: one without the
// other is an error.
const PathServiceID = PathComponentServiceID8MSB | PathComponentServiceID56LSB

// Components of a VLArbitrationTableRecord.
const (
	VLArbitrationComponentLID           ComponentMask = 1 << 0
	VLArbitrationComponentOutputPortNum ComponentMask = 1 << 1
	VLArbitrationComponentBlockNum      ComponentMask = 1 << 2
)

// Components of an MCMemberRecord.
const (
	MCMemberComponentMGID ComponentMask = 1 << iota
	MCMemberComponentPortGID
	MCMemberComponentQKey
	MCMemberComponentMLID
	MCMemberComponentMTUSelector
	MCMemberComponentMTU
	MCMemberComponentTClass
	MCMemberComponentPKey
	MCMemberComponentRateSelector
	MCMemberComponentRate
	MCMemberComponentPacketLifeTimeSelector
	MCMemberComponentPacketLifeTime
	MCMemberComponentSL
	MCMemberComponentFlowLabel
	MCMemberComponentHopLimit
	MCMemberComponentScope
	MCMemberComponentJoinState
	MCMemberComponentProxyJoin
)

// Components that a Set or Delete of an MCMemberRecord must have (IBTA volume 1, 15.2.5.17.2).
const (
	// MCMemberJoin is for joining and leaving.
	MCMemberJoin = MCMemberComponentMGID | MCMemberComponentPortGID | MCMemberComponentJoinState
	// MCMemberCreate is for creating a group.
	MCMemberCreate = MCMemberJoin | MCMemberComponentQKey | MCMemberComponentPKey | MCMemberComponentTClass |
		MCMemberComponentFlowLabel | MCMemberComponentSL
)

// Components of a TraceRecord.
const (
	TraceComponentGIDPrefix ComponentMask = 1 << iota
	TraceComponentIDGeneration
	_
	TraceComponentNodeType
	TraceComponentNodeID
	TraceComponentChassisID
	TraceComponentEntryPortID
	TraceComponentExitPortID
	TraceComponentEntryPort
	TraceComponentExitPort
)

// Components of a MultiPathRecord. Its GIDs have none.
const (
	MultiPathComponentRawTraffic ComponentMask = 1 << iota
	_
	MultiPathComponentFlowLabel
	MultiPathComponentHopLimit
	MultiPathComponentTClass
	MultiPathComponentReversible
	MultiPathComponentNumbPath
	MultiPathComponentPKey
	MultiPathComponentQoSClass
	MultiPathComponentSL
	MultiPathComponentMTUSelector
	MultiPathComponentMTU
	MultiPathComponentRateSelector
	MultiPathComponentRate
	MultiPathComponentPacketLifeTimeSelector
	MultiPathComponentPacketLifeTime
	MultiPathComponentServiceID8MSB
	MultiPathComponentIndependenceSelector
	_
	MultiPathComponentSGIDCount
	MultiPathComponentDGIDCount
	MultiPathComponentServiceID56LSB
)

// MultiPathServiceID are both components of the ServiceID of a MultiPathRecord: one
// without the other is an error.
const MultiPathServiceID = MultiPathComponentServiceID8MSB | MultiPathComponentServiceID56LSB

// Components of an InformInfoRecord.
const (
	InformInfoComponentSubscriberGID ComponentMask = 1 << iota
	InformInfoComponentEnum
	_
	InformInfoComponentGID
	InformInfoComponentLIDRangeBegin
	InformInfoComponentLIDRangeEnd
	_
	InformInfoComponentIsGeneric
	InformInfoComponentSubscribe
	InformInfoComponentType
	InformInfoComponentTrapNumber
	InformInfoComponentQPN
	_
	InformInfoComponentRespTimeValue
	_
	InformInfoComponentProducerType
)
