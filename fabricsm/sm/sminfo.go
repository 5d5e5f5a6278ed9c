package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// otherSM is another subnet manager as it last described itself.
type otherSM struct {
	info    mad.SMInfo
	trusted bool
}

// askedSMInfo answers another SM, or a diagnostic.
func (c *Core) askedSMInfo(in *Received) {
	m := &in.MAD
	if m.Method() == mad.MethodSet && !c.command(in) {
		return
	}
	c.actCount++
	c.out.Answer = append(c.out.Answer, Response{LID: in.LID, QP: in.QP, MAD: *m})
	r := &c.out.Answer[len(c.out.Answer)-1].MAD
	status := mad.StatusOK
	if m.Method() == mad.MethodSet && mad.SMInfoControl(m.Mod()) != mad.SMInfoAcknowledge {
		// Handing over by command is not done yet: refused, not ignored.
		status = mad.StatusInvalidField
	}
	r.Respond(status)
	// The SM_Key is shown to nobody: without M_Keys no requester is
	// authenticated.
	c.encode(mad.Encode(r.Data(), &mad.SMInfo{
		GUID: c.cfg.PortGUID, ActCount: c.actCount, Priority: c.cfg.Priority & 0xF, SMState: c.state,
	}))
}

// command judges a Set of SMInfo. One that does not show our SM_Key is dropped
// and told.
func (c *Core) command(in *Received) bool {
	var si mad.SMInfo
	if mad.Decode(in.MAD.Data(), &si) != nil {
		c.dropped++
		return false
	}
	if c.cfg.SMKey.IsZero() || si.SMKey != c.cfg.SMKey {
		c.dropped++
		if tellRepetition(c.countTrap(in.LID, c.byLID(in.LID))) {
			c.event(&SMInfoRefused{LID: in.LID, GUID: si.GUID, Control: mad.SMInfoControl(in.MAD.Mod())})
		}
		return false
	}
	return true
}

func (c *Core) workSMInfo(p topo.PortID) {
	c.auditing = c.state == ib.SMStandby
	c.ask(ref{clsSMInfo, int32(p)}, c.ports[p].node, mad.MethodGet, mad.AttrSMInfo, 0)
	c.auditing = false
}

// gotSMInfo takes how another SM describes itself.
func (c *Core) gotSMInfo(p topo.PortID, m *mad.MAD, status mad.Status) {
	var si mad.SMInfo
	guid := c.guidOf(p)
	if status != mad.StatusOK || mad.Decode(m.Data(), &si) != nil || si.GUID != guid {
		c.noSMInfo(p)
		return
	}
	trusted := c.trusts(&si)
	c.tellForeign(p, otherSM{info: si, trusted: trusted})
	switch {
	case c.state == ib.SMStandby && p == c.master:
		c.polls = 0
		if si.SMState != ib.SMMaster || !trusted {
			c.takeOver("the master stepped down")
		}
	case c.state != ib.SMStandby && si.SMState == ib.SMMaster && trusted && c.yields(&si):
		c.standBy(p)
	}
}

// trusts reports that another SM showed the SM_Key that is configured. Anybody
// can show none, so without a key nobody is trusted.
func (c *Core) trusts(o *mad.SMInfo) bool { return !c.cfg.SMKey.IsZero() && o.SMKey == c.cfg.SMKey }

// tellForeign reports what is new of another SM, but ever more rarely: a host
// may change what it says each time it is asked.
func (c *Core) tellForeign(p topo.PortID, now otherSM) {
	guid := c.guidOf(p)
	was, known := c.others[guid]
	c.others[guid] = now
	e := &ForeignSM{GUID: guid, LID: c.ports[p].info.LID, State: now.info.SMState, Priority: now.info.Priority, Trusted: now.trusted}
	if !known || was.info.SMState != e.State || was.info.Priority != e.Priority || was.trusted != e.Trusted {
		c.ports[p].foreignSeen++
		if tellRepetition(c.ports[p].foreignSeen) {
			c.event(e)
		}
	}
	rogue := problemKey{kind: rogueMaster, guid: guid}
	if now.trusted || e.State != ib.SMMaster {
		c.solved(rogue)
		return
	}
	c.problems[rogue] = e.String()
}

// forgetSM forgets what another SM said of itself.
func (c *Core) forgetSM(guid ib.GUID) {
	delete(c.others, guid)
	c.solved(problemKey{kind: rogueMaster, guid: guid})
}

// yields reports that the other is higher: by priority, then by lower GUID.
func (c *Core) yields(o *mad.SMInfo) bool {
	if o.Priority != c.cfg.Priority {
		return o.Priority > c.cfg.Priority
	}
	return o.GUID < c.cfg.PortGUID
}

// noSMInfo takes that a port with IsSM does not answer as an SM.
func (c *Core) noSMInfo(p topo.PortID) {
	c.forgetSM(c.guidOf(p))
	if c.state == ib.SMStandby && p == c.master {
		c.polls++
		if c.polls >= c.cfg.Tries {
			c.takeOver("the master does not answer")
		}
	}
}

// standBy leaves the fabric to a higher master.
func (c *Core) standBy(p topo.PortID) {
	c.state, c.master, c.polls = ib.SMStandby, p, 0
	e := &StateChanged{State: c.state, Reason: "port " + c.guidOf(p).String() + " is a master of higher rank"}
	c.problem(problemKey{kind: foreignMaster}, e)
	c.after(c.cfg.PollEvery, timerPoll, ref{})
	c.viewDue = true
}

// poll asks the master whether it lives.
func (c *Core) poll() {
	if c.state != ib.SMStandby {
		return
	}
	if !c.nodes[c.ports[c.master].node].alive || c.nodes[c.ports[c.master].node].silent {
		c.takeOver("the master is gone")
		return
	}
	c.markPort(clsSMInfo, c.master)
	c.after(c.cfg.PollEvery, timerPoll, ref{})
}

// takeOver begins anew, from what is on the fabric now: what was read before
// may have been changed by the master that was.
func (c *Core) takeOver(reason string) {
	c.solved(problemKey{kind: foreignMaster})
	c.state, c.master = ib.SMDiscovering, topo.None
	c.event(&StateChanged{State: c.state, Reason: reason})
	c.renewAll()
	c.treeEpoch++
	for id := range c.nodes {
		if c.nodes[id].alive {
			c.nodes[id].lft.forget()
			c.refresh(topo.NodeID(id))
			if c.topo.Node(topo.NodeID(id)).Type == ib.NodeSwitch {
				c.rebooted(topo.NodeID(id))
				c.nodes[id].infoKnown = false
			}
		}
	}
	for p := range c.ports {
		pt := &c.ports[p]
		pt.pkeys, pt.slvl, pt.keysOK, pt.bitsProven, pt.lid, pt.fresh = nil, slvlState{}, false, false, 0, false
	}
	c.wantRoutes()
}

// watchEvery is how often our own port is looked at: nobody sends a trap about
// it that could reach us.
const watchEvery = time.Second

func (c *Core) watch() {
	c.after(watchEvery, timerWatch, ref{})
	if c.rootPort != topo.None && c.nodes[c.root].alive {
		c.background(c.rootPort)
	}
}
