package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/quarantine"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// quarantineFabric is the core as package quarantine knows it, and quarantineActions what that has it do.
type (
	quarantineFabric  struct{ desk }
	quarantineActions struct{ desk }
)

var (
	_ quarantine.Fabric  = quarantineFabric{}
	_ quarantine.Actions = quarantineActions{}
)

func (f quarantineFabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.rootPort }
func (f quarantineFabric) IsAlive(id topo.NodeID) bool      { return f.nodes[id].alive }
func (f quarantineFabric) IsWriting() bool                  { return f.writing() }
func (f quarantineFabric) MayBeOff(p topo.PortID) bool      { return f.law.MayBeOff(p) }

func (f quarantineFabric) Port(p topo.PortID) quarantine.Port {
	pt := &f.ports[p]
	return quarantine.Port{Info: &pt.info, State: &pt.quarantine, Set: &pt.set, IsRead: pt.known}
}

func (f quarantineActions) Unlink(p topo.PortID)                      { f.unlink(p) }
func (f quarantineActions) TakeDown(p topo.PortID, phys ib.PhysState) { f.takeDown(p, phys) }
func (f quarantineActions) Pause(x work.Ref)                          { f.pauseWork(x) }
func (f quarantineActions) Opened(p topo.PortID)                      { f.law.IsOpen(p) }

func (f quarantineActions) Abandon(p topo.PortID) {
	f.contests.Unfence(p)
	f.contests.Release(p)
	f.ports[p].pause, f.ports[p].verify = 0, false
}

func (f quarantineActions) ProbeSoon(p topo.PortID) {
	f.ports[p].pause = 0
	f.q.MarkPort(work.Probe, p)
}

// dark reports whether nothing behind a port is read.
func (c *Core) dark(p topo.PortID) bool { return c.ports[p].quarantine.IsDark() }
