package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Sibling is the port of another instance of the same service, which was master with the facts that this one loads. The
// registrations of hosts are in those facts, so none has to be renewed when this instance takes over. At its place it stays
// a full member of the default partition, so that a change of masters writes no P_Key.
//
// The place is part of it: a GUID alone can be forged.
type Sibling struct {
	GUID  ib.GUID
	Place ib.Place // switch port that it is cabled to
}

// managerPort reports whether an end port is our own, or that of a sibling at its place.
func (c *Core) managerPort(p topo.PortID) bool {
	if p == c.own() {
		return true
	}
	if len(c.cfg.Siblings) == 0 {
		return false
	}
	return slices.Contains(c.cfg.Siblings, Sibling{GUID: c.topo.GUIDOf(p), Place: c.topo.PlaceOf(p)})
}

// siblingLID reports whether a LID is that of a sibling, also of one that is not seen now.
func (c *Core) siblingLID(l ib.LID) bool {
	owner := c.lids.At(l)
	return owner != 0 && slices.ContainsFunc(c.cfg.Siblings, func(s Sibling) bool { return s.GUID == owner })
}

// peerManager reports whether another subnet manager may be at an end port with which
// this one works.
func (c *Core) peerManager(p topo.PortID) bool {
	if p == topo.None || p == c.own() {
		return false
	}
	o := c.otherAt(p)
	return c.listed(p) || c.managerPort(p) || o != nil && o.Trusted
}

// managers lists all such ports, by id.
func (c *Core) managers() (list []topo.PortID) {
	add := func(guid ib.GUID) {
		if p, seen := c.byPort[guid]; seen && c.peerManager(p) {
			list = append(list, p)
		}
	}
	for _, a := range c.cfg.Election.Allowed {
		add(a.GUID)
	}
	for _, s := range c.cfg.Siblings {
		add(s.GUID)
	}
	for guid, o := range c.others {
		if o.Trusted {
			add(guid)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
