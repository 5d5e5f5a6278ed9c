package sm

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
const renewsFor = FieldLID | FieldGIDPrefix | FieldMasterSMLID

// renews reports whether the bit goes with a Set that changes some fields and
// moves the port to a state. A port in Init gets it with Armed, so that it is
// not asked twice.
func (c *Core) renews(p topo.PortID, differ PortFields, state ib.PortState) bool {
	pt := &c.ports[p]
	if !c.topo.IsEndPort(p) {
		return false
	}
	if differ&^FieldMasterSMLID&renewsFor&^c.nodes[pt.node].notKept != 0 || state == ib.PortArmed ||
		differ&FieldMasterSMLID&^c.nodes[pt.node].notKept != 0 && !c.siblingLID(pt.info.MasterSMLID) {
		pt.renew = true
	}
	if !c.canRenew(p) {
		return false
	}
	return pt.num == 0 || pt.info.PortState > ib.PortInit || state == ib.PortArmed
}

// canRenew reports whether the clients of a port need a request to renew and can get it.
func (c *Core) canRenew(p topo.PortID) bool {
	pt := &c.ports[p]
	return pt.renew && !c.cfg.Ports.NoReregister && pt.info.CapabilityMask.Has(mad.IsClientReregistrationSupported)
}

// mustRenew reports whether a Set is worth sending for the bit alone.
func (c *Core) mustRenew(p topo.PortID) bool {
	pt := &c.ports[p]
	return c.canRenew(p) && (pt.num == 0 || pt.info.PortState == ib.PortActive)
}

// renewed takes that a Set with the bit was accepted.
func (pt *port) renewed() {
	if pt.setRenews {
		pt.setRenews, pt.renew = false, false
	}
}

// renewAll has all clients renew what they registered: another SM was master.
func (c *Core) renewAll() {
	for p := range c.ports {
		if pt := &c.ports[p]; pt.known && c.topo.IsEndPort(topo.PortID(p)) {
			pt.renew = true
		}
	}
}
