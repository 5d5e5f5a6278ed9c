package sm

import (
	"fmt"

	"portcullis/fabricsm/topo"
)

// Dump describes what the core believes of a port, for failing tests.
func Dump(c *Core, p topo.PortID) string {
	pt := &c.ports[p]
	n := &c.nodes[pt.node]
	return fmt.Sprintf("%v: marks %+v known %v state %v keysOK %v slvl %+v rounds %d fresh %v placed %v peer %v | node marks %+v out %d parked %v silent %v lft pending %v | routing need %v running %v pending %d waiting %v | failures %v",
		c.placeOf(p), pt.marks, pt.known, pt.info.PortState, pt.keysOK, pt.slvl, pt.setRounds, pt.fresh, pt.placed, c.peer(p),
		n.marks, n.out, n.parked, n.silent, n.lft.pending, c.routing.need, c.routing.running, c.routing.pending, c.routing.waiting, c.failures)
}
