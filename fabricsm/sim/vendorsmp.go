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

// extendedPortInfo answers NVIDIA's MlnxExtendedPortInfo, in which nothing can
// be set here.
func (p *port) extendedPortInfo(m *mad.MAD, set bool) mad.Status {
	d := p.node.model()
	switch {
	case !d.isVendor() || set:
		return mad.StatusUnsupportedMethodAttr
	case p.selected(m.Mod()) == nil:
		return mad.StatusInvalidField
	}
	var e mad.MlnxExtendedPortInfo
	if d.DualMKey {
		e.CapabilityMask |= mad.MlnxDualMKey
	}
	clear(m.Data())
	must(mad.Encode(m.Data(), &e))
	return mad.StatusOK
}
