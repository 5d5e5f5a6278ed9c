package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/violationlog"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// received handles a MAD that does not answer a request of ours.
func (c *Core) received(in *Received) {
	m := &in.MAD
	switch {
	case in.QP == 1 && c.classTrap(in):
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

// stray handles an answer without a request: an honest device sends none, except to a subnet manager that was here before.
func (c *Core) stray(in *Received) {
	c.dropped++
	c.strays++
	from := c.senderOf(in)
	if in.MAD.Returning() { // no switch wrote its way
		from = topo.None
	}
	guid, place := c.reports.NoteStray(&in.MAD, in.LID, from)
	if violationlog.Tells(c.strays) {
		c.event(&StrayAnswer{LID: in.LID, GUID: guid, Place: place, Attr: in.MAD.Attr(), Count: c.strays})
	}
}

// trap represses a trap, then checks whether it is true. The content of a trap is reported as a claim, and only its number
// has further effect.
func (c *Core) trap(in *Received) {
	var n mad.NoticeHeader
	if !in.LID.IsUnicast() || mad.Decode(in.MAD.Data(), &n) != nil {
		c.dropped++
		return
	}
	p := c.byLID(in.LID)
	t := violation.Trap{MAD: &in.MAD, Head: &n, LID: in.LID, From: p, ByAnswer: c.causedByAnswer(in, &n)}
	if !t.ByAnswer {
		c.repress(in, p)
	}
	c.tally.NoteTrap(c.now, in.LID, n.TrapNumber)
	claim := c.reports.NoteTrap(&t)
	c.reports.NoteStorm(in.LID, p)
	if p == topo.None {
		return
	}
	c.noisy(p)
	id := c.ports[p].node
	if !c.nodes[id].alive || !n.IsGeneric {
		return
	}
	c.reports.Check(claim)
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

// noisy counts the traps that come in the name of a host, and those of a switch that prove not to be true. Their sender is
// not proven, so they cause at most a report, whatever the rule says.
func (c *Core) noisy(p topo.PortID) {
	id := c.ports[p].node
	nd := &c.nodes[id]
	isSwitch := c.topo.Node(id).Type == ib.NodeSwitch
	strike := c.health.StrikeUnproven
	if c.cfg.Controls.Traps.ProvesSender() {
		strike = c.health.Strike
	}
	switch {
	case id == c.root || isSwitch && (nd.trapTrue || nd.trapPause <= c.cfg.TrapHold): // a switch whose last trap was true is not
	case isSwitch:
		strike(c.suspectPlace(id), c.topo.NodeGUID(id), health.Noisy)
	default:
		strike(c.topo.PlaceOf(p), c.topo.NodeGUID(id), health.Noisy)
	}
}

// repress answers a trap: same transaction, same data. Where the device may have a
// key that cannot be shown it is not answered: under another key the answer would
// be one more violation, and raise one more trap.
func (c *Core) repress(in *Received, p topo.PortID) {
	key, sure := c.mkeys.ForAnswer(p)
	if !sure {
		return
	}
	c.out.Answer = append(c.out.Answer, Response{LID: in.LID, QP: in.QP, MAD: in.MAD})
	m := &c.out.Answer[len(c.out.Answer)-1].MAD
	m.SetMKey(key)
	m.Respond(mad.StatusOK)
}

// causedByAnswer reports whether a trap is about a TrapRepress of ours that a device with another M_Key, set by its host,
// refused. To answer it would cause one more violation, and one more trap.
func (c *Core) causedByAnswer(in *Received, head *mad.NoticeHeader) bool {
	if !head.IsGeneric || head.TrapNumber != mad.TrapBadMKey {
		return false
	}
	var n mad.Trap256
	c.encode(mad.Decode(in.MAD.Data(), &n))
	return n.Method == mad.MethodTrapRepress && !n.DRNotice && n.LID != 0 && n.LID == c.smLID()
}

// byLID returns the end port that has a LID now.
func (c *Core) byLID(l ib.LID) topo.PortID {
	p, ok := c.byPort[c.lids.At(l)]
	if !ok || c.ports[p].lid != l&^(1<<c.lids.LMC(p)-1) {
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
	case !c.cfg.Controls.Traps.Waits():
		c.verifyDue(id)
	case n.trapDue:
	case c.now.Before(n.trapHold):
		n.trapDue = true
		c.after(n.trapHold.Sub(c.now), work.Verify, work.OnNode(work.Switch, id))
	case !c.mayLook(id):
		n.trapDue = true
		c.after(violation.CheckPause, work.Verify, work.OnNode(work.Switch, id))
	default:
		c.verifyDue(id)
	}
}

func (c *Core) verifyDue(id topo.NodeID) {
	n := &c.nodes[id]
	if !n.alive {
		return
	}
	if n.trapDue && !c.mayLook(id) {
		c.after(violation.CheckPause, work.Verify, work.OnNode(work.Switch, id))
		return
	}
	if n.trapTrue || c.now.Sub(n.trapHold) > steadyFor*n.trapPause {
		n.trapPause = 0
	}
	n.trapPause = min(max(2*n.trapPause, c.cfg.TrapHold), max(trapHoldMax, c.cfg.TrapHold))
	n.trapDue, n.trapTrue, n.trapHold = false, false, c.now.Add(n.trapPause)
	tn := c.topo.Node(id)
	if tn.Type == ib.NodeSwitch {
		n.sw.Verify()
		c.q.MarkNode(work.Switch, id)
		return
	}
	// A new description of a host has no effect before it is read and differs.
	n.described = false
	c.q.MarkNode(work.Desc, id)
	for i := 1; i <= int(tn.NumPorts); i++ {
		if p := tn.FirstPort + topo.PortID(i); c.topo.GUIDOf(p) != 0 && c.topo.Peer(p) != topo.None {
			c.background(p)
			if c.law.IsOn() && c.topo.IsExternal(c.topo.Peer(p)) {
				c.ports[c.topo.Peer(p)].host.Ask() // is it still the same device?
				c.q.MarkPort(work.Probe, c.topo.Peer(p))
			}
		}
	}
}

// mayLook reports whether a trap of a node may be looked into now.
func (c *Core) mayLook(id topo.NodeID) bool {
	return c.topo.Node(id).Type == ib.NodeSwitch || c.reports.MayLook()
}

// bornOut takes that a port of a switch changed: the trap of the switch was
// true.
func (c *Core) bornOut(p topo.PortID) {
	if c.topo.IsExternal(p) && !c.dark(p) {
		c.nodes[c.ports[p].node].trapTrue = true
	}
}
