package query

import (
	"cmp"
	"context"
	"slices"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Links lists cables by the node GUID and port of their end with the lower
// node GUID.
func (o *Observer) Links(_ context.Context, q v1.LinkQuery) (*v1.Page[v1.FabricLink], error) {
	x, at, err := o.asked(q.After)
	if err != nil {
		return nil, err
	}
	only := topo.NodeID(topo.None)
	if q.Node != "" {
		if only, err = x.node(q.Node); err != nil {
			return nil, err
		}
	}
	wanted := func(p topo.PortID) bool { return x.linkWanted(&q, p, only) }
	return portPage(x, from(x.Fabric, at), at, q.Limit, wanted, x.linkRow), nil
}

// linkWanted reports whether a link is asked for, at the end where it is
// listed.
func (x *index) linkWanted(q *v1.LinkQuery, id topo.PortID, only topo.NodeID) bool {
	f := x.Fabric
	p := f.Port(id)
	if p.Peer == topo.None || !x.lower(id) {
		return false
	}
	peer := f.Port(p.Peer)
	switch {
	case only != topo.None && p.Node != only && peer.Node != only:
		return false
	case q.Trunks && (f.NodeOf(id).Type != ib.NodeSwitch || f.NodeOf(p.Peer).Type != ib.NodeSwitch):
		return false
	case q.Degraded && x.degraded(id) == "":
		return false
	case q.Problem && x.degraded(id) == "" && x.problem(id) == "" && x.problem(p.Peer) == "":
		return false
	}
	return true
}

// lower reports the end of a cable at which it is listed.
func (x *index) lower(id topo.PortID) bool {
	f := x.Fabric
	peer := f.Port(id).Peer
	return cmp.Or(cmp.Compare(f.NodeOf(id).GUID, f.NodeOf(peer).GUID), cmp.Compare(id, peer)) < 0
}

func (x *index) linkRow(id topo.PortID) v1.FabricLink {
	f := x.Fabric
	p := f.Port(id)
	q := f.Port(p.Peer)
	row := v1.FabricLink{
		A: *x.portName(id), B: *x.portName(p.Peer), State: lowerState(p.State, q.State).String(),
		Width: widthName(p.Width), Speed: speedName(p.Speed), Rate: p.Rate(),
		MTU: min(p.NeighborMTU, q.NeighborMTU).Bytes(), Degraded: x.degraded(id), Problem: x.problem(id),
	}
	if row.Problem == "" {
		row.Problem = x.problem(p.Peer)
	}
	return row
}

// lowerState returns the state that is further from Active. A state that was not read yet is the furthest.
func lowerState(a, b ib.PortState) ib.PortState {
	if a == ib.PortActiveDefer {
		a = ib.PortActive
	}
	return min(a, b)
}

// kinds counts links by width and speed, fastest first.
func (x *index) kinds() (kinds []v1.LinkKind, links, degraded int) {
	f := x.Fabric
	type key struct{ width, speed string }
	count := map[key]*v1.LinkKind{}
	for i := range f.Ports() {
		id := i
		p := f.Port(id)
		if p.Peer == topo.None || id > p.Peer {
			continue
		}
		links++
		k := key{widthName(p.Width), speedName(p.Speed)}
		if count[k] == nil {
			count[k] = &v1.LinkKind{Width: k.width, Speed: k.speed, Rate: p.Rate()}
		}
		count[k].Count++
		if x.degraded(id) != "" {
			degraded++
		}
	}
	kinds = make([]v1.LinkKind, 0, len(count))
	for _, k := range count {
		kinds = append(kinds, *k)
	}
	slices.SortFunc(kinds, func(a, b v1.LinkKind) int {
		return cmp.Or(-cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Width, b.Width), cmp.Compare(a.Speed, b.Speed))
	})
	return kinds, links, degraded
}
