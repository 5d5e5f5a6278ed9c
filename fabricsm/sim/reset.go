package sim

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/perf"
)

// Properties of the simulated devices.
const (
	defaultLinearCap = 49152
	defaultMulticast = 1024
	partitionCap     = 64 // P_Key table entries of a CA port and of a switch's external port, if Device says nothing
	port0PartCap     = 8  // of switch port 0
	guidBlocks       = 4
	guidCap          = guidBlocks * mad.GUIDsPerBlock
	deviceRevision   = 0xA1

	slToVLSize = 8
	vlArbCap   = 8

	caCapabilities = mad.IsTrapSupported | mad.IsAutomaticMigrationSupported | mad.IsSLMappingSupported |
		mad.IsSystemImageGUIDSupported | mad.IsExtendedSpeedsSupported | mad.IsCapabilityMask2Supported |
		mad.IsCommunicationManagementSupported | mad.IsVendorClassSupported | mad.IsCapabilityMaskNoticeSupported |
		mad.IsClientReregistrationSupported | mad.IsOtherLocalChangesNoticeSupported
	switchCapabilities = mad.IsTrapSupported | mad.IsSLMappingSupported | mad.IsSystemImageGUIDSupported |
		mad.IsExtendedSpeedsSupported | mad.IsCapabilityMask2Supported | mad.IsVendorClassSupported |
		mad.IsCapabilityMaskNoticeSupported | mad.IsOtherLocalChangesNoticeSupported |
		mad.IsPKeySwitchExternalPortTrapSupported
)

// reset puts a node into the state after power-on. l, if not nil, has the LIDs that the netlist assigns.
func (n *node) reset(l *netlist.Node) {
	n.traps = nil
	n.smps.empty()
	n.hca.Boot()
	if n.sw != nil {
		n.sw.reset(&n.fabric.opts, n.model())
	}
	for _, p := range n.ports {
		if p == nil {
			continue
		}
		p.reset()
		if l != nil {
			p.info.LID, p.info.LMC = l.Ports[p.num].LID, l.Ports[p.num].LMC
		}
		p.commit()
	}
}

func (p *port) reset() {
	kept := p.keep()
	p.noFDR10 = false
	p.info = mad.PortInfo{
		LocalPortNum:         p.num,
		LinkWidthEnabled:     p.link.Width,
		LinkWidthSupported:   31,
		LinkWidthActive:      2,
		LinkSpeedSupported:   7,
		LinkSpeedActive:      1,
		LinkSpeedEnabled:     p.link.Speed,
		PortState:            ib.PortDown,
		PortPhysicalState:    ib.PhysPolling,
		LinkDownDefaultState: ib.PhysPolling,
		NeighborMTU:          ib.MTU256,
		MTUCap:               ib.MTU4096,
		VLCap:                4,
		OperationalVLs:       4,
		VLArbitrationHighCap: vlArbCap,
		VLArbitrationLowCap:  vlArbCap,
		RespTimeValue:        8,
	}
	if p.link.SpeedExt != 0 {
		p.info.LinkSpeedExtSupported = 15
		p.info.LinkSpeedExtEnabled = uint8(p.link.SpeedExt)
	}
	if p.link.SpeedExt2 != 0 {
		p.info.LinkSpeedExtSupported2 = uint8(ib.SpeedXDR)
		p.info.LinkSpeedExtEnabled2 = uint8(p.link.SpeedExt2)
	}
	if p.isEnd() {
		p.resetEnd()
	}
	p.resetTables()
	p.restore(kept)
	p.counters, p.notices = perf.Counters{}, noticeQueue{}
}

func (p *port) resetEnd() {
	p.info.GIDPrefix = ib.DefaultPrefix
	p.info.CapabilityMask = caCapabilities
	p.info.CapabilityMask2 = mad.IsLinkWidth2xSupported | mad.IsLinkSpeedHDRSupported
	for _, q := range p.node.ports {
		if q != nil && q.link.SpeedExt2 != 0 {
			p.info.CapabilityMask2 |= mad.IsExtendedSpeeds2Supported | mad.IsLinkSpeedXDRSupported
		}
	}
	if p.node.model().NoticeQueue > 0 {
		p.info.CapabilityMask |= mad.IsNoticeSupported
	}
	p.info.GUIDCap = guidCap
	p.info.SubnetTimeOut = 18
	p.info.LocalPhyErrors, p.info.OverrunErrors = 8, 8
	if p.node.sw == nil {
		return
	}
	// The management port of a switch has no link that could be down.
	p.info.CapabilityMask = switchCapabilities | p.info.CapabilityMask&mad.IsNoticeSupported
	if p.node.model().NoPKeyTraps {
		p.info.CapabilityMask &^= mad.IsPKeySwitchExternalPortTrapSupported
	}
	if p.node.sw.hasMulticastTop {
		p.info.CapabilityMask |= mad.IsMulticastFDBTopSupported
	}
	p.info.PortState, p.info.PortPhysicalState = ib.PortActive, ib.PhysLinkUp
}

func (p *port) resetTables() {
	p.pkeys = make([]byte, 2*p.pkeyCap())
	if len(p.pkeys) > 0 {
		binary.BigEndian.PutUint16(p.pkeys, uint16(ib.DefaultPKeyFull))
	}
	clear(p.guids[:])
	p.guids.setPort(p.guid)
	inputs := 1
	if p.node.sw != nil {
		inputs = len(p.node.ports)
	}
	p.slToVL = make([][slToVLSize]byte, inputs)
	for i := range p.slToVL {
		p.slToVL[i] = [slToVLSize]byte{0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67}
	}
	p.vlArb = [4][mad.DataSize]byte{}
	for vl := range vlArbCap {
		p.vlArb[mad.VLArbLow0-1][2*vl], p.vlArb[mad.VLArbLow0-1][2*vl+1] = byte(vl), 4
		p.vlArb[mad.VLArbHigh0-1][2*vl] = byte(vl)
	}
	p.encodeNodeInfo()
}

func (p *port) encodeNodeInfo() {
	must(mad.Encode(p.nodeInfo[:], &mad.NodeInfo{
		BaseVersion: 1, ClassVersion: 1, NodeType: p.node.typ, NumPorts: uint8(len(p.node.ports) - 1),
		SystemImageGUID: p.node.systemGUID, NodeGUID: p.node.guid, PortGUID: p.guid,
		PartitionCap: uint16(len(p.endPort().pkeys) / 2), DeviceID: p.node.device, Revision: deviceRevision,
		LocalPortNum: p.num, VendorID: p.node.vendor,
	}))
}

// commit makes the wire form of PortInfo follow a change.
func (p *port) commit() { must(mad.Encode(p.image[:], &p.info)) }

// must panics on an error that cannot occur: the buffers have the size of the attribute, and every field is checked against
// its range before it is stored.
func must(err error) {
	if err != nil {
		panic("sim: " + err.Error())
	}
}
