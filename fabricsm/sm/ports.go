package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/portpolicy"
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
	if !c.writing() || c.workQuarantine(p) || c.holdDown(p) || !c.settable(p) {
		return
	}
	if pt.unread && !c.mayWriteUnread(p) {
		c.readAfterAll(p)
		return
	}
	if c.topo.IsExternal(p) && c.topo.IsEndPort(c.topo.Peer(p)) {
		c.tellEnforcement(p)
	}
	want, fields := c.wantInfo(p)
	differ := differing(&pt.info, &want) & fields
	state := c.nextState(p)
	key, may := false, true
	if c.topo.IsEndPort(p) {
		key, may = c.mkeys.Want(p, &pt.info, &want)
	}
	if !may {
		return
	}
	if !key && differ&^c.nodes[pt.node].notKept == 0 && state == ib.PortNop && !c.mustRenew(p) {
		c.retrain(p)
		return
	}
	if state == ib.PortNop && !key && pt.num != 0 && pt.info.PortState == ib.PortInit && differ&fieldLink == 0 {
		return // joined with the step to Armed
	}
	want.PortState, want.PortPhysicalState = state, ib.PhysNop
	portpolicy.SetLink(&want, differ&FieldLinkWidth != 0, differ&FieldLinkSpeed != 0)
	want.ClientReregister = c.renews(p, differ, state)

	pt.setTried, pt.setState, pt.setRenews = differ, state, want.ClientReregister
	if pt.unread {
		pt.setTried = fields
	}
	m := c.ask(work.OnPort(work.Set, p), pt.node, mad.MethodSet, mad.AttrPortInfo, c.setMod(p, differ))
	c.encode(mad.Encode(m.Data(), &want))
}

// settable reports whether all is known that the parameters of a port depend
// on.
func (c *Core) settable(p topo.PortID) bool {
	pt := &c.ports[p]
	if !pt.seen() || c.smLID() == 0 || c.topo.IsEndPort(p) && pt.lid == 0 {
		return false
	}
	if pt.num == 0 {
		return true
	}
	peer := c.topo.Peer(p)
	return peer != topo.None && c.ports[peer].known && linkUp(&pt.info)
}

// nextState returns the state a port may be moved to now, PortNop for none.
func (c *Core) nextState(p topo.PortID) ib.PortState {
	pt := &c.ports[p]
	if pt.num == 0 || !c.pkeys.IsDone(p) || !c.lanes.IsDone(p) {
		return ib.PortNop
	}
	switch pt.info.PortState {
	case ib.PortInit:
		if c.isClosed(p) || c.topo.IsExternal(p) && c.hasOtherKey(c.topo.Peer(p)) {
			return ib.PortNop // in Armed the first packet of the host would open it
		}
		if !c.members.IsReady() && c.topo.IsExternal(p) && c.topo.IsExternal(c.topo.Peer(p)) {
			return ib.PortNop // the intent says whether a host belongs there
		}
		return ib.PortArmed
	case ib.PortArmed:
		if s := c.ports[c.topo.Peer(p)].info.PortState; s != ib.PortArmed && s != ib.PortActive {
			return ib.PortNop
		}
		if !c.mayActivate(p) {
			return ib.PortNop
		}
		if !c.forwarding() {
			c.routing.waiting = append(c.routing.waiting, work.OnPort(work.Set, p))
			return ib.PortNop
		}
		return ib.PortActive
	default:
		return ib.PortNop
	}
}

