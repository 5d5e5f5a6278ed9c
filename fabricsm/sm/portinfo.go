package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

func (c *Core) workInfo(p topo.PortID) {
	pt := &c.ports[p]
	if c.mkeys.IsSetOut(p) {
		return // it is read when that is answered, see mkeys.Keeper.SetAnswered
	}
	c.sure.Ask(p)
	c.auditing, pt.background = pt.background, false
	c.ask(work.OnPort(work.Info, p), pt.node, mad.MethodGet, mad.AttrPortInfo, mad.PortInfoMod(pt.num, 0))
	c.auditing = false
}

func (c *Core) gotPortInfo(p topo.PortID, m *mad.MAD, status mad.Status) {
	var pi mad.PortInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &pi) != nil {
		c.changes.Answer(p, true)
		if c.contests.IsOpen(p) && c.topo.Peer(p) == topo.None && !c.topo.IsExternal(p) {
			c.ports[p].mute = true
			c.contests.Release(p)
			return
		}
		c.refused(&work.Request{Ref: work.OnPort(work.Info, p), Node: c.ports[p].node, Method: mad.MethodGet, Attr: mad.AttrPortInfo}, status.String())
		return
	}
	c.changes.Answer(p, !c.ports[p].known || pi.PortState != c.ports[p].info.PortState)
	c.sure.Answered(p, pi.LID)
	was := ib.PortNop
	if pt := &c.ports[p]; pt.known {
		was = pt.info.PortState
	}
	c.mkeys.Found(p, &pi, was)
	if lost := c.settings.LostBits(p, &pi); lost != 0 {
		c.learn(c.ports[p].node, 0, lost)
	}
	if pi.PartitionEnforcementInbound && pi.PartitionEnforcementOutbound && c.nodes[c.ports[p].node].notKept&portset.Enforcement != 0 {
		// It does keep them: the observation to the contrary was a mistake.
		c.learn(c.ports[p].node, portset.Enforcement, 0)
		c.touchNode(c.ports[p].node)
	}
	c.observe(p, &pi, true)
}

// observe takes the PortInfo of a port from the answer to a Get, or to a Set.
func (c *Core) observe(p topo.PortID, pi *mad.PortInfo, byGet bool) {
	pt := &c.ports[p]
	old, was, guessed := pt.info, pt.known, pt.unread
	pi.ClientReregister = false // a request, no state
	pt.info, pt.known, pt.unread = *pi, true, false
	if !was || old != *pi {
		c.showPort(p)
	}
	if was && !guessed {
		c.reports.RecordCounters(p, &old, pi, byGet)
		if byGet && old.MKeyProtectBits > 0 {
			c.mkeys.FindLapse(p, pi)
		}
		if byGet {
			c.wrote.Compare(p, &old, pi)
		}
	}
	if !was && byGet && pi.MKeyLeasePeriod > 0 {
		c.mkeys.FindLapse(p, pi) // it ran out before this manager started
	}
	c.looked = c.looked || pt.node != c.root
	if c.state == ib.SMDiscovering && pt.num != 0 && pi.PortState >= ib.PortArmed {
		c.configured = true
	}
	c.hosts.See(p)
	c.lanes.ProveArmed(p, old.PortState)
	if was && byGet && old.PortState != pi.PortState {
		c.bornOut(p)
	}
	proven := pt.set.IsProven()
	pt.set.Show(pi.PartitionEnforcementInbound && pi.PartitionEnforcementOutbound, byGet)
	c.links.Note(p, old.PortState, linkUp(&pt.info))
	c.copyPort(p)
	if pt.num == 0 && c.topo.IsEndPort(p) && (!was || (old.CapabilityMask ^ pi.CapabilityMask).Has(mad.IsSLMappingSupported)) {
		c.recapLanes(pt.node)
	}
	epoch := c.nodes[pt.node].epoch
	hasLink := pt.num != 0
	if byGet {
		c.law.Reread(p)
	}
	if !was {
		c.lawFirst(p)
	}
	if hasLink && !was && (byGet || !guessed) {
		pt.fresh = pi.PortState == ib.PortInit
	}
	if byGet && was {
		c.observeReset(p, &old)
	}
	if hasLink {
		c.observeLink(p, &old, was, byGet)
	}
	if c.nodes[pt.node].epoch != epoch {
		return
	}
	defer c.sure.See(p, byGet)
	if c.topo.IsEndPort(p) {
		c.lids.Settle(p)
		if byGet || guessed {
			c.lookForSM(p, pi)
		}
	}
	if hasLink {
		c.links.Judge(p)
		c.keepClosed(p)
	}
	if was && *pi == old && pt.set.IsProven() == proven {
		c.q.MarkPort(work.Set, p)
		return
	}
	c.touch(p)
	if peer := c.topo.Peer(p); peer != topo.None {
		c.touch(peer)
	}
}

