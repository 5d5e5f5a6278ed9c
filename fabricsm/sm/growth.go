package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/subtree"
	"portcullis/fabricsm/topo"
)

// GrowthConfig bounds what may be found. Nodes beyond the bound are not looked at for a while (see health.Config.Recover).
// The link in front of them is held, as with NoDiscover, until the pause is over or an operator marks it healthy.
type GrowthConfig = subtree.Limits

// growthFabric is the core as package subtree uses it, which bounds how much of a fabric one port may show.
type growthFabric struct{ desk }

var _ subtree.Fabric = growthFabric{}

func (f growthFabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.rootPort }
func (f growthFabric) IsAlive(id topo.NodeID) bool      { return f.nodes[id].alive }
func (f growthFabric) Up(id topo.NodeID) topo.PortID    { return f.tree.Up(id) }
func (f growthFabric) Hops(id topo.NodeID) int          { return f.tree.RouteTo(id).Len() }
func (f growthFabric) IsHeld(p topo.PortID) bool        { return f.dark(p) }

func (f growthFabric) IsTrusted(p topo.PortID) bool {
	return f.health.IsMarked(f.topo.PlaceOf(p), health.MarkHealthy)
}

func (f growthFabric) MayHold(p topo.PortID) bool {
	if p == topo.None || !f.topo.IsExternal(p) || f.quarantine.IsProtected(p) {
		return false
	}
	pl := f.topo.PlaceOf(p)
	return f.health.MayConfine(pl) && !f.health.IsMarked(pl, health.MarkHealthy)
}

func (f growthFabric) AnyHeld(match func(topo.NodeID) bool) bool {
	return slices.ContainsFunc(f.health.Sick(), func(pl ib.Place) bool {
		id := f.topo.NodeByGUID(pl.Switch)
		return id != topo.None && f.health.WorstAt(pl) == health.Overgrown && match(id)
	})
}

func (f growthFabric) Hold(p topo.PortID, size int) {
	e := &health.Unhealthy{
		Place: f.topo.PlaceOf(p), Condition: health.Overgrown, Count: size, Window: f.cfg.Growth.Window, Action: health.NoDiscover,
	}
	if far := f.topo.Peer(p); far != topo.None {
		e.GUID = f.topo.NodeGUID(f.ports[far].node)
	}
	f.health.Confine(e)
}
