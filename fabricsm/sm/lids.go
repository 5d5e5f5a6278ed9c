package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/lids"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// lidFabric is the core as package lids uses it.
type lidFabric struct{ desk }

var _ lids.Fabric = lidFabric{}

func (f lidFabric) IsWriting() bool { return f.writing() }

func (f lidFabric) PortOf(p topo.PortID) lids.Port {
	pt := &f.ports[p]
	return lids.Port{Num: pt.num, LID: pt.lid, Shown: pt.info.LID, Known: pt.known, Seen: pt.seen(), Enhanced: f.settings.IsEnhanced(p)}
}

func (f lidFabric) Forwards(sp topo.PortID, l ib.LID) bool {
	pt := &f.ports[sp]
	return f.lfts.Forwards(pt.node, l, pt.num)
}

func (f lidFabric) MayYetForward(sp topo.PortID, l ib.LID) bool {
	id := f.ports[sp].node
	n := &f.nodes[id]
	switch {
	case !n.alive || n.silent:
		return false
	case !n.sw.IsKnown():
		return !f.failures.IsPaused(work.OnNode(work.Switch, id))
	default:
		return f.lfts.WillRead(id, l)
	}
}

func (f lidFabric) Assigned(p topo.PortID, l ib.LID) {
	f.ports[p].lid = l
	f.copyPort(p)
	f.pkeys.Moved()
	f.q.MarkPort(work.Set, p)
	if p == f.own() {
		f.touchAll()
	}
	f.routing.WantFor(p)
}

func (f lidFabric) Save(guid ib.GUID, l ib.LID, lmc ib.LMC) {
	f.save(Fact{Kind: FactLID, GUID: guid, LID: l, LMC: lmc})
}

func (f lidFabric) Refuse(guid ib.GUID, l ib.LID, owner ib.GUID) {
	f.event(&LIDRefused{GUID: guid, LID: l, Owner: owner})
}

// Place reports an end port at its place, once.
func (f lidFabric) Place(p topo.PortID, guid ib.GUID) {
	pt := &f.ports[p]
	if pt.num == 0 || pt.lid == 0 || pt.placed || f.topo.Peer(p) == topo.None {
		return
	}
	pt.placed, pt.place = true, f.topo.PlaceOf(p)
	f.groups.Reseat(guid)
	f.aliases.Seat(guid)
	f.event(&PortPlaced{GUID: guid, Place: pt.place, LID: pt.lid, NodeGUID: f.topo.NodeGUID(pt.node)})
	f.routing.WantFor(p)
	f.pkeys.Judge.GUID(guid)
}

// leave records that an end port is no longer where it was.
func (c *Core) leave(p topo.PortID) {
	pt := &c.ports[p]
	guid := c.topo.GUIDOf(p)
	if pt.placed {
		pt.placed = false
		c.event(&PortGone{GUID: guid, Place: pt.place})
		c.aliases.Seat(guid)
		c.groups.Reseat(guid)
	}
	c.aliases.AllotRefused()
	c.election.Forget(guid)
	c.pkeys.Judge.Gone(guid)
}
