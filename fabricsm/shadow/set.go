package shadow

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// canWrite reports whether a Set of an attribute is understood here. A Notice is written to clear it, and a SMInfo to command
// another Subnet Manager.
func canWrite(a mad.AttrID) bool {
	switch a {
	case mad.AttrPortInfo, mad.AttrSwitchInfo, mad.AttrPKeyTable, mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable,
		mad.AttrSLtoVLMappingTable, mad.AttrVLArbitration, mad.AttrGUIDInfo, mad.AttrMlnxExtendedPortInfo:
		return true
	default:
		return false
	}
}

// readable returns the modifier by which the place of a request can be read: a SL-to-VL table that is written for all input
// ports at once is read for one of them.
func readable(a mad.AttrID, mod uint32, at end) uint32 {
	if a != mad.AttrSLtoVLMappingTable {
		return mod
	}
	if mod&mad.SLtoVLAllInputs != 0 {
		mod = mod&^(mad.SLtoVLAllInputs|0xFF00) | uint32(at.port)<<8
	}
	if mod&mad.SLtoVLAllOutputs != 0 {
		mod = mod&^(mad.SLtoVLAllOutputs|0xFF) | uint32(at.port)
	}
	return mod
}

// placeOf returns where in a device a request reads or writes.
func placeOf(d *device, at end, a mad.AttrID, mod uint32) (place, bool) {
	sw := d.info.NodeType == ib.NodeSwitch
	port := func(named uint32) ib.PortNum { // of a switch; that of an adapter is the one it came in by
		switch {
		case sw:
			return ib.PortNum(named & 0xFF)
		case a == mad.AttrPortInfo && named&0xFF != 0:
			return ib.PortNum(named & 0xFF)
		default:
			return at.port
		}
	}
	switch a {
	case mad.AttrPortInfo, mad.AttrMlnxExtendedPortInfo:
		return place{port(mod), a, 0}, true
	case mad.AttrPKeyTable:
		return place{port(mod >> 16), a, mod & 0xFFFF}, true
	case mad.AttrSLtoVLMappingTable:
		if mod&mad.SLtoVLAllInputs != 0 {
			mod = readable(a, mod, at)
		}
		return place{port(mod), a, mod >> 8 & 0xFF}, true
	case mad.AttrVLArbitration:
		return place{port(mod), a, mod >> 16}, true
	case mad.AttrGUIDInfo:
		return place{port(0), a, mod}, true
	case mad.AttrSwitchInfo, mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable:
		return place{0, a, mod}, true
	default:
		return place{}, false
	}
}

// set does what a Set asks for.
func (o *overlay) set(at end, d *device, where place, c *cell, a *asked) {
	before := c.now()
	v := a.data
	switch a.attr {
	case mad.AttrPortInfo:
		v = o.setPortInfo(at, d, where.port, a, &before)
	case mad.AttrSwitchInfo:
		v = setSwitchInfo(&a.data, &before)
	case mad.AttrGUIDInfo:
		if a.mod == 0 {
			copy(v[:8], before[:8]) // the port GUID
		}
	case mad.AttrMlnxExtendedPortInfo:
		v = setExtended(&a.data, &before)
	case mad.AttrSLtoVLMappingTable:
		if a.mod&mad.SLtoVLAllInputs != 0 {
			for other, x := range d.cells {
				if other.attr == a.attr && other.port == where.port {
					x.write(&v)
				}
			}
		}
	default:
	}
	c.write(&v)
	n := o.sets[a.attr]
	if n == nil {
		n = &Sets{}
		o.sets[a.attr] = n
	}
	n.Sent++
	if v != before {
		n.Changing++
	}
}

func setSwitchInfo(data, before *image) image {
	var want, have mad.SwitchInfo
	if mad.Decode(data[:], &want) != nil || mad.Decode(before[:], &have) != nil {
		return *before
	}
	have.LinearFDBTop, have.DefaultPort = want.LinearFDBTop, want.DefaultPort
	have.DefaultMulticastPrimaryPort, have.DefaultMulticastNotPrimaryPort = want.DefaultMulticastPrimaryPort, want.DefaultMulticastNotPrimaryPort
	have.LifeTimeValue, have.MulticastFDBTop = want.LifeTimeValue, want.MulticastFDBTop
	have.PortStateChange = have.PortStateChange && !want.PortStateChange
	return encoded(&have, before)
}

func setExtended(data, before *image) image {
	var want, have mad.MlnxExtendedPortInfo
	if mad.Decode(data[:], &want) != nil || mad.Decode(before[:], &have) != nil {
		return *before
	}
	have.LinkSpeedEnabled = want.LinkSpeedEnabled
	return encoded(&have, before)
}

// encoded returns the data of an attribute.
func encoded[T any](v *T, before *image) image {
	out := *before
	mad.MustEncode(out[:], v)
	return out
}

// Values of enabled masks in a Set that are not masks (IBTA volume 1, 14.2.5.6).
const (
	widthAll        = 255
	speedAll        = 15
	extNone, extAll = 30, 31
	ext2All         = 7
)

