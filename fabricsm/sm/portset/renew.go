package portset

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Clients of an end port (IPoIB and the like) have to renew their registrations with the subnet administrator when the port
// is new, and when its LID, its GID or the address of the administrator changed. They also have to when this SM takes over
// from another. One bit in a Set of PortInfo requests this: in a Set that is sent anyway or, after a change of masters, in
// one of its own. It is not requested when an SM comes back to a fabric that it left in order. Nor is it after a sibling,
// which kept the registrations in the facts that this SM has.

// renewsFor is the set of fields whose change requires a renewal.
const renewsFor = LID | GIDPrefix | MasterSMLID

// Renews reports whether the bit goes with a Set that changes some fields and moves the port to a state. A port in Init
// gets it with Armed, so that it is not asked twice.
func (s *Settings) Renews(p topo.PortID, differ Fields, state ib.PortState) bool {
	if !s.topo.IsEndPort(p) {
		return false
	}
	pt := s.fabric.Port(p)
	notKept := s.fabric.NotKept(pt.Node)
	if differ&^MasterSMLID&renewsFor&^notKept != 0 || state == ib.PortArmed ||
		differ&MasterSMLID&^notKept != 0 && !s.fabric.IsSibling(pt.Info.MasterSMLID) {
		pt.State.RenewLater()
	}
	if !s.canRenew(&pt) {
		return false
	}
	return pt.Num == 0 || pt.Info.PortState > ib.PortInit || state == ib.PortArmed
}

// canRenew reports whether the clients of a port need a request to renew and can get it.
func (s *Settings) canRenew(pt *Port) bool {
	return pt.State.renew && !s.config.NoReregister && pt.Info.CapabilityMask.Has(mad.IsClientReregistrationSupported)
}

// MustRenew reports whether a Set is worth sending for the bit alone.
func (s *Settings) MustRenew(p topo.PortID) bool {
	pt := s.fabric.Port(p)
	return s.canRenew(&pt) && (pt.Num == 0 || pt.Info.PortState == ib.PortActive)
}
