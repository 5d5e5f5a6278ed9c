package portset

import (
	"fmt"

	"portcullis/fabricsm/mad"
)

// Fields is a set of fields of PortInfo, and a few of SwitchInfo.
type Fields uint32

// Fields that this SM programs.
const (
	LID Fields = 1 << iota
	LMC
	GIDPrefix
	MasterSMLID
	MasterSMSL
	SubnetTimeOut
	NeighborMTU
	OperationalVLs
	VLStallCount
	HOQLife
	LinkDownDefaultState
	ErrorThresholds
	EnforcementInbound
	EnforcementOutbound
	FilterRaw
	LinkWidth
	LinkSpeed
	VLHighLimit
	MulticastFDBTop       // of SwitchInfo
	DefaultMulticastPorts // of SwitchInfo: both

	end
	LinkSpeeds  = LinkWidth | LinkSpeed
	Enforcement = EnforcementInbound | EnforcementOutbound
)

var fieldNames = [...]string{
	"LID", "LMC", "GIDPrefix", "MasterSMLID", "MasterSMSL", "SubnetTimeOut", "NeighborMTU", "OperationalVLs",
	"VLStallCount", "HOQLife", "LinkDownDefaultState", "LocalPhyErrors/OverrunErrors",
	"PartitionEnforcementInbound", "PartitionEnforcementOutbound", "FilterRaw", "LinkWidthEnabled", "LinkSpeedEnabled",
	"VLHighLimit", "MulticastFDBTop", "DefaultMulticastPrimaryPort/NotPrimaryPort",
}

// String lists the fields by their names in PortInfo.
func (f Fields) String() string {
	s := ""
	for i, name := range fieldNames {
		if f&(1<<i) == 0 {
			continue
		}
		if s != "" {
			s += ", "
		}
		s += name
	}
	if rest := f &^ (end - 1); rest != 0 {
		s += fmt.Sprintf(" 0x%x", uint32(rest))
	}
	return s
}

// Differing returns the fields in which two PortInfo differ.
func Differing(a, b *mad.PortInfo) (f Fields) {
	add := func(field Fields, differs bool) {
		if differs {
			f |= field
		}
	}
	add(LID, a.LID != b.LID)
	add(LMC, a.LMC != b.LMC)
	add(GIDPrefix, a.GIDPrefix != b.GIDPrefix)
	add(MasterSMLID, a.MasterSMLID != b.MasterSMLID)
	add(MasterSMSL, a.MasterSMSL != b.MasterSMSL)
	add(SubnetTimeOut, a.SubnetTimeOut != b.SubnetTimeOut)
	add(NeighborMTU, a.NeighborMTU != b.NeighborMTU)
	add(OperationalVLs, a.OperationalVLs != b.OperationalVLs)
	add(VLStallCount, a.VLStallCount != b.VLStallCount)
	add(HOQLife, a.HOQLife != b.HOQLife)
	add(LinkDownDefaultState, a.LinkDownDefaultState != b.LinkDownDefaultState)
	add(ErrorThresholds, a.LocalPhyErrors != b.LocalPhyErrors || a.OverrunErrors != b.OverrunErrors)
	add(EnforcementInbound, a.PartitionEnforcementInbound != b.PartitionEnforcementInbound)
	add(EnforcementOutbound, a.PartitionEnforcementOutbound != b.PartitionEnforcementOutbound)
	add(LinkWidth, a.LinkWidthEnabled != b.LinkWidthEnabled)
	add(LinkSpeed, a.LinkSpeedEnabled != b.LinkSpeedEnabled || a.LinkSpeedExtEnabled != b.LinkSpeedExtEnabled ||
		a.LinkSpeedExtEnabled2 != b.LinkSpeedExtEnabled2)
	add(VLHighLimit, a.VLHighLimit != b.VLHighLimit)
	add(FilterRaw, a.FilterRawInbound != b.FilterRawInbound || a.FilterRawOutbound != b.FilterRawOutbound)
	return f
}
