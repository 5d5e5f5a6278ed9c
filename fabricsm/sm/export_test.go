package sm

import "portcullis/fabricsm/topo"

// ShowsAllKeys reports whether a view of the present state shows, for every port, the table that the core believes it has.
func (c *Core) ShowsAllKeys(v *View) bool {
	for p := range c.ports {
		if v.KeyTable(topo.PortID(p)) != c.pkeys.Table(topo.PortID(p)) {
			return false
		}
	}
	return v.KeyTable(topo.PortID(len(c.ports))) == nil
}

// Hops returns the length of the directed route to a node.
func (c *Core) Hops(id topo.NodeID) int { return c.tree.Hops(id) }

// Adopts reports whether a job looks for routes to keep in tables that were found.
func (j *RouteJob) Adopts() bool { return j.job.Adopts() }