// observeReset looks for signs in a Get, compared with old, that a switch was reset.
func (c *Core) observeReset(p topo.PortID, old *mad.PortInfo) {
	pt := &c.ports[p]
	pi, n := &pt.info, &c.nodes[pt.node]
	if c.topo.IsExternal(p) && portset.Differing(old, pi)&portset.Enforcement != 0 {
		// It most likely rebooted, and has lost its tables, too.
		c.pkeys.Forget(p)
		n.reset, n.verify = false, true
		c.q.MarkNode(work.Switch, pt.node)
	}
	if pt.num == 0 && pt.lid != 0 && old.LID == pt.lid && pi.LID == 0 {
		c.rebooted(pt.node)
		n.recheck = true // LinearFDBTop is gone, too
		c.q.MarkNode(work.Switch, pt.node)
	}
}

// observeLink takes what became of the link of a port since old, if it was known.
func (c *Core) observeLink(p topo.PortID, old *mad.PortInfo, was, byGet bool) {
	pi := &c.ports[p].info
	switch {
	case !linkUp(pi):
		if byGet && was && linkUp(old) {
			c.flapped(p, c.topo.Peer(p))
		}
		c.linkDown(p)
	case was && old.PortState >= ib.PortArmed && pi.PortState == ib.PortInit:
		if byGet {
			c.flapped(p, c.topo.Peer(p))
		}
		c.bounced(p)
	case c.topo.Peer(p) == topo.None:
		c.linkFound(p)
	}
}

// copyPort brings topo.Port up to date with PortInfo.
func (c *Core) copyPort(p topo.PortID) {
	pt := &c.ports[p]
	pi := &pt.info
	tp := c.topo.Port(p)
	tp.State, tp.Phys = pi.PortState, pi.PortPhysicalState
	tp.WidthOffered = pi.LinkWidthSupported & pi.LinkWidthEnabled
	tp.SpeedOffered = c.links.Offered(p)
	tp.MTUCap, tp.NeighborMTU, tp.VLCap = pi.MTUCap, pi.NeighborMTU, c.settings.LaneCap(p)
	tp.Speed, tp.Width = c.links.Running(p)
	tp.LID, tp.LMC = pt.lid, c.lids.LMC(p)
	c.topo.SetPort(p, tp)
}

// linkDown takes that a port has no link.
func (c *Core) linkDown(p topo.PortID) {
	pt := &c.ports[p]
	c.law.Down(p, true)
	c.closedLinkDown(p)
	c.contests.Unfence(p)
	c.faults.Clear(fault.Key{Kind: fault.LinkDead, Place: c.topo.PlaceOf(p)})
	c.faults.Clear(fault.Key{Kind: fault.SwitchForHost, Place: c.topo.PlaceOf(p)})
	pt.told, pt.pause, pt.verify = false, 0, false
	c.links.Trained(p)
	c.contests.Release(p)
	q := c.topo.Peer(p)
	if q == topo.None {
		return
	}
	c.unlink(p)
	if far := &c.nodes[c.ports[q].node]; far.alive {
		c.q.MarkPort(work.Info, q)
	}
}

// bounced records that a link went down and came up between two reads. The device at its end, and its state, are not known.
func (c *Core) bounced(p topo.PortID) {
	pt := &c.ports[p]
	pt.fresh = true
	c.links.Trained(p)
	q := c.topo.Peer(p)
	if q == topo.None {
		c.law.Down(p, true)
		c.linkFound(p)
		return
	}
	epoch := c.nodes[pt.node].epoch
	c.unlink(p)
	if c.nodes[c.ports[q].node].alive {
		c.q.MarkPort(work.Info, q)
	}
	if c.nodes[pt.node].epoch == epoch {
		c.linkFound(p)
	}
}

// linkFound reads the device at the end of a link that is up.
func (c *Core) linkFound(p topo.PortID) {
	pt := &c.ports[p]
	if c.contests.Settle(p) {
		return
	}
	if c.tree.Probes(p) && !c.dark(p) && !c.contests.IsFenced(p) && pt.pause == 0 {
		c.q.MarkPort(work.Probe, p)
	}
}

func (c *Core) workSwitch(id topo.NodeID) {
	n := &c.nodes[id]
	x := work.OnNode(work.Switch, id)
	if !n.infoKnown || n.verify || n.recheck {
		c.auditing, n.quiet = n.quiet && !n.verify, false
		c.ask(x, id, mad.MethodGet, mad.AttrSwitchInfo, 0)
		c.auditing = false
		return
	}
	if !c.writing() {
		return
	}
	want := n.info
	if t := c.routing.tables; t.LFT(id) != nil {
		want.LinearFDBTop = t.MaxLID
		if !n.lifetime {
			want.LifeTimeValue = c.cfg.Ports.PacketLifetime
		}
	}
	want.PortStateChange = n.clearPSC
	have := n.info
	have.PortStateChange = false
	c.wantMulticast(id, &want)
	if want == have || n.doubt.IsUnsure() && !c.sure.HasLID(id) {
		return
	}
	if r := &c.routing; r.tables.LFT(id) == nil && (r.need || r.running) && !n.clearPSC {
		return // joined with LinearFDBTop, which follows from the tables
	}
	n.topAsked = want.LinearFDBTop
	n.mcAsked = multicast.AskedBy(&want)
	m := c.ask(x, id, mad.MethodSet, mad.AttrSwitchInfo, 0)
	c.encode(mad.Encode(m.Data(), &want))
}

