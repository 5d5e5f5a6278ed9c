package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// identityFabric is the core as package identity knows it, and identityActions what that has it do.
type (
	identityFabric  struct{ desk }
	identityActions struct{ desk }
)

var (
	_ identity.Fabric  = identityFabric{}
	_ identity.Actions = identityActions{}
)

func (f identityFabric) Root() topo.NodeID          { return f.root }
func (f identityFabric) Own() topo.PortID           { return f.own() }
func (f identityFabric) IsKnown(p topo.PortID) bool { return f.ports[p].known }
func (f identityFabric) IsUp(p topo.PortID) bool    { return linkUp(&f.ports[p].info) }
func (f identityFabric) IsMute(p topo.PortID) bool  { return f.ports[p].mute }
func (f identityFabric) IsForHost(at ib.Place) bool { return f.members.IsForHost(at) }
func (f identityActions) Verify(p topo.PortID)      { f.ports[p].verify = true }
func (f identityActions) TwinGone(second ib.Place)  { f.faults.Clear(twinAt(second)) }

func (f identityFabric) IsEntitled(g ib.GUID, at ib.Place) bool { return f.members.IsEntitled(g, at) }

func (f identityFabric) MayJoin(g ib.GUID, at ib.Place) bool {
	return f.members.IsEntitled(g, at) || f.law.IsLawful(at) || f.mkeys.Places().IsKeyedHere(g, at)
}

func (f identityActions) Close(p topo.PortID) bool {
	if f.topo.Peer(p) != topo.None {
		f.unlink(p)
	}
	if !f.nodes[f.ports[p].node].alive {
		return false
	}
	f.quarantine.Shut(p)
	return true
}

func (f identityActions) LookLater(p topo.PortID) {
	pt := &f.ports[p]
	pt.pause = f.longer(pt.pause)
	f.after(pt.pause, work.Retry, work.OnPort(work.Probe, p))
}

func (f identityActions) Join(p, end topo.PortID, g ib.GUID) { f.finder.Join(p, end, g) }

func (f identityActions) Unname(p topo.PortID, guid ib.GUID) {
	f.ports[p].lid = 0
	tp := f.topo.Port(p)
	tp.GUID, tp.LID = 0, 0
	f.topo.SetPort(p, tp)
	delete(f.byPort, guid)
	f.lids.Gone(guid)
	f.groups.Reseat(guid)
	f.pkeys.Moved()
}

func (f identityActions) ReportTwin(guid ib.GUID, first, second ib.Place) {
	f.problem(twinAt(second), &DuplicateGUID{GUID: guid, First: first, Second: second})
}

func twinAt(second ib.Place) fault.Key { return fault.Key{Kind: fault.DuplicateGUID, Place: second} }
