package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

// Values of enabled masks in a Set that are not masks.
const (
	widthNop, widthAll      = 0, 255
	speedNop, speedAll      = 0, 15
	extNop, extNone, extAll = 0, 30, 31
	ext2Nop, ext2All        = 0, 7
	localPortNumByte        = 28 // of PortInfo
	mkeySize                = 8  // of the M_Key, which it begins with
)

// portInfo answers PortInfo. The modifier's low byte names the port; its top
// bit, which says the requester understands extended speeds, changes nothing
// here.
func (p *port) portInfo(m *mad.MAD, set bool, a guard.Access) mad.Status {
	at := p.selected(m.Mod() & 0xFF)
	if at == nil || m.Mod()&^(0xFF|mad.PortInfoExtSpeeds) != 0 {
		return mad.StatusInvalidField
	}
	status := mad.StatusOK
	if set {
		status = at.setPortInfo(p, m)
	}
	data := m.Data()
	copy(data, at.image[:])
	data[localPortNumByte] = byte(p.num)
	if a == guard.Blind {
		clear(data[:mkeySize])
	}
	return status
}

// setPortInfo applies a Set, or nothing of it if a field is not legal. asked
// is the port it came in by: a CA takes a Set for another of its ports only
// from there.
func (p *port) setPortInfo(asked *port, m *mad.MAD) mad.Status {
	var want mad.PortInfo
	must(mad.Decode(m.Data(), &want))
	if p.node.sw == nil && p != asked {
		return mad.StatusInvalidField
	}
	if !p.legal(&want) || !p.legalState(&want) {
		return mad.StatusInvalidField
	}
	before := p.info
	p.takeLink(&want)
	if p.isEnd() {
		p.takeEnd(&want)
	} else {
		p.takeExternal(&want)
	}
	p.commit()
	p.takeState(&want)
	p.noteEnabledChange(&before)
	return mad.StatusOK
}

// legal checks the ranges of the values of a Set (IBTA volume 1, 14.2.5.6).
func (p *port) legal(want *mad.PortInfo) bool {
	have := &p.info
	if p.isEnd() {
		top := int(want.LID) + 1<<want.LMC - 1
		if want.LID != 0 && (!want.LID.IsUnicast() || top > int(ib.MaxUnicastLID)) {
			return false
		}
		if p.node.sw != nil {
			return want.LMC == 0 || p.node.sw.enhancedPort0 // a base port 0 has one LID, and no link
		}
	}
	width := want.LinkWidthEnabled == widthNop || want.LinkWidthEnabled == widthAll ||
		want.LinkWidthEnabled&^have.LinkWidthSupported == 0
	speed := want.LinkSpeedEnabled == speedNop || want.LinkSpeedEnabled == speedAll ||
		want.LinkSpeedEnabled&^have.LinkSpeedSupported == 0
	ext := want.LinkSpeedExtEnabled == extNop || want.LinkSpeedExtEnabled == extNone || want.LinkSpeedExtEnabled == extAll ||
		want.LinkSpeedExtEnabled&^uint8(have.LinkSpeedExtSupported) == 0
	ext2 := want.LinkSpeedExtEnabled2 == ext2Nop || want.LinkSpeedExtEnabled2 == ext2All ||
		want.LinkSpeedExtEnabled2&^have.LinkSpeedExtSupported2 == 0
	return width && speed && ext && ext2 &&
		want.NeighborMTU >= ib.MTU256 && want.NeighborMTU <= have.MTUCap &&
		want.OperationalVLs <= have.VLCap && want.LinkDownDefaultState <= ib.PhysPolling
}

// legalState checks a state change: Init to Armed, Armed to Active, anything
// to Down; physically Sleep, Polling or Disabled.
func (p *port) legalState(want *mad.PortInfo) bool {
	if p.node.sw != nil && p.num == 0 {
		return true // ignored
	}
	switch want.PortState {
	case ib.PortNop, ib.PortDown:
	case ib.PortArmed:
		if p.info.PortState != ib.PortInit {
			return false
		}
	case ib.PortActive:
		if p.info.PortState != ib.PortArmed {
			return false
		}
	default:
		return false
	}
	return want.PortPhysicalState <= ib.PhysDisabled &&
		(want.PortPhysicalState == ib.PhysNop || want.PortState <= ib.PortDown)
}

