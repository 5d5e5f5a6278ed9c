package sm

import (
	"time"

	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Switches that were out of sight still have their tables. New tables would cut off hosts that are not found again yet,
// so they wait for nodes that come back, and for the LIDs of their end ports, which are known and must be read.

const (
	returnWait  = 2 * time.Second       // how long tables that are needed wait at most
	returnFor   = time.Second           // and for the LID of one end port: a device that never answers delays them no longer
	returnEvery = 10 * time.Millisecond // how often all ports are looked at
)

// routesBy returns the time until which new tables wait: routeWait after the need, or after the last node that came back.
func (c *Core) routesBy() time.Time {
	r := &c.routing
	by := r.since.Add(routeWait)
	if again := r.back.Add(routeWait); again.After(by) {
		by = again
	}
	if most := r.since.Add(returnWait); by.After(most) {
		return most
	}
	return by
}

// returning reports whether an end port that came back lately has a known LID that was not read; it looks now and then.
func (c *Core) returning() bool {
	r := &c.routing
	if r.tables == nil || c.now.Sub(r.back) > returnFor {
		return false
	}
	if c.now.Before(r.look) {
		return true
	}
	for i := range c.ports {
		p, pt := topo.PortID(i), &c.ports[i]
		if pt.lid != 0 || c.nodes[pt.node].silent || c.now.Sub(c.nodes[pt.node].returned) > returnFor {
			continue
		}
		if c.lids.Of(c.topo.GUIDOf(p)) != 0 && c.topo.Attachment(p) != topo.None {
			r.look = c.now.Add(returnEvery)
			c.after(returnEvery, work.Route, work.Ref{})
			return true
		}
	}
	return false
}
