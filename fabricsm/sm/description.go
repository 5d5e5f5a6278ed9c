package sm

import (
	"unicode"

	"portcullis/fabricsm/mad"
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
	tn.Description = cleanText(m.Data())
	c.topo.SetNode(id, tn)
}

// cleanText returns the name that a device reports of itself, fit to be printed.
func cleanText(b []byte) string {
	out := make([]rune, 0, len(b))
	for _, r := range string(b) {
		if r == 0 {
			break
		}
		if r == '\uFFFD' || !unicode.IsPrint(r) { // controls, and what changes the direction of text
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
