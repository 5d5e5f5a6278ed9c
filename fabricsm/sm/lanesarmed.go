package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// An adapter whose link came up without configuration gets its SL-to-VL table while
// the link is in Init. If it is reset after that and before the link is Armed nothing
// shows it: the link is in Init again, and PortInfo is written as it would have been.
// From Armed on a reset shows. So the table is read once in the background when the
// link has got there; the tables of switches are proven otherwise, see sure.go.

// proveLanes reads, in the background, the table of an adapter whose link was just armed. was is the state before that.
func (c *Core) proveLanes(p topo.PortID, was ib.PortState) {
	pt := &c.ports[p]
	if !pt.fresh || pt.num == 0 || !c.topo.IsEndPort(p) || was >= ib.PortArmed || pt.info.PortState < ib.PortArmed {
		return
	}
	if pt.slvl.done() && pt.slvl.want != lanesAsFound && c.hasLanes(p) {
		c.inBackground(work.OnPort(work.SLtoVL, p))
	}
}
