package sim

import "portcullis/fabricsm/mad"

// isVendor reports a device that answers NVIDIA's SMPs.
func (d *Device) isVendor() bool {
	return d.DualMKey || d.CC != ClassAbsent || d.VS != ClassAbsent || d.N2N != ClassAbsent
}

// generalInfo answers NVIDIA's GeneralInfo, of which only the capability mask
// is public.
func (p *port) generalInfo(m *mad.MAD, set bool) mad.Status {
	d := p.node.model()
	switch {
	case !d.isVendor() || set:
		return mad.StatusUnsupportedMethodAttr
	case m.Mod() != mad.GeneralInfoCapabilitiesMod:
		return mad.StatusInvalidField
	}
	var g mad.GeneralInfoCapabilities
	if d.CC != ClassAbsent {
		g.Set(mad.CapCongestionControl)
	}
	clear(m.Data())
	must(mad.Encode(m.Data(), &g))
	return mad.StatusOK
}

// hasFDR10 reports a port of NVIDIA's that can do FDR10 and nothing faster.
func (p *port) hasFDR10() bool {
	return p != nil && p.node.vendor == mad.VendorMellanox && p.link.FDR10 && p.link.SpeedExt == 0
}

// extendedPortInfo answers NVIDIA's MlnxExtendedPortInfo, in which nothing can
// be set here.
func (p *port) extendedPortInfo(m *mad.MAD, set bool) mad.Status {
	d := p.node.model()
	at := p.selected(m.Mod())
	switch {
	case !d.isVendor() && !at.hasFDR10() || set:
		return mad.StatusUnsupportedMethodAttr
	case at == nil:
		return mad.StatusInvalidField
	}
	var e mad.MlnxExtendedPortInfo
	if at.hasFDR10() {
		e.LinkSpeedSupported, e.LinkSpeedEnabled = mad.MlnxSpeedFDR10, mad.MlnxSpeedFDR10
		if at.peer.hasFDR10() {
			e.LinkSpeedActive = mad.MlnxSpeedFDR10
		}
	}
	if d.DualMKey {
		e.CapabilityMask |= mad.MlnxDualMKey
	}
	clear(m.Data())
	must(mad.Encode(m.Data(), &e))
	return mad.StatusOK
}
