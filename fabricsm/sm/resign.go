package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Resign says that the owner is about to end. A master gives the fabric to the
// highest of those that are believed and stand by, so that none of them has to
// find out that it is gone. Output.Resigned says when that is done, at once
// where there is nobody. From then on others are told that this SM is not
// active, so that nobody gives the fabric back.
type Resign struct{}

func (*Resign) input() {}

func (c *Core) resign() {
	e := &c.election
	if e.resigning {
		return
	}
	e.resigning = true
	if heir := c.heir(); heir != topo.None && c.writing() {
		c.standByFor(heir, "ending, so port "+c.guidOf(heir).String()+" is given the fabric")
		c.sendCommand(heir, command{mad.SMInfoHandover, ib.SMMaster})
	}
}

// resigned reports that nothing is left to be done before the end.
func (c *Core) resigned() bool { return c.election.resigning && len(c.election.commands) == 0 }

// heir gives the port of the highest SM that is believed and stands by.
func (c *Core) heir() topo.PortID {
	var best *otherSM
	for guid, o := range c.others {
		if p, seen := c.byPort[guid]; !seen || p != o.port || !o.trusted || o.stale || o.info.SMState != ib.SMStandby || c.gone(p) {
			continue
		}
		if best == nil || o.before(best) {
			best = o
		}
	}
	if best == nil {
		return topo.None
	}
	return best.port
}
