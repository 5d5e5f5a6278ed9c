package sim

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

// isVendor reports whether a device answers NVIDIA's SMPs.
func (d *Device) isVendor() bool {
	return d.DualMKey || d.CC != guard.Absent || d.VS != guard.Absent || d.N2N != guard.Absent
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
	if d.CC != guard.Absent {
		g.Set(mad.CapCongestionControl)
	}
	clear(m.Data())
	must(mad.Encode(m.Data(), &g))
	return mad.StatusOK
}

// hasFDR10 reports whether a port of NVIDIA can do FDR10 and nothing faster.
func (p *port) hasFDR10() bool {
	return p != nil && p.node.vendor == mad.VendorMellanox && p.link.FDR10 && p.link.SpeedExt == 0
}

// extendedPortInfo answers NVIDIA's MlnxExtendedPortInfo, in which only FDR10 can
// be set here: it counts when the link is next trained.
func (p *port) extendedPortInfo(m *mad.MAD, set bool) mad.Status {
	d := p.node.model()
	at := p.selected(m.Mod())
	switch {
	case !d.isVendor() && !at.hasFDR10() || set && !at.hasFDR10():
		return mad.StatusUnsupportedMethodAttr
	case at == nil:
		return mad.StatusInvalidField
	}
	var e mad.MlnxExtendedPortInfo
	if set {
		if err := mad.Decode(m.Data(), &e); err != nil {
			return mad.StatusInvalidField
		}
		if e.StateChangeEnable&mad.MlnxSetSpeedEnabled != 0 {
			at.noFDR10 = e.LinkSpeedEnabled&mad.MlnxSpeedFDR10 == 0
		}
		e = mad.MlnxExtendedPortInfo{}
	}
	if at.hasFDR10() {
		e.LinkSpeedSupported = mad.MlnxSpeedFDR10
		if !at.noFDR10 {
			e.LinkSpeedEnabled = mad.MlnxSpeedFDR10
		}
		if at.peer != nil && at.atFDR10 {
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
