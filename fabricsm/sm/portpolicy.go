package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// takeDown takes the link of a port down, and says what follows: PhysNop, to come
// up again, or PhysDisabled. Nothing else is written.
func (c *Core) takeDown(p topo.PortID, phys ib.PhysState) {
	pt := &c.ports[p]
	want := pt.info
	want.PortState, want.PortPhysicalState = ib.PortDown, phys
	portpolicy.SetLink(&want, false, false)
	pt.set.Begin(0, ib.PortDown, false)
	c.mkeys.ForgetSet(p)
	m := c.ask(work.OnPort(work.Set, p), pt.node, mad.MethodSet, mad.AttrPortInfo, mad.PortInfoMod(pt.num, 0))
	c.encode(mad.Encode(m.Data(), &want))
}
