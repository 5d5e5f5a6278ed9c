// Package portset says how the parameters of a port are to be set.
//
// [Settings] compares what a port shows with policy, with what its link allows, and with what its device keeps. It asks a
// [Fabric] for what is known, and changes nothing. [State] is what became of the Sets of one port; the owner keeps it.
package portset

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/topo"
)

// Port is what is known of a port.
type Port struct {
	Info      *mad.PortInfo
	State     *State
	Node      topo.NodeID
	LID       ib.LID // that it is to have
	Num       ib.PortNum
	IsRead    bool
	IsAssumed bool // Info is a guess
}

func (p *Port) isSeen() bool { return p.IsRead || p.IsAssumed }

func (p *Port) showsBits() bool {
	return p.Info.PartitionEnforcementInbound && p.Info.PartitionEnforcementOutbound
}

// Fabric is what Settings asks of the core.
type Fabric interface {
	// Port returns what is known of a port.
	Port(topo.PortID) Port
	// Switch returns the SwitchInfo of a node, and whether it was read.
	Switch(topo.NodeID) (*mad.SwitchInfo, bool)
	// NotKept returns the fields that a device does not keep.
	NotKept(topo.NodeID) Fields
	// LMC returns the LMC that an end port is to have.
	LMC(topo.PortID) ib.LMC
	// SMLID returns our own LID, 0 before it is assigned.
	SMLID() ib.LID
	// SMSL returns the service level that an end port is to use towards this subnet manager.
	SMSL(topo.PortID) ib.SL
	// IsSibling reports whether a LID is that of a subnet manager which works with this one.
	IsSibling(ib.LID) bool
	// HighLimit returns the wanted VLHighLimit of a port, if there is one.
	HighLimit(topo.PortID) (limit uint8, ok bool)
	// CanMap reports whether the tables of virtual lanes of a port can be programmed.
	CanMap(topo.PortID) bool
	// HasKeys reports whether the P_Key table of a port is as it is to be.
	HasKeys(topo.PortID) bool
}

// Options are the settings of the owner that never change.
type Options struct {
	Prefix   ib.Prefix
	Accepted bool // enforcement bits need not be read back
	Controls controls.Ports
	OneLane  bool // the tables of virtual lanes are left alone
}

// Settings are the wanted parameters of all ports. Use New.
type Settings struct {
	fabric  Fabric
	topo    *topo.Builder
	rules   *portpolicy.Rules
	config  *portpolicy.Config
	options Options
}

// New returns the settings that follow from a configuration and its rules, which stay the caller's.
func New(f Fabric, t *topo.Builder, r *portpolicy.Rules, c *portpolicy.Config, o Options) Settings {
	return Settings{fabric: f, topo: t, rules: r, config: c, options: o}
}

// Want returns the wanted PortInfo, and which fields of it matter on this port.
func (s *Settings) Want(p topo.PortID) (w mad.PortInfo, fields Fields) {
	pt := s.fabric.Port(p)
	w = *pt.Info
	if s.topo.IsEndPort(p) {
		fields |= LID | LMC | GIDPrefix | MasterSMLID | MasterSMSL | SubnetTimeOut
		w.LID, w.LMC, w.GIDPrefix = pt.LID, s.fabric.LMC(p), s.options.Prefix
		// Never the values that the port showed: a misread answer would lock out every manager.
		w.MKey, w.MKeyProtectBits, w.MKeyLeasePeriod = ib.MKey{}, 0, 0
		w.MasterSMLID, w.MasterSMSL, w.SubnetTimeOut = s.fabric.SMLID(), s.fabric.SMSL(p), s.config.SubnetTimeOut
	}
	if pt.Num == 0 {
		return w, fields | s.wantPort0(p, &w)
	}
	fields |= s.wantLink(p, &pt, &w)
	if s.topo.IsEndPort(p) {
		return w, fields
	}
	return w, fields | s.wantFilters(p, &pt, &w)
}

// wantLink adds the fields of a port with a link.
func (s *Settings) wantLink(p topo.PortID, pt *Port, w *mad.PortInfo) Fields {
	fields := NeighborMTU | OperationalVLs | LinkDownDefaultState | ErrorThresholds
	peer := s.fabric.Port(s.topo.Peer(p))
	mtu, vls := s.rules.Maxima(p)
	if s.rules.Any() {
		far, farVLs := s.rules.Maxima(s.topo.Peer(p)) // one value for both ends
		mtu, vls = min(mtu, far), min(vls, farVLs)
	}
	w.NeighborMTU = max(ib.MTU256, min(pt.Info.MTUCap, peer.Info.MTUCap, mtu))
	w.OperationalVLs = max(1, min(pt.Info.VLCap, peer.Info.VLCap, vls))
	w.LinkDownDefaultState = ib.PhysPolling
	w.LocalPhyErrors, w.OverrunErrors = s.config.LocalPhyErrors, s.config.OverrunErrors
	width, speed := s.rules.WantLink(p, w)
	if width {
		fields |= LinkWidth
	}
	if speed {
		fields |= LinkSpeed
	}
	fields |= s.wantHOQ(p, pt, w)
	if limit, ok := s.fabric.HighLimit(p); ok {
		fields |= VLHighLimit
		w.VLHighLimit = limit
	}
	return fields
}

