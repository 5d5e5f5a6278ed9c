package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/portchange"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// observe takes the PortInfo of a port from the answer to a Get, or to a Set.
func (c *Core) observe(p topo.PortID, pi *mad.PortInfo, byGet bool) {
	pt := &c.ports[p]
	old, was, guessed := pt.info, pt.known, pt.unread
	pi.ClientReregister = false // a request, no state
	pt.info, pt.known, pt.unread = *pi, true, false
	if !was || old != *pi {
		c.devices.NotePort(p)
		c.devices.StirPort(p)
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
	if c.election.State() == ib.SMDiscovering && pt.num != 0 && pi.PortState >= ib.PortArmed {
		c.configured = true
	}
	c.hosts.See(p)
	c.lanes.ProveArmed(p, old.PortState)
	if was && byGet && old.PortState != pi.PortState {
		if c.topo.IsExternal(p) && !c.dark(p) {
			c.nodes[pt.node].look.Prove()
		}
	}
	proven := pt.set.IsProven()
	pt.set.Show(pi.PartitionEnforcementInbound && pi.PartitionEnforcementOutbound, byGet)
	c.links.Note(p, old.PortState, linkUp(&pt.info))
	c.copyPort(p)
	if pt.num == 0 && c.topo.IsEndPort(p) && (!was || (old.CapabilityMask ^ pi.CapabilityMask).Has(mad.IsSLMappingSupported)) {
		laneFabric{c}.recap(pt.node)
	}
	epoch := c.nodes[pt.node].epoch
	hasLink := pt.num != 0
	if byGet {
		c.law.Reread(p)
	}
	if !was {
		lawActions{desk{c}}.first(p)
	}
	if hasLink && !was && (byGet || !guessed) {
		pt.fresh = pi.PortState == ib.PortInit
	}
	if !was {
		// What a write shows says nothing of what was there.
		pt.checked = !byGet || pi.PartitionEnforcementInbound || pi.PartitionEnforcementOutbound
	}
	c.follow(p, portchange.Compare(&old, &pt.info, portchange.Known{
		LID: pt.lid, Num: pt.num, IsExternal: c.topo.IsExternal(p), WasRead: was, ByGet: byGet,
	}))
	if c.nodes[pt.node].epoch != epoch {
		return
	}
	defer c.sure.See(p, byGet)
	if c.topo.IsEndPort(p) {
		c.lids.Settle(p)
		if byGet || guessed {
			c.election.Look(p, pi.CapabilityMask.Has(mad.IsSM))
		}
	}
	if hasLink {
		c.links.Judge(p)
		c.refusing.KeepClosed(p)
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

// follow does what follows from what happened to a port.
func (c *Core) follow(p topo.PortID, ch portchange.Change) {
	id := c.ports[p].node
	n := &c.nodes[id]
	if ch.LostBits {
		c.pkeys.Forget(p)
		n.sw.Reboot()
		n.sw.Verify()
		c.q.MarkNode(work.Switch, id)
	}
	if ch.LostLID {
		c.rebooted(id)
		n.sw.Recheck() // LinearFDBTop is gone, too
		c.q.MarkNode(work.Switch, id)
	}
	if ch.HasFlapped {
		c.quarantine.StrikeFlapping(p, c.topo.Peer(p))
	}
	switch {
	case ch.Link == portchange.Down:
		c.linkDown(p)
	case ch.Link == portchange.Bounced:
		c.bounced(p)
	case ch.Link == portchange.Up && c.topo.Peer(p) == topo.None:
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
	c.refusing.LinkDown(p)
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
	n.sw.Reboot()
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
