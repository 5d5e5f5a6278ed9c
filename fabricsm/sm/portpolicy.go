package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// PortConfig holds the port parameters that are policy. Zero means default.
type PortConfig struct {
	MaxMTU            ib.MTU     // ceiling of NeighborMTU; default 4096
	MaxOperationalVLs ib.VLCap   // ceiling of OperationalVLs; default VL0-14
	SubnetTimeOut     ib.ExpTime // default 18, about 1 s
	PacketLifetime    ib.ExpTime // SwitchInfo.LifeTimeValue; default 18
	HOQLife           ib.ExpTime // towards switches; default 18
	LeafHOQLife       ib.ExpTime // towards CAs and routers; default 16
	VLStallCount      uint8      // towards switches, 1 to 7; default 7
	LeafVLStallCount  uint8      // towards CAs and routers, 1 to 7; default 7
	MasterSMSL        ib.SL      // default 0
	LocalPhyErrors    uint8      // threshold of trap 129; default 8
	OverrunErrors     uint8      // threshold of trap 130; default 8

	// Link is which speeds and widths are enabled; default: as found.
	Link LinkPolicy
	// Retrain takes a link down and up again once when it does not run at the values that both ends have enabled. Otherwise
	// a change waits for the next training.
	Retrain bool
	// LMCPort0 assigns as many LIDs to enhanced switch ports 0 as to hosts.
	LMCPort0 bool
	// NoReregister never asks clients to renew their registrations.
	NoReregister bool
	// Rules are exceptions for single ports. If two are for the same port, the later one counts.
	Rules []PortRule
}

// LinkPolicy says which speeds and widths of a port are enabled. The zero value leaves the enabled ones as they are:
// devices power on with all they support, and a port that an operator narrowed on a bad cable stays narrow.
type LinkPolicy struct {
	MaxSpeed ib.Speed     // all supported speeds up to this one; ib.XDR: all
	MaxWidth ib.LinkWidth // one bit: all supported widths up to this one; ib.Width12x: all
}

// PortRule is an exception for ports that are named by GUID. A zero field means
// as for all ports.
type PortRule struct {
	GUID     ib.GUID    // of a node, or of an end port
	Port     ib.PortNum // of that node; 0: all of its ports
	Link     LinkPolicy
	MaxMTU   ib.MTU
	MaxVLs   ib.VLCap
	Disabled bool // external ports of switches: the link is taken down and kept down
}

// ruleKey finds a rule.
type ruleKey struct {
	guid ib.GUID
	num  ib.PortNum
}

func indexRules(rules []PortRule) map[ruleKey]*PortRule {
	if len(rules) == 0 {
		return nil
	}
	m := make(map[ruleKey]*PortRule, len(rules))
	for i := range rules {
		m[ruleKey{rules[i].GUID, rules[i].Port}] = &rules[i]
	}
	return m
}

// ruleOf returns the rule for a port, nil when there is none: one that names the port comes before one for its whole node.
func (c *Core) ruleOf(p topo.PortID) *PortRule { return c.ruleIn(c.rules, p) }

func (c *Core) ruleIn(rules map[ruleKey]*PortRule, p topo.PortID) *PortRule {
	if len(rules) == 0 {
		return nil
	}
	pt := &c.ports[p]
	node := c.topo.NodeGUID(pt.node)
	for _, k := range [3]ruleKey{{node, pt.num}, {c.topo.GUIDOf(p), 0}, {node, 0}} {
		if r := rules[k]; r != nil && k.guid != 0 {
			return r
		}
	}
	return nil
}

// maxima returns the largest MTU and number of VLs that policy allows a port.
func (c *Core) maxima(p topo.PortID) (ib.MTU, ib.VLCap) {
	mtu, vls := c.cfg.Ports.MaxMTU, c.cfg.Ports.MaxOperationalVLs
	if r := c.ruleOf(p); r != nil {
		if r.MaxMTU != 0 {
			mtu = r.MaxMTU
		}
		if r.MaxVLs != 0 {
			vls = r.MaxVLs
		}
	}
	return mtu, vls
}

func (c *Core) linkPolicy(p topo.PortID) LinkPolicy {
	if r := c.ruleOf(p); r != nil && r.Link != (LinkPolicy{}) {
		return r.Link
	}
	return c.cfg.Ports.Link
}

// wantLink adds the masks of enabled speeds and widths to the wanted PortInfo of a port, as they read back. A mask that
// would be empty is left as it is.
func (c *Core) wantLink(p topo.PortID, w *mad.PortInfo) (fields PortFields) {
	pol := c.linkPolicy(p)
	if pol.MaxWidth != 0 {
		if mask := w.LinkWidthSupported & pol.MaxWidth.UpTo(); mask != 0 {
			w.LinkWidthEnabled, fields = mask, FieldLinkWidth
		}
	}
	if pol.MaxSpeed == 0 {
		return fields
	}
	speed, ext, ext2 := pol.MaxSpeed.Masks()
	if speed &= w.LinkSpeedSupported; speed == 0 {
		return fields
	}
	w.LinkSpeedEnabled = speed
	w.LinkSpeedExtEnabled = uint8(ext & w.LinkSpeedExtSupported)
	if ext2 &= ib.LinkSpeedExt2(w.LinkSpeedExtSupported2); ext2 != 0 {
		w.LinkSpeedExtEnabled2 = uint8(ext2) // how to disable it is not documented
	}
	return fields | FieldLinkSpeed
}

