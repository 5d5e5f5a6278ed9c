package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Values that a host writes into its own adapter. No device checks the M_Key of an SMP that its own host sends. So root can
// write any value there, unless the adapter's SMP firewall is on. A value that this subnet manager reads there and had left
// otherwise is reported by field, with the place, as a row of kind HostWrote. It is written back like any other difference.
// LIDs are read more often than the rest: with another tenant's LID a host sends requests in its name, and nothing in the
// fabric checks source LIDs.

// isAdapter reports whether a port is an end port of a host behind a switch port.
func (c *Core) isAdapter(p topo.PortID) bool {
	if !c.topo.IsEndPort(p) || c.topo.Node(c.ports[p].node).Type == ib.NodeSwitch || p == c.own() {
		return false
	}
	peer := c.topo.Peer(p)
	return peer != topo.None && c.topo.IsExternal(peer)
}

// writtenByHost compares what a Get of PortInfo shows of an adapter with what was left
// there. A port that is not Armed may have been restarted, and has lost what it had.
func (c *Core) writtenByHost(p topo.PortID, old, is *mad.PortInfo) {
	if !c.isAdapter(p) || !c.writing() || c.q.IsAsked(work.Set, p) {
		return
	}
	pt := &c.ports[p]
	if old.PortState < ib.PortArmed || is.PortState < ib.PortArmed {
		pt.foreignPKey = 0
		return
	}
	if pt.foreignPKey != 0 {
		c.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostPKeys, LID: is.LID, PKey: pt.foreignPKey})
		pt.foreignPKey = 0
	}
	if pt.lid != 0 && old.LID == pt.lid && is.LID != pt.lid {
		c.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostLID, LID: is.LID, Victim: c.lids.At(is.LID)})
	}
	if lmc := c.lids.LMC(p); old.LMC == lmc && is.LMC != lmc {
		c.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostLMC, LID: is.LID})
	}
	if own := c.smLID(); own != 0 && old.MasterSMLID == own && is.MasterSMLID != own {
		c.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostMasterLID, LID: is.MasterSMLID})
	}
}

// suspectKeys notes a P_Key table that a Get shows otherwise than it was left. It is reported
// when PortInfo, which is read next, shows that the port was not restarted.
func (c *Core) suspectKeys(p topo.PortID, r *work.Request, block int, got []ib.PKey) {
	pt := &c.ports[p]
	had := c.pkeys.Table(p).Block(block)
	if r.Method != mad.MethodGet || had == nil || !c.isAdapter(p) || !c.writing() || pt.foreignPKey != 0 {
		return
	}
	for i, k := range got {
		if k == had[i] {
			continue
		}
		if pt.foreignPKey = k; k == 0 {
			pt.foreignPKey = had[i] // it was taken out
		}
		c.background(p)
		return
	}
}

const (
	// lidTick is the step in which LIDs are read.
	lidTick = 250 * time.Millisecond
	// lidsPerSecond bounds the share of the wire that this takes.
	lidsPerSecond = 500
)

// readLIDs reads PortInfo of so many adapters that each has its turn within
// Config.LIDPeriod, whether the fabric is settled or not, as long as those are no more
// than lidsPerSecond.
func (c *Core) readLIDs() {
	c.after(lidTick, work.LIDs, work.Ref{})
	n := len(c.ports)
	if n == 0 || !c.writing() {
		return
	}
	c.lidsDue += min(float64(len(c.byPort))*float64(lidTick)/float64(c.cfg.LIDPeriod), lidsPerSecond*lidTick.Seconds())
	for range n {
		if c.lidsDue < 1 {
			return
		}
		c.lidAt = (c.lidAt + 1) % topo.PortID(n)
		p := c.lidAt
		if pt := &c.ports[p]; !pt.known || pt.info.PortState < ib.PortArmed || !c.nodes[pt.node].alive || c.nodes[pt.node].silent || !c.isAdapter(p) {
			continue
		}
		c.background(p)
		c.lidsDue--
	}
	c.lidsDue = 0 // all have been read
}

// readStrangeGUIDs reads a block of the GUIDs of an adapter that is to have no aliases.
func (c *Core) readStrangeGUIDs(p topo.PortID) {
	pt := &c.ports[p]
	blocks := (int(pt.info.GUIDCap) + 7) / 8
	if !c.isAdapter(p) || !pt.placed || blocks == 0 || c.aliases.Has(c.topo.GUIDOf(p)) {
		return
	}
	pt.guidBlock = uint8((int(pt.guidBlock) + 1) % blocks)
	pt.readGUIDs = true
	c.q.MarkPort(work.GUID, p)
}

// workStrangeGUIDs asks for that block.
func (c *Core) workStrangeGUIDs(p topo.PortID) {
	pt := &c.ports[p]
	if !pt.readGUIDs {
		return
	}
	pt.readGUIDs, c.auditing = false, true
	c.ask(work.OnPort(work.GUID, p), pt.node, mad.MethodGet, mad.AttrGUIDInfo, uint32(pt.guidBlock))
	c.auditing = false
}

// gotStrangeGUIDs takes a block of GUIDs of an adapter that is to have no aliases. A GUID of another port is reported and
// removed; other entries are left.
func (c *Core) gotStrangeGUIDs(p topo.PortID, r *work.Request, got *mad.GUIDInfo) {
	if r.Method != mad.MethodGet || !c.writing() {
		return
	}
	want := *got
	for i, g := range got.GUID {
		if g == 0 || r.Mod == 0 && i == 0 || !c.belongsTo(g, p) {
			continue
		}
		c.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostAlias, LID: c.ports[p].lid, Victim: g})
		want.GUID[i] = 0
	}
	if want != *got {
		m := c.ask(work.OnPort(work.GUID, p), c.ports[p].node, mad.MethodSet, mad.AttrGUIDInfo, r.Mod)
		c.encode(mad.Encode(m.Data(), &want))
	}
}

// belongsTo reports whether a GUID is that of another node's port, or memberships are granted to it.
func (c *Core) belongsTo(g ib.GUID, but topo.PortID) bool {
	if q, ok := c.byPort[g]; ok {
		return c.ports[q].node != c.ports[but].node
	}
	return c.members.Has(g)
}
