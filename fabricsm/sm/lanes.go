package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// laneFabric is the core as package lanes uses it.
type laneFabric struct{ *Core }

var _ lanes.Fabric = laneFabric{}

func (f laneFabric) Port(p topo.PortID) lanes.Port {
	pt := &f.ports[p]
	return lanes.Port{Info: &pt.info, Node: pt.node, Num: pt.num, IsRead: pt.known, IsAssumed: pt.unread, IsFresh: pt.fresh}
}

func (f laneFabric) Node(id topo.NodeID) lanes.Node {
	n := &f.nodes[id]
	return lanes.Node{Info: n.sw.Info(), IsRead: n.sw.IsKnown(), IsAlive: n.alive, IsSilent: n.silent, IsReset: n.sw.IsReset()}
}

func (f laneFabric) VLs(p topo.PortID) ib.VLCap {
	w, _ := f.settings.Want(p)
	return w.OperationalVLs
}

func (f laneFabric) MayWrite() bool                       { return f.writing() }
func (f laneFabric) IsPaused(x work.Ref) bool             { return f.failures.IsPaused(x) }
func (f laneFabric) Refuse(r work.Request, reason string) { f.refused(&r, reason) }
func (f laneFabric) Show(p topo.PortID)                   { f.devices.NotePort(p) }
func (f laneFabric) AuditLater(p topo.PortID)             { f.idleWork.Add(work.OnPort(work.SLtoVL, p)) }

func (f laneFabric) Save(written string) {
	f.save(Fact{Kind: FactLanes, GUID: f.cfg.PortGUID, Mark: written})
}

// recap looks at the lanes of a switch's ports again when its port 0 says
// whether they can be programmed.
func (f laneFabric) recap(id topo.NodeID) {
	f.topo.EachExternal(id, func(p topo.PortID) {
		if f.ports[p].seen() {
			f.copyPort(p)
			f.lanes.TouchMaps(p)
		}
	})
}
