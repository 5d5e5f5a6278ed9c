package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// pkeyFabric is the core as package pkeys uses it.
type pkeyFabric struct{ desk }

var _ pkeys.Fabric = pkeyFabric{}

func (f pkeyFabric) IsWriting() bool                 { return f.writing() }
func (f pkeyFabric) IsManager(p topo.PortID) bool    { return f.trust.IsManager(p) }
func (f pkeyFabric) MayBelong(sp topo.PortID) bool   { return f.law.MayBelong(sp) }
func (f pkeyFabric) IsRetired(guid ib.GUID) bool     { return f.law.IsRetired(guid) }
func (f pkeyFabric) IsConfirmed(sp topo.PortID) bool { return f.hosts.IsConfirmed(sp) }
func (f pkeyFabric) Expel(at ib.Place)               { f.expel(at) }
func (f pkeyFabric) ReadsLater() bool                { return f.early && f.routing.ReadsLater() }
func (f pkeyFabric) PutOff(x work.Ref)               { f.idleWork.Add(x) }

func (f pkeyFabric) PortOf(p topo.PortID) pkeys.Port {
	pt := &f.ports[p]
	return pkeys.Port{
		Node: pt.node, Num: pt.num, State: pt.info.PortState, Known: pt.known, Seen: pt.seen(), Fresh: pt.fresh, Placed: pt.placed,
		BitsDue: f.settings.BitsTold(p), Checked: pt.checked, Barred: pt.quarantine.IsOutlawed(),
	}
}

func (f pkeyFabric) NodeOf(id topo.NodeID) pkeys.Node {
	n := &f.nodes[id]
	return pkeys.Node{Known: n.sw.IsKnown(), Cap: int(n.sw.Info().PartitionEnforcementCap), Reset: n.sw.IsReset(), Unsure: n.doubt.IsUnsure(), Silent: n.silent}
}

func (f pkeyFabric) IsPaused(p topo.PortID) bool {
	return f.failures.IsPaused(work.OnPort(work.PKey, p))
}

func (f pkeyFabric) EnforcementOf(sp topo.PortID) pkeys.Enforcement {
	return pkeys.Enforcement{Possible: f.settings.CanEnforce(sp), Proven: f.settings.Enforces(sp), Forgotten: f.settings.ForgetsEnforcement(sp)}
}

func (f pkeyFabric) ReadFirst(p topo.PortID) bool {
	if !f.ports[p].unread || f.unread.MayWrite(p) {
		return false
	}
	f.unread.Read(p)
	return true
}

// keyEvents is where package pkeys reports memberships.
type keyEvents struct{ desk }

var _ pkeys.Events = keyEvents{}

func (e keyEvents) Applied(ms *members.Membership) {
	e.event(&MembershipApplied{GUID: ms.GUID, PKey: ms.PKey, Place: ms.Place, Revision: e.members.Revision()})
}

func (e keyEvents) Removed(ms *members.Membership, hca bool) {
	e.event(&MembershipRemoved{GUID: ms.GUID, PKey: ms.PKey, Place: ms.Place, Revision: e.members.Revision(), HCAProven: hca})
}

func (e keyEvents) Foreign(f *pkeys.Foreign) {
	e.event(&ForeignPKeys{GUID: f.GUID, Place: f.Place, Adapter: f.Adapter, PKeys: f.PKeys})
}

func (e keyEvents) Inherited(f *pkeys.Inherited) {
	e.event(&InheritedPKeys{GUID: f.GUID, Place: f.Place, PKeys: f.PKeys})
}

func (e keyEvents) Refused(ms *members.Membership, reason string) {
	e.problem(ms.Refused(), &MembershipRefused{GUID: ms.GUID, PKey: ms.PKey, Place: ms.Place, Revision: e.members.Revision(), Reason: reason})
}

// newTables returns what keeps P_Key tables.
func newTables(c *Core) *pkeys.Keeper {
	o := pkeys.Options{Controls: c.cfg.Controls.Partitions, Rules: partition.Rules{FullSwitches: c.cfg.ClassKeys.FullSwitches}}
	if c.cfg.Enforcement == Accepted {
		o.Rules.Enforcement = partition.EnforceCapacity
	}
	return pkeys.New(pkeyFabric{desk{c}}, keyEvents{desk{c}}, &c.topo, &c.q, c.members, o)
}

// expel takes away a switch that was linked to a place before it was known to be
// for a host.
func (c *Core) expel(pl ib.Place) {
	sp := c.topo.SwitchPortAt(pl)
	if sp == topo.None {
		return
	}
	if peer := c.topo.Peer(sp); peer != topo.None && c.topo.IsExternal(peer) {
		far := c.ports[peer].node
		c.unlink(sp)
		c.quarantine.Shut(sp)
		c.q.MarkPort(work.Probe, sp)
		if c.nodes[far].alive && c.nodes[far].epoch != 0 && far != c.root {
			// It is a real switch whose name was taken: the values read before may be a lie.
			c.rebooted(far)
			c.nodes[far].sw.Forget()
			c.refresh(far)
		}
	}
}

// stopWaiting begins to program P_Keys.
func (c *Core) stopWaiting() {
	if c.members.StopWaiting() && c.writing() {
		c.assignLeft()
		c.touchAll()
	}
}