// setPortInfo returns PortInfo as it would be after a Set.
func (o *overlay) setPortInfo(at end, d *device, num ib.PortNum, a *asked, before *image) image {
	var want, have mad.PortInfo
	if mad.Decode(a.data[:], &want) != nil || mad.Decode(before[:], &have) != nil {
		return *before
	}
	if d.info.NodeType == ib.NodeSwitch && num != 0 {
		have.PartitionEnforcementInbound, have.PartitionEnforcementOutbound = want.PartitionEnforcementInbound, want.PartitionEnforcementOutbound
		have.FilterRawInbound, have.FilterRawOutbound = want.FilterRawInbound, want.FilterRawOutbound
	} else {
		o.setEnd(d, num, a, &have, &want)
	}
	if d.info.NodeType != ib.NodeSwitch || num != 0 {
		setLink(&have, &want)
		o.setState(end{at.node, num}, &have, &want)
	}
	return encoded(&have, before)
}

// setEnd takes the fields of an end port.
func (o *overlay) setEnd(d *device, num ib.PortNum, a *asked, have, want *mad.PortInfo) {
	if !want.MKey.Equal(have.MKey) {
		h := d.held[num]
		if h == nil {
			h = &held{}
			d.held[num] = h
		}
		if !h.changed {
			h.real = a.question.key
		}
		h.changed, h.wanted = true, want.MKey
	}
	if want.ClientReregister {
		o.renewals++
	}
	have.MKey, have.GIDPrefix, have.LID, have.LMC = want.MKey, want.GIDPrefix, want.LID, want.LMC
	have.MasterSMLID, have.MasterSMSL = want.MasterSMLID, want.MasterSMSL
	have.MKeyLeasePeriod, have.MKeyProtectBits = want.MKeyLeasePeriod, want.MKeyProtectBits
	have.SubnetTimeOut = want.SubnetTimeOut
	have.MulticastPKeyTrapSuppressionEnabled = want.MulticastPKeyTrapSuppressionEnabled
	for _, counter := range []struct{ have, want *uint16 }{
		{&have.MKeyViolations, &want.MKeyViolations}, {&have.PKeyViolations, &want.PKeyViolations}, {&have.QKeyViolations, &want.QKeyViolations},
	} {
		if *counter.want == 0 {
			*counter.have = 0
		}
	}
}

// setLink takes the fields of a link.
func setLink(have, want *mad.PortInfo) {
	switch want.LinkWidthEnabled {
	case 0:
	case widthAll:
		have.LinkWidthEnabled = have.LinkWidthSupported
	default:
		have.LinkWidthEnabled = want.LinkWidthEnabled
	}
	switch want.LinkSpeedEnabled {
	case 0:
	case speedAll:
		have.LinkSpeedEnabled = have.LinkSpeedSupported
	default:
		have.LinkSpeedEnabled = want.LinkSpeedEnabled
	}
	switch want.LinkSpeedExtEnabled {
	case 0:
	case extNone:
		have.LinkSpeedExtEnabled = 0
	case extAll:
		have.LinkSpeedExtEnabled = uint8(have.LinkSpeedExtSupported)
	default:
		have.LinkSpeedExtEnabled = want.LinkSpeedExtEnabled
	}
	switch want.LinkSpeedExtEnabled2 {
	case 0:
	case ext2All:
		have.LinkSpeedExtEnabled2 = have.LinkSpeedExtSupported2
	default:
		have.LinkSpeedExtEnabled2 = want.LinkSpeedExtEnabled2
	}
	if want.LinkDownDefaultState != ib.PhysNop {
		have.LinkDownDefaultState = want.LinkDownDefaultState
	}
	if want.OperationalVLs != 0 {
		have.OperationalVLs = want.OperationalVLs
	}
	have.NeighborMTU = want.NeighborMTU
	have.VLHighLimit, have.VLStallCount, have.HOQLife = want.VLHighLimit, want.VLStallCount, want.HOQLife
	have.LocalPhyErrors, have.OverrunErrors = want.LocalPhyErrors, want.OverrunErrors
}

// setState moves a port, and the one at the other end of its link.
func (o *overlay) setState(at end, have, want *mad.PortInfo) {
	switch {
	case want.PortState == ib.PortArmed || want.PortState == ib.PortActive:
		have.PortState = want.PortState
		return
	case want.PortState != ib.PortDown && want.PortPhysicalState == ib.PhysNop:
		return
	}
	far := o.links[at]
	o.bounced[at], o.bounced[far] = true, true
	state, phys := ib.PortInit, ib.PhysLinkUp // a link that is only taken down trains again
	if want.PortPhysicalState != ib.PhysNop && want.PortPhysicalState != ib.PhysPolling {
		state, phys = ib.PortDown, want.PortPhysicalState
	}
	o.cut[at] = state == ib.PortDown
	have.PortState, have.PortPhysicalState = state, phys
	d := o.devices[far.node]
	if d == nil {
		return
	}
	if c := d.cells[place{far.port, mad.AttrPortInfo, 0}]; c != nil {
		var pi mad.PortInfo
		v := c.now()
		if mad.Decode(v[:], &pi) == nil {
			pi.PortState = state
			if pi.PortPhysicalState = ib.PhysLinkUp; state == ib.PortDown {
				pi.PortPhysicalState = ib.PhysPolling
			}
			v = encoded(&pi, &v)
			c.write(&v)
		}
	}
}
