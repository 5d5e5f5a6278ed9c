package portpolicy

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// ruleKey finds a rule.
type ruleKey struct {
	guid ib.GUID
	num  ib.PortNum
}

// Rules is policy by port. Use New.
type Rules struct {
	topo   *topo.Builder
	config *Config
	byPort map[ruleKey]*Rule
}

// New returns the rules of a configuration, which must not change its Rules afterwards.
func New(t *topo.Builder, c *Config) Rules {
	r := Rules{topo: t, config: c}
	if len(c.Rules) == 0 {
		return r
	}
	r.byPort = make(map[ruleKey]*Rule, len(c.Rules))
	for i := range c.Rules {
		r.byPort[ruleKey{c.Rules[i].GUID, c.Rules[i].Port}] = &c.Rules[i]
	}
	return r
}

// Any reports whether there are exceptions.
func (r *Rules) Any() bool { return len(r.byPort) > 0 }

// of returns the rule for a port, nil when there is none: one that names the port comes before one for its whole node.
func (r *Rules) of(p topo.PortID) *Rule {
	if len(r.byPort) == 0 {
		return nil
	}
	end := r.topo.LinkEnd(p)
	for _, k := range [3]ruleKey{{end.Switch, end.Port}, {r.topo.GUIDOf(p), 0}, {end.Switch, 0}} {
		if rule := r.byPort[k]; rule != nil && k.guid != 0 {
			return rule
		}
	}
	return nil
}

// Maxima returns the largest MTU and number of VLs that policy allows a port.
func (r *Rules) Maxima(p topo.PortID) (ib.MTU, ib.VLCap) {
	mtu, vls := r.config.MaxMTU, r.config.MaxOperationalVLs
	if rule := r.of(p); rule != nil {
		if rule.MaxMTU != 0 {
			mtu = rule.MaxMTU
		}
		if rule.MaxVLs != 0 {
			vls = rule.MaxVLs
		}
	}
	return mtu, vls
}

// LinkOf returns which speeds and widths of a port are enabled.
func (r *Rules) LinkOf(p topo.PortID) Link {
	if rule := r.of(p); rule != nil && rule.Link != (Link{}) {
		return rule.Link
	}
	return r.config.Link
}

// FDR10 says whether policy enables FDR10 on a port, or disables it; has is false if it leaves that as it is.
func (r *Rules) FDR10(p topo.PortID) (enable, has bool) {
	most := r.LinkOf(p).MaxSpeed
	return most >= ib.FDR10, most != 0
}

// SwitchesOff reports whether a rule keeps a switch port switched off.
func (r *Rules) SwitchesOff(p topo.PortID) bool {
	rule := r.of(p)
	return rule != nil && rule.Disabled && r.topo.IsExternal(p)
}

// WantLink adds the masks of enabled speeds and widths to the wanted PortInfo of a port, as they read back, and reports
// which of them policy decides. A mask that would be empty is left as it is.
func (r *Rules) WantLink(p topo.PortID, w *mad.PortInfo) (width, speed bool) {
	pol := r.LinkOf(p)
	if pol.MaxWidth != 0 {
		if mask := w.LinkWidthSupported & pol.MaxWidth.UpTo(); mask != 0 {
			w.LinkWidthEnabled, width = mask, true
		}
	}
	if pol.MaxSpeed == 0 {
		return width, false
	}
	mask, ext, ext2 := pol.MaxSpeed.Masks()
	if mask &= w.LinkSpeedSupported; mask == 0 {
		return width, false
	}
	w.LinkSpeedEnabled = mask
	w.LinkSpeedExtEnabled = uint8(ext & w.LinkSpeedExtSupported)
	if ext2 &= ib.LinkSpeedExt2(w.LinkSpeedExtSupported2); ext2 != 0 {
		w.LinkSpeedExtEnabled2 = uint8(ext2) // how to disable it is not documented
	}
	return width, true
}

// Values in a Set of PortInfo for masks of enabled speeds.
const (
	speedNop = 0  // leave as it is
	extNone  = 30 // LinkSpeedExtEnabled: no extended speed
)

// SetLink turns masks as they are wanted into what a Set says: only those that
// differ.
func SetLink(want *mad.PortInfo, widthDiffers, speedDiffers bool) {
	if !widthDiffers {
		want.LinkWidthEnabled = 0
	}
	if !speedDiffers {
		want.LinkSpeedEnabled, want.LinkSpeedExtEnabled, want.LinkSpeedExtEnabled2 = speedNop, speedNop, speedNop
	} else if want.LinkSpeedExtEnabled == 0 && want.LinkSpeedExtSupported != 0 {
		want.LinkSpeedExtEnabled = extNone
	}
}
