package portset

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Gate says how far a port may be moved. It is asked in the order of its methods, and no further than needed.
type Gate interface {
	// IsWritten reports whether the tables of a port are written.
	IsWritten(topo.PortID) bool
	// IsHeld reports whether a port is to stay in Init.
	IsHeld(topo.PortID) bool
	// MayActivate reports whether a port that is Armed may be made Active, as far as that depends on the identity of the
	// host.
	MayActivate(topo.PortID) bool
	// MayForward reports whether routes are there. If not, the port is looked at again when they are.
	MayForward(topo.PortID) bool
}

// NextState returns the state a port may be moved to now, PortNop for none.
func (s *Settings) NextState(p topo.PortID, g Gate) ib.PortState {
	pt := s.fabric.Port(p)
	if pt.Num == 0 || !g.IsWritten(p) {
		return ib.PortNop
	}
	switch pt.Info.PortState {
	case ib.PortInit:
		if g.IsHeld(p) {
			return ib.PortNop
		}
		return ib.PortArmed
	case ib.PortArmed:
		peer := s.fabric.Port(s.topo.Peer(p))
		if far := peer.Info.PortState; far != ib.PortArmed && far != ib.PortActive || !g.MayActivate(p) || !g.MayForward(p) {
			return ib.PortNop
		}
		return ib.PortActive
	default:
		return ib.PortNop
	}
}

// IsSettable reports whether all is known that the parameters of a port depend on.
func (s *Settings) IsSettable(p topo.PortID) bool {
	pt := s.fabric.Port(p)
	if !pt.isSeen() || s.fabric.SMLID() == 0 || s.topo.IsEndPort(p) && pt.LID == 0 {
		return false
	}
	if pt.Num == 0 {
		return true
	}
	q := s.topo.Peer(p)
	if q == topo.None {
		return false
	}
	peer := s.fabric.Port(q)
	return peer.IsRead && IsUp(pt.Info)
}

// IsUp reports whether PortInfo shows a link.
func IsUp(pi *mad.PortInfo) bool {
	return pi.PortState >= ib.PortInit && pi.PortPhysicalState != ib.PhysDisabled
}

// Guess returns the assumed PortInfo of a port until it answers: that of the other end of its cable, without the port's
// own fields.
func Guess(peer *mad.PortInfo) mad.PortInfo {
	g := *peer
	g.MKey, g.MKeyProtectBits, g.MKeyLeasePeriod = ib.MKey{}, 0, 0
	g.LID, g.LMC, g.GIDPrefix, g.MasterSMLID, g.MasterSMSL = 0, 0, 0, 0, 0
	g.MKeyViolations, g.PKeyViolations, g.QKeyViolations = 0, 0, 0
	g.CapabilityMask, g.CapabilityMask2 = 0, 0
	g.PartitionEnforcementInbound, g.PartitionEnforcementOutbound = false, false
	g.FilterRawInbound, g.FilterRawOutbound = false, false
	g.PortState = ib.PortInit
	return g
}
