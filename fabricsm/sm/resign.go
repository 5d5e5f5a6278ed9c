package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Resign says that the owner is about to end. A master hands the fabric over to the highest of the SMs that are trusted and
// stand by, so that none of them has to detect that it is gone. Output.Resigned says when that is done, at once if there is
// no such SM. From then on this SM reports itself as not active, so that no SM hands the fabric back.
type Resign struct{}

func (*Resign) input() {}

func (c *Core) resign() {
	if c.self.Leaving {
		return
	}
	c.self.Leaving = true
	if heir := c.heir(); heir != topo.None && c.writing() {
		c.standByFor(heir, "ending, so port "+c.topo.GUIDOf(heir).String()+" is given the fabric")
		c.sendCommand(heir, command{mad.SMInfoHandover, ib.SMMaster})
	}
}

// resigned reports whether nothing is left to be done before the end.
func (c *Core) resigned() bool { return c.self.Leaving && len(c.election.commands) == 0 }

// heir returns the port of the highest SM that is trusted and stands by.
func (c *Core) heir() topo.PortID {
	var best *otherSM
	for guid, o := range c.others {
		if p, seen := c.byPort[guid]; !seen || p != o.port || !o.Trusted || o.stale || o.State != ib.SMStandby || c.gone(p) {
			continue
		}
		if best == nil || o.IsBefore(&best.Other) {
			best = o
		}
	}
	if best == nil {
		return topo.None
	}
	return best.port
}
