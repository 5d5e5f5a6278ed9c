package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// received takes a MAD that nobody asked for.
func (c *Core) received(in *Received) {
	m := &in.MAD
	switch {
	case !m.IsSMP() || in.QP != 0 || m.BaseVersion() != 1:
		c.dropped++
	case m.Method() == mad.MethodTrap && m.Attr() == mad.AttrNotice && !m.IsDR():
		c.trap(in)
	case m.Method() == mad.MethodTrapRepress && m.Attr() == mad.AttrNotice:
		// The master took our trap. It will look at us.
	case m.Attr() == mad.AttrSMInfo && (m.Method() == mad.MethodGet || m.Method() == mad.MethodSet):
		c.askedSMInfo(in)
	case m.Method() == mad.MethodGetResp:
		c.stray(in)
	default:
		c.dropped++
	}
}

// stray takes an answer that nobody asked for: an honest device sends none, but
// to a subnet manager that was here before.
func (c *Core) stray(in *Received) {
	c.dropped++
	c.strays++
	if tellRepetition(c.strays) {
		c.event(&StrayAnswer{LID: in.LID, Attr: in.MAD.Attr(), Count: c.strays})
	}
}

// trap represses a trap, then goes and looks whether it is true. What a trap
// says beyond its number is not believed.
func (c *Core) trap(in *Received) {
	var n mad.NoticeHeader
	if !in.LID.IsUnicast() || mad.Decode(in.MAD.Data(), &n) != nil {
		c.dropped++
		return
	}
	c.repress(in)
	c.noteTrap(in.LID, n.TrapNumber)
	p := c.byLID(in.LID)
	count := c.countTrap(in.LID, p)
	var guid ib.GUID
	if p != topo.None {
		guid = c.nodeGUID(c.ports[p].node)
	}
	if tellRepetition(count) {
		c.event(&TrapReceived{LID: in.LID, GUID: guid, Trap: n.TrapNumber, Count: count})
	}
	if p == topo.None {
		return
	}
	id := c.ports[p].node
	switch nd := &c.nodes[id]; {
	case c.topo.Node(id).Type != ib.NodeSwitch:
		if id != c.root {
			c.strike(c.placeOf(p), guid, Noisy)
		}
	case !nd.trapTrue && nd.trapPause > c.cfg.TrapHold:
		c.strikeNode(id, Noisy) // a switch whose last trap was true is not
	}
	if !c.nodes[id].alive {
		return
	}
	if !n.IsGeneric {
		return
	}
	switch n.TrapNumber {
	case mad.TrapLinkStateChange, mad.TrapLinkIntegrity, mad.TrapBufferOverrun, mad.TrapFlowControl:
		if c.topo.Node(id).Type == ib.NodeSwitch {
			c.verifySoon(id)
		}
	case mad.TrapLocalChange, mad.TrapSystemImageGUID:
		if c.otherAt(p) != nil {
			c.askSM(p) // its priority may have changed
		}
		c.verifySoon(id)
	}
}

// countTrap counts the traps of each end port; those from LIDs that nobody has
// are counted together, so that made-up sources take no memory.
func (c *Core) countTrap(l ib.LID, p topo.PortID) uint64 {
	if p == topo.None {
		l = 0
	}
	c.traps[l]++
	return c.traps[l]
}

// tellRepetition reports 1, 2 or 5 times a power of ten: repetitions beyond
// those are not told.
func tellRepetition(n uint64) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1 || n == 2 || n == 5
}

// repress answers a trap: same transaction, same data.
func (c *Core) repress(in *Received) {
	c.out.Answer = append(c.out.Answer, Response{LID: in.LID, QP: in.QP, MAD: in.MAD})
	m := &c.out.Answer[len(c.out.Answer)-1].MAD
	m.SetMKey(c.keyOf(in.LID))
	m.Respond(mad.StatusOK)
}

// byLID gives the end port that has a LID now.
func (c *Core) byLID(l ib.LID) topo.PortID {
	p, ok := c.byPort[c.lids.at(l)]
	if !ok || c.ports[p].lid != l&^(1<<c.lmcOf(p)-1) {
		return topo.None
	}
	return p
}

// trapHoldMax bounds how long a source that is not worth it waits to be
// verified again.
const trapHoldMax = 2 * time.Second

// verifySoon looks at a node that sent a trap: at once, but no more often than
// Config.TrapHold allows. Each time that nothing is found the next one waits
// twice as long, so that a source of false traps is soon hardly heard.
func (c *Core) verifySoon(id topo.NodeID) {
	n := &c.nodes[id]
	switch {
	case n.trapDue:
	case c.now.Before(n.trapHold):
		n.trapDue = true
		c.after(n.trapHold.Sub(c.now), timerVerify, ref{clsSwitch, int32(id)})
	default:
		c.verifyDue(id)
	}
}

func (c *Core) verifyDue(id topo.NodeID) {
	n := &c.nodes[id]
	if !n.alive {
		return
	}
	if n.trapTrue || c.now.Sub(n.trapHold) > steadyFor*n.trapPause {
		n.trapPause = 0
	}
	n.trapPause = min(max(2*n.trapPause, c.cfg.TrapHold), max(trapHoldMax, c.cfg.TrapHold))
	n.trapDue, n.trapTrue, n.trapHold = false, false, c.now.Add(n.trapPause)
	tn := c.topo.Node(id)
	if tn.Type == ib.NodeSwitch {
		n.verify = true
		c.markNode(clsSwitch, id)
		return
	}
	// What a host says of itself unsettles nothing before it proves to be new.
	n.described = false
	c.markNode(clsDesc, id)
	for i := 1; i <= int(tn.NumPorts); i++ {
		if p := tn.FirstPort + topo.PortID(i); c.guidOf(p) != 0 && c.peer(p) != topo.None {
			c.background(p)
			if c.law.on() && c.external(c.peer(p)) {
				c.ports[c.peer(p)].confirming = true // is it still who it was?
				c.markPort(clsProbe, c.peer(p))
			}
		}
	}
}

// bornOut takes that a port of a switch changed: the trap of the switch was
// true.
func (c *Core) bornOut(p topo.PortID) {
	if c.external(p) && !c.dark(p) {
		c.nodes[c.ports[p].node].trapTrue = true
	}
}
