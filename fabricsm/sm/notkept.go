package sm

import (
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/topo"
)

// learn remembers which fields a device does not keep, so that a settled fabric
// gets no writes.
func (c *Core) learn(id topo.NodeID, tried, missed PortFields) {
	n := &c.nodes[id]
	now := portset.Learn(n.notKept, tried, missed)
	if now == n.notKept {
		return
	}
	if fresh := now &^ n.notKept; fresh != 0 {
		c.event(&FieldsNotKept{GUID: n.device.GUID, Fields: fresh})
	}
	n.notKept = now
	if c.notKept.Set(n.device, now) {
		c.save(Fact{Kind: FactNotKept, GUID: n.device.GUID, Model: n.device.Model.String(), Place: n.device.Place, NotKept: now})
	}
}
