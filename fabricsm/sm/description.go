package sm

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// workDescription asks what a node calls itself.
func (c *Core) workDescription(id topo.NodeID) {
	if !c.nodes[id].described {
		c.auditing = true // names unsettle nothing
		c.ask(work.OnNode(work.Desc, id), id, mad.MethodGet, mad.AttrNodeDescription, 0)
		c.auditing = false
	}
}

func (c *Core) gotDescription(id topo.NodeID, m *mad.MAD, status mad.Status) {
	c.nodes[id].described = true
	if status != mad.StatusOK {
		return
	}
	tn := c.topo.Node(id)
	tn.Description = health.CleanText(m.Data())
	c.topo.SetNode(id, tn)
}
