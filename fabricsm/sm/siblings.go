package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// peerManager reports whether another subnet manager may be at an end port with which
// this one works.
func (c *Core) peerManager(p topo.PortID) bool {
	if p == topo.None || p == c.own() {
		return false
	}
	o := c.otherAt(p)
	return c.trust.IsListed(p) || c.trust.IsManager(p) || o != nil && o.Trusted
}

// managers lists all such ports, by id.
func (c *Core) managers() (list []topo.PortID) {
	add := func(guid ib.GUID) {
		if p, seen := c.byPort[guid]; seen && c.peerManager(p) {
			list = append(list, p)
		}
	}
	for _, a := range c.trust.Allowed() {
		add(a.GUID)
	}
	for _, s := range c.trust.Siblings() {
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