func (c *Core) gotSwitchInfo(id topo.NodeID, r *work.Request, m *mad.MAD, status mad.Status) {
	var si mad.SwitchInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &si) != nil {
		c.refused(r, status.String())
		return
	}
	n := &c.nodes[id]
	old, was := n.info, n.infoKnown
	si.PartitionEnforcementCap = min(si.PartitionEnforcementCap, identity.MaxKeys)
	n.info, n.infoKnown = si, true
	c.showSwitch(id)
	c.copySwitch(id)
	if r.Method == mad.MethodSet {
		c.setSwitchDone(id, r)
		return
	}
	verify := n.verify
	n.verify, n.recheck = false, false
	if !was {
		c.touchNode(id)
		c.lfts.Read(id)
	} else if si.LinearFDBTop < old.LinearFDBTop {
		if c.strikeNode(id, health.Rebooting); !n.alive {
			return
		}
		c.rebooted(id)
	}
	if !was || si.LinearFDBTop < old.LinearFDBTop {
		n.reset = si.LinearFDBTop == 0
		c.groups.Forget(id)
	}
	if verify && si.PortStateChange {
		// It is set after any bring-up, so it says something only when a trap
		// made us ask. It is cleared before the ports are read: a change in
		// between sets it again.
		n.readPorts, n.clearPSC = true, true
		if !c.writing() {
			c.searchPorts(id)
		}
	}
	c.q.MarkNode(work.Switch, id)
	c.lfts.Recount(id)
}

// searchPorts looks for the ports of a switch that changed.
func (c *Core) searchPorts(id topo.NodeID) {
	c.nodes[id].readPorts = false
	c.changes.Begin(id)
}

// setSwitchDone takes the answer to a Set of SwitchInfo.
func (c *Core) setSwitchDone(id topo.NodeID, r *work.Request) {
	n := &c.nodes[id]
	if n.clearPSC {
		n.clearPSC = false
		if n.readPorts {
			c.searchPorts(id)
		}
	}
	c.learnMulticast(id)
	t := c.routing.tables
	if t.LFT(id) != nil && n.info.LinearFDBTop != t.MaxLID && n.topAsked == t.MaxLID {
		c.refused(r, "LinearFDBTop is not kept")
		c.lfts.Recount(id)
		return
	}
	if n.info.LifeTimeValue != c.cfg.Ports.PacketLifetime {
		n.lifetime = true
	}
	c.q.MarkNode(work.Switch, id)
	c.lfts.Recount(id)
}

// copySwitch brings topo.Node up to date with SwitchInfo.
func (c *Core) copySwitch(id topo.NodeID) {
	si := &c.nodes[id].info
	tn := c.topo.Node(id)
	was := tn
	// LinearFDBCap is not trusted: one device with a false value would stop routing for all. A switch that is too small
	// refuses its own blocks.
	tn.MulticastFDBCap = si.MulticastFDBCap
	tn.PartitionEnforcementCap = si.PartitionEnforcementCap
	tn.InboundEnforcementCap, tn.OutboundEnforcementCap = si.InboundEnforcementCap, si.OutboundEnforcementCap
	tn.EnhancedPort0 = si.EnhancedPort0
	if tn.MulticastFDBCap != was.MulticastFDBCap && (c.routing.tables != nil || c.routing.running) {
		c.wantRoutes() // a snapshot from before shows no room for multicast there
	}
	if tn != was {
		c.topo.SetNode(id, tn)
		c.pkeys.Moved()
		c.touchNode(id)
	}
}

// touchNode checks again the programmed state of all ports of a node that were read.
func (c *Core) touchNode(id topo.NodeID) {
	tn := c.topo.Node(id)
	for i := range int(tn.NumPorts) + 1 {
		if p := tn.FirstPort + topo.PortID(i); c.ports[p].seen() {
			c.touch(p)
		}
	}
}

// rebooted forgets what a switch held: it has lost its tables.
func (c *Core) rebooted(id topo.NodeID) {
	n := &c.nodes[id]
	c.lfts.Forget(id)
	n.reset = false
	n.doubt.Doubt(true)
	c.keyDoubted(c.topo.Node(id).FirstPort)
	c.groups.Forget(id)
	tn := c.topo.Node(id)
	for i := range int(tn.NumPorts) + 1 {
		p := tn.FirstPort + topo.PortID(i)
		c.pkeys.Forget(p)
		c.pkeys.Undo(p)
		c.lanes.DoubtReset(p)
		c.q.MarkPort(work.Info, p)
		c.touch(p)
	}
	c.lfts.Compare(id)
}

// encode takes the error of an Encode whose values are all in range by
// construction.
func (c *Core) encode(err error) {
	if err != nil {
		panic("sm: " + err.Error())
	}
}
