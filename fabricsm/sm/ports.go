package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// own returns our own end port, None before it is known.
func (c *Core) own() topo.PortID {
	if c.root == topo.None {
		return topo.None
	}
	if tn := c.topo.Node(c.root); tn.Type == ib.NodeSwitch {
		return tn.FirstPort
	}
	return c.rootPort
}

// smLID returns our own LID, 0 before it is assigned.
func (c *Core) smLID() ib.LID {
	if p := c.own(); p != topo.None {
		return c.ports[p].lid
	}
	return 0
}

// workSet writes PortInfo: parameters that differ, and the next step of the
// port's state.
func (c *Core) workSet(p topo.PortID) {
	pt := &c.ports[p]
	if !c.writing() || c.quarantine.Work(p) || (linkFabric{desk{c}}).holdDown(p) || !c.settings.IsSettable(p) {
		return
	}
	if pt.unread && !c.unread.MayWrite(p) {
		c.unread.Read(p)
		return
	}
	if c.topo.IsExternal(p) && c.topo.IsEndPort(c.topo.Peer(p)) {
		settingFabric{desk{c}}.tellEnforcement(p)
	}
	want, fields := c.settings.Want(p)
	differ := portset.Differing(&pt.info, &want) & fields
	state := c.settings.NextState(p, portGate{c})
	key, may := false, true
	if c.topo.IsEndPort(p) {
		key, may = c.mkeys.Want(p, &pt.info, &want)
	}
	if !may {
		return
	}
	if !key && differ&^c.nodes[pt.node].notKept == 0 && state == ib.PortNop && !c.settings.MustRenew(p) {
		linkFabric{desk{c}}.retrain(p)
		return
	}
	if state == ib.PortNop && !key && pt.num != 0 && pt.info.PortState == ib.PortInit && differ&portset.LinkSpeeds == 0 {
		return // joined with the step to Armed
	}
	want.PortState, want.PortPhysicalState = state, ib.PhysNop
	portpolicy.SetLink(&want, differ&portset.LinkWidth != 0, differ&portset.LinkSpeed != 0)
	want.ClientReregister = c.settings.Renews(p, differ, state)

	tried := differ
	if pt.unread {
		tried = fields
	}
	pt.set.Begin(tried, state, want.ClientReregister)
	m := c.ask(work.OnPort(work.Set, p), pt.node, mad.MethodSet, mad.AttrPortInfo, c.settings.Mod(p, differ))
	c.encode(mad.Encode(m.Data(), &want))
}

func (c *Core) gotSet(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	pt := &c.ports[p]
	c.mkeys.SetAnswered(p, status == mad.StatusOK)
	stuck := pt.set.Count()
	if status != mad.StatusOK && pt.unread {
		c.unread.Read(p)
		return
	}
	if status != mad.StatusOK {
		if stuck || status.Code() != mad.StatusInvalidField {
			pt.set.Restart()
			c.refused(r, status.String())
			return
		}
		// Most likely the port's state changed under us: look, then try again.
		c.q.MarkPort(work.Info, p)
		return
	}
	var pi mad.PortInfo
	if mad.Decode(m.Data(), &pi) != nil {
		return
	}
	if !c.settings.IsSettable(p) {
		c.observe(p, &pi, false) // the cable was pulled in the meantime
		return
	}
	pt.set.Renewed()
	tried := pt.set.Tried()
	if tried&portset.LinkSpeeds != 0 {
		c.links.Retuned(p)
	}
	changed := tried
	if pt.unread {
		pt.info = pi // the wanted fields depend on what the port supports
		changed = 0  // a field that was right already does not prove that a change is kept
	}
	want, fields := c.settings.Want(p)
	missed := portset.Differing(&pi, &want) & fields & tried
	c.learn(pt.node, changed&fields, missed)
	if tried&portset.Enforcement != 0 || want.PartitionEnforcementInbound {
		pt.set.Accept()
	}
	moved := pt.set.Moved(&pi, missed)
	if moved {
		pt.set.Restart()
	}
	if stuck && !moved {
		pt.set.Restart()
		c.observe(p, &pi, false)
		c.refused(r, "it answers without an error and changes nothing")
		return
	}
	c.observe(p, &pi, false)
	c.pkeys.Judge.Port(p)
}
