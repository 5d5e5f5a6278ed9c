package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// settingFabric is the core as package portset uses it.
type settingFabric struct{ desk }

var _ portset.Fabric = settingFabric{}

// newSettings returns the wanted parameters of ports.
func newSettings(c *Core) portset.Settings {
	return portset.New(settingFabric{desk{c}}, &c.topo, &c.rules, &c.cfg.Ports, portset.Options{
		Prefix: c.cfg.Prefix, Accepted: c.cfg.Enforcement == Accepted, Controls: c.cfg.Controls.Ports, OneLane: c.cfg.SLtoVL == SLtoVLOff,
	})
}

func (f settingFabric) Port(p topo.PortID) portset.Port {
	pt := &f.ports[p]
	return portset.Port{Info: &pt.info, State: &pt.set, Node: pt.node, LID: pt.lid, Num: pt.num, IsRead: pt.known, IsAssumed: pt.unread}
}

func (f settingFabric) Switch(id topo.NodeID) (*mad.SwitchInfo, bool) {
	n := &f.nodes[id]
	return n.sw.Info(), n.sw.IsKnown()
}

func (f settingFabric) NotKept(id topo.NodeID) portset.Fields { return f.nodes[id].notKept }
func (f settingFabric) LMC(p topo.PortID) ib.LMC              { return f.lids.LMC(p) }
func (f settingFabric) SMLID() ib.LID                         { return f.smLID() }
func (f settingFabric) IsSibling(l ib.LID) bool               { return f.trust.IsSibling(f.lids.At(l)) }

func (f settingFabric) HighLimit(p topo.PortID) (limit uint8, ok bool) { return f.lanes.HighLimit(p) }
func (f settingFabric) CanMap(p topo.PortID) bool                      { return f.lanes.CanMap(p) }
func (f settingFabric) HasKeys(p topo.PortID) bool                     { return f.pkeys.IsDone(p) }

// SMSL returns the service level that an end port is to use towards this SM: that of the routes between them. Before there
// are routes it stays as it was found.
func (f settingFabric) SMSL(p topo.PortID) ib.SL {
	switch {
	case f.routing.Tables() == nil:
		return f.ports[p].info.MasterSMSL
	case f.routing.Tables().Layers() == 1:
		return f.cfg.Ports.MasterSMSL
	}
	return f.routing.Tables().SL(f.ports[p].lid, f.smLID())
}

// renewSMSL writes the service level towards this SM where it changed.
func (f settingFabric) renewSMSL() {
	for p := range f.ports {
		pt := &f.ports[p]
		if id := topo.PortID(p); pt.lid != 0 && f.topo.IsEndPort(id) && pt.info.MasterSMSL != f.SMSL(id) {
			f.q.MarkPort(work.Set, id)
		}
	}
}

// renewAll has all clients renew what they registered: another SM was master.
func (f settingFabric) renewAll() {
	for p := range f.ports {
		if pt := &f.ports[p]; pt.known && f.topo.IsEndPort(topo.PortID(p)) {
			pt.set.RenewLater()
		}
	}
}

// tellEnforcement reports once why the hosts of a switch get no partition.
func (f settingFabric) tellEnforcement(p topo.PortID) {
	id := f.ports[p].node
	reason, known := f.settings.CannotEnforce(id)
	if !known {
		return
	}
	k := fault.Key{Kind: fault.NoEnforcement, GUID: f.topo.NodeGUID(id)}
	if reason == "" {
		f.faults.Clear(k)
		return
	}
	f.problem(k, &CannotEnforce{GUID: k.GUID, Reason: reason})
}

// portGate is the core as package portset asks it how far a port may be moved.
type portGate struct{ *Core }

var _ portset.Gate = portGate{}

func (g portGate) IsWritten(p topo.PortID) bool   { return g.pkeys.IsDone(p) && g.lanes.IsDone(p) }
func (g portGate) MayActivate(p topo.PortID) bool { return g.hosts.MayActivate(p) }

func (g portGate) IsHeld(p topo.PortID) bool {
	if g.refusing.IsHeld(p) {
		return true // in Armed the first packet of the host would open it
	}
	// The intent says whether a host belongs there.
	return !g.members.IsReady() && g.topo.IsExternal(p) && g.topo.IsExternal(g.topo.Peer(p))
}

func (g portGate) MayForward(p topo.PortID) bool {
	if g.forwarding() {
		return true
	}
	g.routing.Await(work.OnPort(work.Set, p))
	return false
}