// Values in a Set of PortInfo for masks of enabled speeds.
const (
	speedNop = 0  // leave as it is
	extNone  = 30 // LinkSpeedExtEnabled: no extended speed
)

// setLink turns masks as they are wanted into what a Set says: only those that
// differ.
func setLink(want *mad.PortInfo, differ PortFields) {
	if differ&FieldLinkWidth == 0 {
		want.LinkWidthEnabled = 0
	}
	if differ&FieldLinkSpeed == 0 {
		want.LinkSpeedEnabled, want.LinkSpeedExtEnabled, want.LinkSpeedExtEnabled2 = speedNop, speedNop, speedNop
	} else if want.LinkSpeedExtEnabled == 0 && want.LinkSpeedExtSupported != 0 {
		want.LinkSpeedExtEnabled = extNone
	}
}

// setMod is the attribute modifier of a Set of PortInfo. Devices take extended
// speeds from managers that say they know them.
func (c *Core) setMod(p topo.PortID, differ PortFields) uint32 {
	pt := &c.ports[p]
	ext := uint32(0)
	if differ&FieldLinkSpeed != 0 && c.capabilities(p).Has(mad.IsExtendedSpeedsSupported) {
		ext = mad.PortInfoExtSpeeds
	}
	return mad.PortInfoMod(pt.num, ext)
}

// capabilities returns the CapabilityMask that applies to a port: for a port of a switch, that of port 0.
func (c *Core) capabilities(p topo.PortID) mad.CapabilityMask {
	if c.topo.IsExternal(p) {
		p = c.topo.Node(c.ports[p].node).FirstPort
	}
	return c.ports[p].info.CapabilityMask
}

// enhanced reports port 0 of a switch that has the parameters of an end port's
// link.
func (c *Core) enhanced(p topo.PortID) bool {
	pt := &c.ports[p]
	return pt.num == 0 && c.nodes[pt.node].infoKnown && c.nodes[pt.node].info.EnhancedPort0
}

// wantPort0 adds the wanted fields of an enhanced port 0.
func (c *Core) wantPort0(p topo.PortID, w *mad.PortInfo) (fields PortFields) {
	if !c.enhanced(p) {
		return 0
	}
	mtu, vls := c.maxima(p)
	if w.MTUCap >= ib.MTU256 {
		w.NeighborMTU, fields = min(w.MTUCap, mtu), FieldNeighborMTU
	}
	if w.VLCap >= 1 {
		w.OperationalVLs, fields = min(w.VLCap, vls), fields|FieldOperationalVLs
	}
	return fields
}

// wantHOQ adds the times at the head of a queue of a port that forwards: those
// of switches, and of routers.
func (c *Core) wantHOQ(p topo.PortID, w *mad.PortInfo) PortFields {
	cfg := &c.cfg.Ports
	if c.topo.IsEndPort(p) {
		if c.topo.Node(c.ports[p].node).Type != ib.NodeRouter {
			return 0
		}
		w.HOQLife = cfg.HOQLife
		return FieldHOQLife
	}
	w.VLStallCount, w.HOQLife = cfg.VLStallCount, cfg.HOQLife
	if c.topo.IsEndPort(c.topo.Peer(p)) {
		w.VLStallCount, w.HOQLife = cfg.LeafVLStallCount, cfg.LeafHOQLife
	}
	return FieldVLStallCount | FieldHOQLife
}

// holdDown takes the link of a switch port down that a rule disables, and
// reports whether there is such a rule. Our own link is never taken.
func (c *Core) holdDown(p topo.PortID) bool {
	r := c.ruleOf(p)
	if r == nil || !r.Disabled || !c.topo.IsExternal(p) || p == c.rootPort || c.topo.Peer(p) == c.rootPort && c.rootPort != topo.None {
		return false
	}
	pt := &c.ports[p]
	if !pt.known || pt.info.PortPhysicalState == ib.PhysDisabled {
		return true
	}
	c.takeDown(p, ib.PhysDisabled)
	return true
}

// takeDown takes the link of a port down, and says what follows: PhysNop, to come
// up again, or PhysDisabled. Nothing else is written.
func (c *Core) takeDown(p topo.PortID, phys ib.PhysState) {
	pt := &c.ports[p]
	want := pt.info
	want.PortState, want.PortPhysicalState = ib.PortDown, phys
	setLink(&want, 0)
	pt.setTried, pt.setState, pt.setRenews, pt.setKey = 0, ib.PortDown, false, false
	m := c.ask(work.OnPort(work.Set, p), pt.node, mad.MethodSet, mad.AttrPortInfo, mad.PortInfoMod(pt.num, 0))
	c.encode(mad.Encode(m.Data(), &want))
}
