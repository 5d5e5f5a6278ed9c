package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/forwarding"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// forwardingFabric is the core as package forwarding uses it.
type forwardingFabric struct{ desk }

var _ forwarding.Fabric = forwardingFabric{}

func (f forwardingFabric) IsWriting() bool              { return f.writing() }
func (f forwardingFabric) Wanted() *route.Tables        { return f.routing.tables }
func (f forwardingFabric) IsPaused(x work.Ref) bool     { return f.failures.IsPaused(x) }
func (f forwardingFabric) MustWait(id topo.NodeID) bool { return f.lanes.Delays(id) }

func (f forwardingFabric) SwitchOf(id topo.NodeID) forwarding.Switch {
	n := &f.nodes[id]
	return forwarding.Switch{Alive: n.alive, Silent: n.silent, Known: n.sw.IsKnown(), Top: n.sw.Info().LinearFDBTop}
}

// workLFT reads and writes blocks, several at a time.
func (c *Core) workLFT(id topo.NodeID) {
	s := c.lfts.Next(id)
	if s.Method == 0 {
		return
	}
	x := work.OnNode(work.LFT, id)
	m := c.ask(x, id, s.Method, mad.AttrLinearForwardingTable, uint32(s.Block))
	for i, p := range s.Want {
		m.Data()[i] = byte(p)
	}
	c.q.Mark(x)
}

// gotLFT takes one block.
func (c *Core) gotLFT(id topo.NodeID, r *work.Request, m *mad.MAD, status mad.Status) {
	if status != mad.StatusOK {
		c.lfts.Lost(id, r)
		c.refusedBlock(id, r, status.String())
		return
	}
	var content [mad.LIDsPerBlock]ib.PortNum
	for i, p := range m.Data() {
		content[i] = ib.PortNum(p)
	}
	if !c.lfts.Take(id, r, content[:]) {
		c.refusedBlock(id, r, "the block answered is not the one that was set")
	}
}

// refusedBlock leaves a block alone for a while.
func (c *Core) refusedBlock(id topo.NodeID, r *work.Request, reason string) {
	if c.lfts.Refuse(id, r) {
		c.refused(r, reason)
	}
	c.lfts.Recount(id)
}
