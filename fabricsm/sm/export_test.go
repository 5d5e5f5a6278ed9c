package sm

import "portcullis/fabricsm/topo"

// ShowsAllKeys reports whether a view of the present state shows, for every port, the table that the core believes it has.
func (c *Core) ShowsAllKeys(v *View) bool {
	for p := range c.ports {
		if v.pkeys.At(int32(p)) != c.pkeys.Table(topo.PortID(p)) {
			return false
		}
	}
	return v.pkeys.Len() == len(c.ports)
}

// Hops returns the length of the directed route to a node.
func (c *Core) Hops(id topo.NodeID) int { return c.tree.Hops(id) }

// Adopts reports whether a job looks for routes to keep in tables that were found.
func (j *RouteJob) Adopts() bool { return j.found != nil }
