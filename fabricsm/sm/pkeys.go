package sm

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// workPKeys makes the P_Key table of a port known and right, one block at a
// time.
func (c *Core) workPKeys(p topo.PortID) {
	s := c.pkeys.Next(p)
	if s.Method == 0 {
		return
	}
	c.auditing = c.auditing || s.Audit
	m := c.ask(work.OnPort(work.PKey, p), c.ports[p].node, s.Method, mad.AttrPKeyTable, mad.PKeyTableMod(c.topo.ExternalNum(p), uint16(s.Block)))
	if s.Audit {
		c.auditing = false
	}
	if s.Method == mad.MethodSet {
		c.encode(mad.Encode(m.Data(), s.Want))
	}
}

// gotPKeys takes one block.
func (c *Core) gotPKeys(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	var got mad.PKeyTable
	if status != mad.StatusOK || mad.Decode(m.Data(), &got) != nil {
		c.refused(r, status.String())
		return
	}
	b := int(r.Mod & 0xFFFF)
	if b >= c.pkeys.Table(p).Blocks() {
		return
	}
	c.wrote.SuspectKeys(p, r, c.pkeys.Table(p).Block(b), got.PKey[:])
	a := c.pkeys.Take(p, r, &got)
	c.viewDue = c.viewDue || a.Changed
	if a.NotSet {
		c.refused(r, "the table answered is not the one that was set")
		return
	}
	if r.Audit && a.Differs {
		c.disturb()
	}
}
