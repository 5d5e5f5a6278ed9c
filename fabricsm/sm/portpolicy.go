package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// setMod is the attribute modifier of a Set of PortInfo. Devices take extended
// speeds from managers that say they know them.
func (c *Core) setMod(p topo.PortID, differ PortFields) uint32 {
	pt := &c.ports[p]
	ext := uint32(0)
	if differ&FieldLinkSpeed != 0 && c.capabilities(p).Has(mad.IsExtendedSpeedsSupported) {
		ext = mad.PortInfoExtSpeeds
	}
	return mad.PortInfoMod(pt.num, ext)
}

// capabilities returns the CapabilityMask that applies to a port: for a port of a switch, that of port 0.
func (c *Core) capabilities(p topo.PortID) mad.CapabilityMask {
	if c.topo.IsExternal(p) {
		p = c.topo.Node(c.ports[p].node).FirstPort
	}
	return c.ports[p].info.CapabilityMask
}

// enhanced reports port 0 of a switch that has the parameters of an end port's
// link.
func (c *Core) enhanced(p topo.PortID) bool {
	pt := &c.ports[p]
	return pt.num == 0 && c.nodes[pt.node].infoKnown && c.nodes[pt.node].info.EnhancedPort0
}

// wantPort0 adds the wanted fields of an enhanced port 0.
func (c *Core) wantPort0(p topo.PortID, w *mad.PortInfo) (fields PortFields) {
	if !c.enhanced(p) {
		return 0
	}
	mtu, vls := c.rules.Maxima(p)
	if w.MTUCap >= ib.MTU256 {
		w.NeighborMTU, fields = min(w.MTUCap, mtu), FieldNeighborMTU
	}
	if w.VLCap >= 1 {
		w.OperationalVLs, fields = min(w.VLCap, vls), fields|FieldOperationalVLs
	}
	return fields
}

// wantHOQ adds the times at the head of a queue of a port that forwards: those
// of switches, and of routers.
func (c *Core) wantHOQ(p topo.PortID, w *mad.PortInfo) PortFields {
	cfg := &c.cfg.Ports
	if c.topo.IsEndPort(p) {
		if c.topo.Node(c.ports[p].node).Type != ib.NodeRouter {
			return 0
		}
		w.HOQLife = cfg.HOQLife
		return FieldHOQLife
	}
	w.VLStallCount, w.HOQLife = cfg.VLStallCount, cfg.HOQLife
	if c.topo.IsEndPort(c.topo.Peer(p)) {
		w.VLStallCount, w.HOQLife = cfg.LeafVLStallCount, cfg.LeafHOQLife
	}
	return FieldVLStallCount | FieldHOQLife
}

// holdDown takes the link of a switch port down that a rule disables, and
// reports whether there is such a rule. Our own link is never taken.
func (c *Core) holdDown(p topo.PortID) bool {
	if !c.rules.SwitchesOff(p) || p == c.rootPort || c.topo.Peer(p) == c.rootPort && c.rootPort != topo.None {
		return false
	}
	pt := &c.ports[p]
	if !pt.known || pt.info.PortPhysicalState == ib.PhysDisabled {
		return true
	}
	c.takeDown(p, ib.PhysDisabled)
	return true
}

// takeDown takes the link of a port down, and says what follows: PhysNop, to come
// up again, or PhysDisabled. Nothing else is written.
func (c *Core) takeDown(p topo.PortID, phys ib.PhysState) {
	pt := &c.ports[p]
	want := pt.info
	want.PortState, want.PortPhysicalState = ib.PortDown, phys
	portpolicy.SetLink(&want, false, false)
	pt.setTried, pt.setState, pt.setRenews = 0, ib.PortDown, false
	c.mkeys.ForgetSet(p)
	m := c.ask(work.OnPort(work.Set, p), pt.node, mad.MethodSet, mad.AttrPortInfo, mad.PortInfoMod(pt.num, 0))
	c.encode(mad.Encode(m.Data(), &want))
}
