package sm

import (
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/forwarding"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// forwardingFabric is the core as package forwarding uses it.
type forwardingFabric struct{ desk }

var _ forwarding.Fabric = forwardingFabric{}

func (f forwardingFabric) IsWriting() bool              { return f.writing() }
func (f forwardingFabric) Wanted() *route.Tables        { return f.routing.Tables() }
func (f forwardingFabric) ReadsLater() bool             { return f.early && f.routing.ReadsLater() }
func (f forwardingFabric) IsPaused(x work.Ref) bool     { return f.failures.IsPaused(x) }
func (f forwardingFabric) MustWait(id topo.NodeID) bool { return f.lanes.Delays(id) }

func (f forwardingFabric) SwitchOf(id topo.NodeID) forwarding.Switch {
	n := &f.nodes[id]
	return forwarding.Switch{Alive: n.alive, Silent: n.silent, Known: n.sw.IsKnown(), Top: n.sw.Info().LinearFDBTop}
}