// takeLink takes the fields that every port has.
func (p *port) takeLink(want *mad.PortInfo) {
	have := &p.info
	if p.node.sw != nil && p.num == 0 {
		if p.node.sw.enhancedPort0 {
			p.takeLanes(want)
		}
		return
	}
	switch want.LinkWidthEnabled {
	case widthNop:
	case widthAll:
		have.LinkWidthEnabled = have.LinkWidthSupported
	default:
		have.LinkWidthEnabled = want.LinkWidthEnabled
	}
	switch want.LinkSpeedEnabled {
	case speedNop:
	case speedAll:
		have.LinkSpeedEnabled = have.LinkSpeedSupported
	default:
		have.LinkSpeedEnabled = want.LinkSpeedEnabled
	}
	switch want.LinkSpeedExtEnabled {
	case extNop:
	case extNone:
		have.LinkSpeedExtEnabled = 0
	case extAll:
		have.LinkSpeedExtEnabled = uint8(have.LinkSpeedExtSupported)
	default:
		have.LinkSpeedExtEnabled = want.LinkSpeedExtEnabled
	}
	switch want.LinkSpeedExtEnabled2 {
	case ext2Nop:
	case ext2All:
		have.LinkSpeedExtEnabled2 = have.LinkSpeedExtSupported2
	default:
		have.LinkSpeedExtEnabled2 = want.LinkSpeedExtEnabled2
	}
	if want.LinkDownDefaultState != ib.PhysNop {
		have.LinkDownDefaultState = want.LinkDownDefaultState
	}
	p.takeLanes(want)
	have.VLHighLimit = want.VLHighLimit
	have.VLStallCount = want.VLStallCount
	have.HOQLife = want.HOQLife
	have.InitTypeReply = want.InitTypeReply
	have.LocalPhyErrors = want.LocalPhyErrors
	have.OverrunErrors = want.OverrunErrors
}

// takeLanes sets the link fields of an enhanced port 0.
func (p *port) takeLanes(want *mad.PortInfo) {
	if want.OperationalVLs != 0 {
		p.info.OperationalVLs = want.OperationalVLs
	}
	p.info.NeighborMTU = want.NeighborMTU
}

// takeEnd takes the fields of end ports. ClientReregister is a request to the
// node's software and reads as 0.
func (p *port) takeEnd(want *mad.PortInfo) {
	have := &p.info
	p.takeMKey(want.MKey)
	have.GIDPrefix = want.GIDPrefix
	p.reregister = p.host != nil && (p.reregister || want.ClientReregister)
	have.LID, have.LMC = want.LID, want.LMC
	have.MasterSMLID, have.MasterSMSL = want.MasterSMLID, want.MasterSMSL
	have.MKeyLeasePeriod = want.MKeyLeasePeriod
	have.MKeyProtectBits = want.MKeyProtectBits
	have.MulticastPKeyTrapSuppressionEnabled = want.MulticastPKeyTrapSuppressionEnabled
	have.SubnetTimeOut = want.SubnetTimeOut
	for _, counter := range []struct{ have, want *uint16 }{
		{&have.MKeyViolations, &want.MKeyViolations},
		{&have.PKeyViolations, &want.PKeyViolations},
		{&have.QKeyViolations, &want.QKeyViolations},
	} {
		if *counter.want == 0 {
			*counter.have = 0
		}
	}
}

// takeExternal takes the fields of the external ports of a switch.
func (p *port) takeExternal(want *mad.PortInfo) {
	have, sw := &p.info, p.node.sw
	have.PartitionEnforcementInbound = want.PartitionEnforcementInbound && sw.info.InboundEnforcementCap
	have.PartitionEnforcementOutbound = want.PartitionEnforcementOutbound && sw.info.OutboundEnforcementCap
	have.FilterRawInbound = want.FilterRawInbound && sw.info.FilterRawInboundCap
	have.FilterRawOutbound = want.FilterRawOutbound && sw.info.FilterRawOutboundCap
}

// takeState moves the port, and its peer, to the wanted state.
func (p *port) takeState(want *mad.PortInfo) {
	if p.node.sw != nil && p.num == 0 {
		return
	}
	far := p.peer
	switch {
	case want.PortState == ib.PortArmed || want.PortState == ib.PortActive:
		p.info.PortState = want.PortState
		p.commit()
		return
	case want.PortPhysicalState != ib.PhysNop:
		p.drop()
		p.info.PortPhysicalState = want.PortPhysicalState
		p.commit()
	case want.PortState == ib.PortDown:
		p.drop()
	default:
		return
	}
	if p.train() {
		far = p.peer
	}
	if far != nil {
		far.noteLinkChange()
		p.noteLinkChange()
	}
}

// noteEnabledChange reports changed enabled masks with trap 144.
func (p *port) noteEnabledChange(before *mad.PortInfo) {
	var flags mad.ChangeFlags
	if p.info.LinkWidthEnabled != before.LinkWidthEnabled {
		flags |= mad.LinkWidthEnabledChanged
	}
	if p.info.LinkSpeedEnabled != before.LinkSpeedEnabled {
		flags |= mad.LinkSpeedEnabledChanged
	}
	if p.info.LinkSpeedExtEnabled != before.LinkSpeedExtEnabled {
		flags |= mad.LinkSpeedExtEnabledChanged
	}
	if flags != 0 {
		p.endPort().sendLocalChangeTrap(flags)
	}
}
