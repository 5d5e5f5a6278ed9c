package sm

import (
	"portcullis/fabricsm/sm/confirm"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// confirmFabric is the core as package confirm uses it.
type confirmFabric struct{ desk }

var _ confirm.Fabric = confirmFabric{}

func (f confirmFabric) Port(p topo.PortID) confirm.Port {
	pt := &f.ports[p]
	return confirm.Port{Info: &pt.info, Host: &pt.host, Node: pt.node, LID: pt.lid, Num: pt.num, IsRead: pt.known, IsSeen: pt.seen()}
}

func (f confirmFabric) Switch(id topo.NodeID) *confirm.Switch { return &f.nodes[id].doubt }
func (f confirmFabric) IsWriting() bool                       { return f.writing() }
func (f confirmFabric) Enforces() bool                        { return f.law.Enforces() }
func (f confirmFabric) Concerns(p topo.PortID) bool           { return f.pkeys.Concerns(p) }
func (f confirmFabric) IsKeySettled(p topo.PortID) bool       { return f.mkeys.IsSettled(p) }
func (f confirmFabric) Verify(p topo.PortID)                  { f.ports[p].verify = true }
func (f confirmFabric) AskLater(p topo.PortID)                { f.idleWork.Add(work.OnPort(work.Probe, p)) }
func (f confirmFabric) JudgePort(p topo.PortID)               { f.pkeys.Judge.Port(p) }
func (f confirmFabric) JudgeNode(id topo.NodeID)              { f.pkeys.Judge.Node(id) }
