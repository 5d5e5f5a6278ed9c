package query

import (
	"context"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Ports lists ports by node GUID and number: those that have a cable, and of a
// switch that is asked for, or in a state that is asked for, all.
func (o *Observer) Ports(_ context.Context, q v1.PortQuery) (*v1.Page[v1.FabricPort], error) {
	x, at, err := o.asked(q.After)
	if err != nil {
		return nil, err
	}
	nodes, err := x.portNodes(&q, at)
	if err != nil {
		return nil, err
	}
	wanted := func(p topo.PortID) bool {
		return (q.Type == "" || x.Fabric.NodeOf(p).Type.String() == q.Type) && x.wanted(&q, p)
	}
	return portPage(x, nodes, at, q.Limit, wanted, x.portRow), nil
}

// portPage makes a page of the ports of nodes that are wanted, from a position
// on.
func portPage[T any](x *index, nodes []topo.NodeID, at position, size int, wanted func(topo.PortID) bool,
	row func(topo.PortID) T,
) *v1.Page[T] {
	page, limit := pageOf[T](x), pageSize(size)
	var last topo.PortID
	for _, id := range nodes {
		n := x.Fabric.Node(id)
		for i := x.firstPort(id, at); i <= int(n.NumPorts); i++ {
			p := n.FirstPort + topo.PortID(i)
			if !wanted(p) {
				continue
			}
			if len(page.Items) == limit {
				page.Next = x.positionOf(last).String()
				return page
			}
			page.Items, last = append(page.Items, row(p)), p
		}
	}
	return page
}

// portNodes returns the nodes whose ports are requested, from a position on.
func (x *index) portNodes(q *v1.PortQuery, at position) ([]topo.NodeID, error) {
	var some []topo.NodeID
	switch {
	case q.Node != "":
		id, err := x.node(q.Node)
		if err != nil {
			return nil, err
		}
		some = []topo.NodeID{id}
	case q.Switch != "":
		id, err := x.onlySwitch(q.Switch)
		if err != nil {
			return nil, err
		}
		some = []topo.NodeID{id}
	case q.Host != "":
		if some = x.ofHost[q.Host]; len(some) == 0 {
			if err := x.unseenHost(q.Host); err != nil {
				return nil, err
			}
			if some = x.names[q.Host]; len(some) == 0 {
				return nil, unknown("host", q.Host, "a host is named as in inventory, or as its adapter describes itself; portcullis fabric nodes lists both")
			}
		}
	default:
		return from(x.Fabric, at), nil
	}
	for i, id := range some {
		g := x.Fabric.Node(id).GUID
		if !at.set || g > at.guid || g == at.guid && id >= at.node {
			return some[i:], nil
		}
	}
	return nil, nil
}

// firstPort returns the number of the first port of a node to be listed.
func (x *index) firstPort(id topo.NodeID, at position) int {
	if at.set && id == at.node && x.Fabric.Node(id).GUID == at.guid {
		return int(at.port) + 1
	}
	return 0
}

func (x *index) positionOf(p topo.PortID) position {
	return position{guid: x.Fabric.NodeOf(p).GUID, node: x.Fabric.Port(p).Node, port: x.Fabric.Port(p).Num}
}

// wanted reports whether a port is asked for.
func (x *index) wanted(q *v1.PortQuery, id topo.PortID) bool {
	p, n := x.Fabric.Port(id), x.Fabric.NodeOf(id)
	isSwitch := n.Type == ib.NodeSwitch
	all := q.Switch != "" || q.Node != "" || q.State != "" || q.Problem
	switch {
	case p.Num == 0 && (!isSwitch || !all || q.State != ""):
		return false
	case q.State != "" && p.State.String() != q.State:
		return false
	case !isSwitch && p.GUID == 0:
		return false // a port of an adapter that was never entered by
	case !all && p.Peer == topo.None:
		return false
	}
	return !q.Problem || x.problem(id) != "" || x.degraded(id) != ""
}

func (x *index) portRow(id topo.PortID) v1.FabricPort {
	f := x.Fabric
	p, n := f.Port(id), f.NodeOf(id)
	row := v1.FabricPort{
		Node: n.GUID, Num: p.Num, Type: n.Type.String(), Name: x.name(p.Node), Host: x.hostOf[n.GUID],
		GUID: p.GUID, LID: p.LID, LMC: p.LMC, State: p.State.String(), Phys: p.Phys.String(),
		Place: f.PlaceOf(id), Problem: x.problem(id), Degraded: x.degraded(id),
	}
	if p.State >= ib.PortInit && p.Num != 0 {
		row.Width, row.Speed = widthName(p.Width), speedName(p.Speed)
		row.Rate = p.Rate()
		row.MTU = p.NeighborMTU.Bytes()
	}
	if p.Peer != topo.None {
		row.Peer = x.portName(p.Peer)
	}
	row.PKeys, row.PKeysProven = x.PKeys(id)
	return row
}
