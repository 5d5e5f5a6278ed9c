package portset

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// CanEnforce reports whether a switch port has a P_Key table and declares what the options ask for.
func (s *Settings) CanEnforce(p topo.PortID) bool {
	pt := s.fabric.Port(p)
	si, _ := s.fabric.Switch(pt.Node)
	return s.canEnforce(si)
}

func (s *Settings) canEnforce(si *mad.SwitchInfo) bool {
	return si.PartitionEnforcementCap > 0 && (s.options.Accepted || si.InboundEnforcementCap && si.OutboundEnforcementCap)
}

// CannotEnforce returns why the hosts of a switch get no partition, "" for no reason. known is false before the switch
// was read.
func (s *Settings) CannotEnforce(id topo.NodeID) (reason string, known bool) {
	si, isRead := s.fabric.Switch(id)
	switch {
	case !isRead:
		return "", false
	case si.PartitionEnforcementCap == 0:
		return "it has no P_Key tables for its ports", true
	case !s.canEnforce(si):
		return "its SwitchInfo does not declare enforcement in both directions", true
	case !s.options.Accepted && s.fabric.NotKept(id)&Enforcement != 0:
		return "it does not keep the enforcement bits of PortInfo", true
	default:
		return "", true
	}
}

// LostBits returns those enforcement bits that the answer to a Set had shown and a Get does not. A device that shows the
// bits and does not keep them would otherwise be asked without end. A port that lost its configuration in the meantime is
// not such a device.
func (s *Settings) LostBits(p topo.PortID, got *mad.PortInfo) Fields {
	pt := s.fabric.Port(p)
	if !pt.IsRead || !bitsTold(&pt) || got.PortState != pt.Info.PortState {
		return 0
	}
	return Differing(pt.Info, got) & Enforcement
}

// BitsTold reports whether the answer to a Set showed the enforcement bits, but no Get has yet.
func (s *Settings) BitsTold(p topo.PortID) bool {
	pt := s.fabric.Port(p)
	return bitsTold(&pt)
}

func bitsTold(pt *Port) bool { return !pt.State.proven && pt.showsBits() }

// Enforces reports whether a switch port is proven to check P_Keys, as far as the options ask.
func (s *Settings) Enforces(p topo.PortID) bool {
	pt := s.fabric.Port(p)
	if si, _ := s.fabric.Switch(pt.Node); !s.canEnforce(si) || !pt.IsRead {
		return false
	}
	if pt.State.proven {
		return true
	}
	forgotten := s.fabric.NotKept(pt.Node)&Enforcement == Enforcement
	return s.options.Accepted && (pt.State.accepted || forgotten)
}

// ForgetsEnforcement reports whether a switch port accepted the enforcement bits but did not keep them, which is no
// enforcement.
func (s *Settings) ForgetsEnforcement(p topo.PortID) bool {
	pt := s.fabric.Port(p)
	return !s.options.Accepted && !pt.showsBits() && s.fabric.NotKept(pt.Node)&Enforcement != 0
}
