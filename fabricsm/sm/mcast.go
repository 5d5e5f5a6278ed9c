package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/topo"
)

// GroupsSet replaces all multicast groups: those of MLIDs, with the members that Joins names and no others. A LID that is
// not multicast is ignored. It comes with the first groups after a start: before it nothing is known, and no table is
// touched.
type GroupsSet struct {
	MLIDs []ib.LID
	Joins []multicast.Join
}

// GroupsChanged changes multicast groups: first Gone, then Made, then Joins.
type GroupsChanged struct {
	Made  []ib.LID
	Gone  []ib.LID
	Joins []multicast.Join // of groups that there are
}

func (*GroupsSet) input()     {}
func (*GroupsChanged) input() {}

// groupFabric is the core as package multicast uses it.
type groupFabric struct{ desk }

var _ multicast.Fabric = groupFabric{}

func (f groupFabric) SeatOf(guid ib.GUID) (multicast.Seat, bool) {
	p, ok := f.byPort[guid]
	if !ok {
		return multicast.Seat{}, false
	}
	pt := &f.ports[p]
	if pt.num == 0 {
		return multicast.Seat{Switch: pt.node}, true
	}
	at := f.topo.Peer(p)
	if !pt.placed || at == topo.None || !f.topo.IsExternal(at) {
		return multicast.Seat{}, false
	}
	return multicast.Seat{Switch: f.ports[at].node, Port: f.ports[at].num}, true
}

func (f groupFabric) SwitchOf(id topo.NodeID) multicast.Switch {
	n := &f.nodes[id]
	if !n.alive || !n.sw.IsKnown() {
		return multicast.Switch{}
	}
	return multicast.Switch{Cap: int(n.sw.Info().MulticastFDBCap), IsReset: n.sw.IsReset()}
}

// plant plans what changed of the trees, and what follows for virtual lanes.
func (c *Core) plant() {
	if !c.groups.HasRoutes() {
		return
	}
	if c.lanes.Follow(c.routing.Tables(), c.groups.Ground()) {
		settingFabric{desk{c}}.renewSMSL()
	}
	if c.groups.Plan() {
		c.viewDue = true
	}
}