// wantFilters adds the fields of a switch port by which it checks packets.
func (s *Settings) wantFilters(p topo.PortID, pt *Port, w *mad.PortInfo) (fields Fields) {
	host := s.topo.IsEndPort(s.topo.Peer(p))
	si, _ := s.fabric.Switch(pt.Node)
	if s.canEnforce(si) {
		fields |= Enforcement
		w.PartitionEnforcementInbound, w.PartitionEnforcementOutbound = host, host
		if host && !s.fabric.HasKeys(p) {
			// Table first, bits second.
			w.PartitionEnforcementInbound, w.PartitionEnforcementOutbound = pt.Info.PartitionEnforcementInbound, pt.Info.PartitionEnforcementOutbound
		}
	}
	if si.FilterRawInboundCap && si.FilterRawOutboundCap && s.options.Controls.FiltersRaw() {
		fields |= FilterRaw
		w.FilterRawInbound, w.FilterRawOutbound = host, host
	}
	return fields
}

// IsEnhanced reports port 0 of a switch that has the parameters of an end port's link.
func (s *Settings) IsEnhanced(p topo.PortID) bool {
	pt := s.fabric.Port(p)
	if pt.Num != 0 {
		return false
	}
	si, isRead := s.fabric.Switch(pt.Node)
	return isRead && si.EnhancedPort0
}

// wantPort0 adds the wanted fields of an enhanced port 0.
func (s *Settings) wantPort0(p topo.PortID, w *mad.PortInfo) (fields Fields) {
	if !s.IsEnhanced(p) {
		return 0
	}
	mtu, vls := s.rules.Maxima(p)
	if w.MTUCap >= ib.MTU256 {
		w.NeighborMTU, fields = min(w.MTUCap, mtu), NeighborMTU
	}
	if w.VLCap >= 1 {
		w.OperationalVLs, fields = min(w.VLCap, vls), fields|OperationalVLs
	}
	return fields
}

// wantHOQ adds the times at the head of a queue of a port that forwards: those of switches, and of routers.
func (s *Settings) wantHOQ(p topo.PortID, pt *Port, w *mad.PortInfo) Fields {
	if s.topo.IsEndPort(p) {
		if s.topo.Node(pt.Node).Type != ib.NodeRouter {
			return 0
		}
		w.HOQLife = s.config.HOQLife
		return HOQLife
	}
	w.VLStallCount, w.HOQLife = s.config.VLStallCount, s.config.HOQLife
	if s.topo.IsEndPort(s.topo.Peer(p)) {
		w.VLStallCount, w.HOQLife = s.config.LeafVLStallCount, s.config.LeafHOQLife
	}
	return VLStallCount | HOQLife
}

// Tunes reports whether masks of speeds or widths of a port are still to be written.
func (s *Settings) Tunes(p topo.PortID) bool {
	want, fields := s.Want(p)
	pt := s.fabric.Port(p)
	return Differing(pt.Info, &want)&fields&LinkSpeeds&^s.fabric.NotKept(pt.Node) != 0
}

// Mod returns the attribute modifier of a Set of PortInfo that changes some fields. Devices take extended speeds from
// managers that say they know them.
func (s *Settings) Mod(p topo.PortID, differ Fields) uint32 {
	pt := s.fabric.Port(p)
	ext := uint32(0)
	if differ&LinkSpeed != 0 && s.capabilities(p, &pt).Has(mad.IsExtendedSpeedsSupported) {
		ext = mad.PortInfoExtSpeeds
	}
	return mad.PortInfoMod(pt.Num, ext)
}

// capabilities returns the CapabilityMask that applies to a port: for a port of a switch, that of port 0.
func (s *Settings) capabilities(p topo.PortID, pt *Port) mad.CapabilityMask {
	if s.topo.IsExternal(p) {
		first := s.fabric.Port(s.topo.Node(pt.Node).FirstPort)
		return first.Info.CapabilityMask
	}
	return pt.Info.CapabilityMask
}

// LaneCap returns the virtual lanes that routes may use on a port: those that it has, as far as policy allows and the
// device keeps them. It returns one lane if its tables cannot be programmed.
func (s *Settings) LaneCap(p topo.PortID) ib.VLCap {
	pt := s.fabric.Port(p)
	most := pt.Info.VLCap
	if pt.Num == 0 || !s.topo.IsExternal(p) {
		return most
	}
	if _, vls := s.rules.Maxima(p); vls != 0 {
		most = min(most, vls)
	}
	if s.fabric.NotKept(pt.Node)&OperationalVLs != 0 {
		most = min(most, pt.Info.OperationalVLs)
	}
	if s.options.OneLane {
		return min(most, 1)
	}
	if p0 := s.fabric.Port(s.topo.Node(pt.Node).FirstPort); p0.IsRead && !s.fabric.CanMap(p) {
		most = min(most, 1)
	}
	return most
}
