package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/linkspeed"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// linkFabric is the core as package linkspeed uses it.
type linkFabric struct{ desk }

var _ linkspeed.Fabric = linkFabric{}

func (f linkFabric) Info(p topo.PortID) *mad.PortInfo { return &f.ports[p].info }
func (f linkFabric) IsRead(p topo.PortID) bool        { return f.ports[p].known }
func (f linkFabric) AskLater(p topo.PortID)           { f.idleWork.Add(work.OnPort(work.Vendor, p)) }

func (f linkFabric) Show(p topo.PortID) {
	f.copyPort(p)
	f.viewDue = true
}

func (f linkFabric) Solved(k fault.Key) {
	if f.faults.Clear(k) {
		f.viewDue = true
	}
}

// holdDown takes the link of a switch port down that a rule disables, and
// reports whether there is such a rule. Our own link is never taken.
func (f linkFabric) holdDown(p topo.PortID) bool {
	if !f.rules.SwitchesOff(p) || p == f.rootPort || f.topo.Peer(p) == f.rootPort && f.rootPort != topo.None {
		return false
	}
	pt := &f.ports[p]
	if !pt.known || pt.info.PortPhysicalState == ib.PhysDisabled {
		return true
	}
	f.takeDown(p, ib.PhysDisabled)
	return true
}

// retrain takes a link down once, which comes up by itself, when a change of the enabled speed or width waits for that. The
// Set goes to the switch port that does not lie behind the link.
func (f linkFabric) retrain(p topo.PortID) {
	q := f.topo.Peer(p)
	if !f.cfg.Ports.Retrain || q == topo.None || p == f.rootPort || q == f.rootPort ||
		!f.topo.IsExternal(p) || f.tree.Up(f.ports[p].node) == q && f.topo.IsExternal(q) {
		return
	}
	if !f.ports[q].known || f.q.IsAsked(work.Set, q) || f.settings.Tunes(p) || f.settings.Tunes(q) {
		return
	}
	if f.links.Train(p, q) {
		f.takeDown(p, ib.PhysNop)
	}
}