// wantInfo returns the wanted PortInfo, and which fields of it matter on this port.
func (c *Core) wantInfo(p topo.PortID) (w mad.PortInfo, fields PortFields) {
	pt := &c.ports[p]
	w = pt.info
	cfg := &c.cfg.Ports
	if c.topo.IsEndPort(p) {
		fields |= FieldLID | FieldLMC | FieldGIDPrefix | FieldMasterSMLID | FieldMasterSMSL | FieldSubnetTimeOut
		w.LID, w.LMC, w.GIDPrefix = pt.lid, c.lids.LMC(p), c.cfg.Prefix
		// Never the values that the port showed: a misread answer would lock out every manager.
		w.MKey, w.MKeyProtectBits, w.MKeyLeasePeriod = ib.MKey{}, 0, 0
		w.MasterSMLID, w.MasterSMSL, w.SubnetTimeOut = c.smLID(), c.smSL(p), cfg.SubnetTimeOut
	}
	if pt.num == 0 {
		return w, fields | c.wantPort0(p, &w)
	}
	peer := &c.ports[c.topo.Peer(p)]
	fields |= FieldNeighborMTU | FieldOperationalVLs | FieldLinkDownDefaultState | FieldErrorThresholds
	mtu, vls := c.rules.Maxima(p)
	if c.rules.Any() {
		far, farVLs := c.rules.Maxima(c.topo.Peer(p)) // one value for both ends
		mtu, vls = min(mtu, far), min(vls, farVLs)
	}
	w.NeighborMTU = max(ib.MTU256, min(pt.info.MTUCap, peer.info.MTUCap, mtu))
	w.OperationalVLs = max(1, min(pt.info.VLCap, peer.info.VLCap, vls))
	w.LinkDownDefaultState = ib.PhysPolling
	w.LocalPhyErrors, w.OverrunErrors = cfg.LocalPhyErrors, cfg.OverrunErrors
	width, speed := c.rules.WantLink(p, &w)
	if width {
		fields |= FieldLinkWidth
	}
	if speed {
		fields |= FieldLinkSpeed
	}
	fields |= c.wantHOQ(p, &w)
	if limit, ok := c.lanes.HighLimit(p); ok {
		fields |= FieldVLHighLimit
		w.VLHighLimit = limit
	}
	if c.topo.IsEndPort(p) {
		return w, fields
	}
	host := c.topo.IsEndPort(c.topo.Peer(p))
	si := &c.nodes[pt.node].info
	if c.canEnforce(p) {
		fields |= fieldEnforcement
		w.PartitionEnforcementInbound, w.PartitionEnforcementOutbound = host, host
		if host && !c.pkeys.IsDone(p) {
			// Table first, bits second.
			w.PartitionEnforcementInbound, w.PartitionEnforcementOutbound = pt.info.PartitionEnforcementInbound, pt.info.PartitionEnforcementOutbound
		}
	}
	if si.FilterRawInboundCap && si.FilterRawOutboundCap && !c.cfg.Weakness.NoRawFilter {
		fields |= FieldFilterRaw
		w.FilterRawInbound, w.FilterRawOutbound = host, host
	}
	return w, fields
}

// differing returns the fields in which two PortInfo differ.
func differing(a, b *mad.PortInfo) (f PortFields) {
	add := func(field PortFields, differs bool) {
		if differs {
			f |= field
		}
	}
	add(FieldLID, a.LID != b.LID)
	add(FieldLMC, a.LMC != b.LMC)
	add(FieldGIDPrefix, a.GIDPrefix != b.GIDPrefix)
	add(FieldMasterSMLID, a.MasterSMLID != b.MasterSMLID)
	add(FieldMasterSMSL, a.MasterSMSL != b.MasterSMSL)
	add(FieldSubnetTimeOut, a.SubnetTimeOut != b.SubnetTimeOut)
	add(FieldNeighborMTU, a.NeighborMTU != b.NeighborMTU)
	add(FieldOperationalVLs, a.OperationalVLs != b.OperationalVLs)
	add(FieldVLStallCount, a.VLStallCount != b.VLStallCount)
	add(FieldHOQLife, a.HOQLife != b.HOQLife)
	add(FieldLinkDownDefaultState, a.LinkDownDefaultState != b.LinkDownDefaultState)
	add(FieldErrorThresholds, a.LocalPhyErrors != b.LocalPhyErrors || a.OverrunErrors != b.OverrunErrors)
	add(FieldEnforcementInbound, a.PartitionEnforcementInbound != b.PartitionEnforcementInbound)
	add(FieldEnforcementOutbound, a.PartitionEnforcementOutbound != b.PartitionEnforcementOutbound)
	add(FieldLinkWidth, a.LinkWidthEnabled != b.LinkWidthEnabled)
	add(FieldLinkSpeed, a.LinkSpeedEnabled != b.LinkSpeedEnabled || a.LinkSpeedExtEnabled != b.LinkSpeedExtEnabled ||
		a.LinkSpeedExtEnabled2 != b.LinkSpeedExtEnabled2)
	add(FieldVLHighLimit, a.VLHighLimit != b.VLHighLimit)
	add(FieldFilterRaw, a.FilterRawInbound != b.FilterRawInbound || a.FilterRawOutbound != b.FilterRawOutbound)
	return f
}

// maxSetRounds is how many Sets in a row may change nothing before a port is
// left alone for a while.
const maxSetRounds = 4

// neverForgotten are fields without which a port does not work: a device that
// does not keep them is broken, and is asked again.
const neverForgotten = FieldLID | FieldMasterSMLID

func (c *Core) gotSet(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	pt := &c.ports[p]
	pt.setRounds++
	c.mkeys.SetAnswered(p, status == mad.StatusOK)
	stuck := pt.setRounds > maxSetRounds
	if status != mad.StatusOK && pt.unread {
		c.readAfterAll(p)
		return
	}
	if status != mad.StatusOK {
		if stuck || status.Code() != mad.StatusInvalidField {
			pt.setRounds = 0
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
	if !c.settable(p) {
		c.observe(p, &pi, false) // the cable was pulled in the meantime
		return
	}
	pt.renewed()
	if pt.setTried&fieldLink != 0 {
		c.links.Retuned(p)
	}
	changed := pt.setTried
	if pt.unread {
		pt.info = pi // the wanted fields depend on what the port supports
		changed = 0  // a field that was right already does not prove that a change is kept
	}
	want, fields := c.wantInfo(p)
	missed := differing(&pi, &want) & fields & pt.setTried
	c.learn(pt.node, changed&fields, missed)
	if pt.setTried&fieldEnforcement != 0 || want.PartitionEnforcementInbound {
		pt.enforced = true
	}
	moved := pt.setState != ib.PortNop && pi.PortState == pt.setState || pt.setTried&^missed != 0
	if moved {
		pt.setRounds = 0
	}
	if stuck && !moved {
		pt.setRounds = 0
		c.observe(p, &pi, false)
		c.refused(r, "it answers without an error and changes nothing")
		return
	}
	c.observe(p, &pi, false)
	c.pkeys.Judge.Port(p)
}

// canEnforce reports whether a switch port has a P_Key table and declares what
// Config.Enforcement asks for.
func (c *Core) canEnforce(p topo.PortID) bool {
	si := &c.nodes[c.ports[p].node].info
	return si.PartitionEnforcementCap > 0 &&
		(c.cfg.Enforcement == Accepted || si.InboundEnforcementCap && si.OutboundEnforcementCap)
}

// tellEnforcement reports once why the hosts of a switch get no partition.
func (c *Core) tellEnforcement(p topo.PortID) {
	id := c.ports[p].node
	n := &c.nodes[id]
	reason := ""
	switch {
	case !n.infoKnown:
		return
	case n.info.PartitionEnforcementCap == 0:
		reason = "it has no P_Key tables for its ports"
	case !c.canEnforce(p):
		reason = "its SwitchInfo does not declare enforcement in both directions"
	case c.cfg.Enforcement == Verified && n.notKept&fieldEnforcement != 0:
		reason = "it does not keep the enforcement bits of PortInfo"
	}
	k := fault.Key{Kind: fault.NoEnforcement, GUID: c.topo.NodeGUID(id)}
	if reason == "" {
		c.faults.Clear(k)
		return
	}
	c.problem(k, &CannotEnforce{GUID: k.GUID, Reason: reason})
}

// notProven takes a Get that does not show the enforcement bits which the answer to a Set had shown. A device that shows
// the bits and does not keep them would otherwise be asked without end. A port that lost its configuration in the meantime
// is not such a device.
func (c *Core) notProven(p topo.PortID, got *mad.PortInfo) {
	pt := &c.ports[p]
	if !pt.known || !pt.bitsTold() || got.PortState != pt.info.PortState {
		return
	}
	if lost := differing(&pt.info, got) & fieldEnforcement; lost != 0 {
		c.learn(pt.node, 0, lost)
	}
}

// bitsTold reports whether the answer to a Set showed the enforcement bits, but no Get has yet.
func (pt *port) bitsTold() bool {
	return !pt.bitsProven && pt.info.PartitionEnforcementInbound && pt.info.PartitionEnforcementOutbound
}

// enforces reports whether a switch port is proven to check P_Keys, as far as
// Config.Enforcement asks.
func (c *Core) enforces(p topo.PortID) bool {
	pt := &c.ports[p]
	if !c.canEnforce(p) || !pt.known {
		return false
	}
	if pt.bitsProven {
		return true
	}
	forgotten := c.nodes[pt.node].notKept&fieldEnforcement == fieldEnforcement
	return c.cfg.Enforcement == Accepted && (pt.enforced || forgotten)
}

// forgetsEnforcement reports whether a switch port accepted the enforcement bits but did not keep them, which is no
// enforcement.
func (c *Core) forgetsEnforcement(p topo.PortID) bool {
	pt := &c.ports[p]
	bits := pt.info.PartitionEnforcementInbound && pt.info.PartitionEnforcementOutbound
	return c.cfg.Enforcement == Verified && !bits && c.nodes[pt.node].notKept&fieldEnforcement != 0
}
