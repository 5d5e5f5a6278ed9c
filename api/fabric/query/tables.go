package query

import (
	"context"
	"strconv"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

func noTables() error {
	return &refusal.Error{
		Code: "no_tables", Status: refusal.Unavailable, Detail: "there are no forwarding tables yet",
		Hint: "portcullis fabric show reports how far the subnet manager is, and what is wrong",
	}
}

// Tables lists every switch with its forwarding table in short.
func (o *Observer) Tables(_ context.Context, q v1.PageQuery) (*v1.Page[v1.FabricTable], error) {
	x, at, err := o.asked(q.After)
	if err != nil {
		return nil, err
	}
	if x.Tables == nil {
		return nil, noTables()
	}
	return nodePage(x, at, q.Limit, func(id topo.NodeID) (v1.FabricTable, bool) {
		if x.Fabric.Node(id).Type != ib.NodeSwitch {
			return v1.FabricTable{}, false
		}
		return x.tableRow(id), true
	}), nil
}

func (x *index) tableRow(id topo.NodeID) v1.FabricTable {
	f := x.Fabric
	n := f.Node(id)
	row := x.Tables.LFT(id)
	out := v1.FabricTable{GUID: n.GUID, Name: x.name(id), LID: f.Port(n.FirstPort).LID, Blocks: len(row) / route.BlockSize}
	var uses [256]int
	for _, p := range row {
		if p != ib.NoPort {
			out.Routed++
			uses[p]++
		}
	}
	for num := 1; num <= int(n.NumPorts); num++ {
		if uses[num] == 0 {
			continue
		}
		out.Ports++
		peer := f.Port(n.FirstPort + topo.PortID(num)).Peer
		if peer == topo.None || f.NodeOf(peer).Type != ib.NodeSwitch {
			continue
		}
		if out.Least == 0 || uses[num] < out.Least {
			out.Least = uses[num]
		}
		out.Most = max(out.Most, uses[num])
	}
	return out
}

// Table lists the entries of a switch's forwarding table by LID. After is the
// last LID of the page before.
func (o *Observer) Table(_ context.Context, word string, q v1.PageQuery) (*v1.Page[v1.FabricEntry], error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	if x.Tables == nil {
		return nil, noTables()
	}
	x.ready()
	id, err := x.onlySwitch(word)
	if err != nil {
		return nil, err
	}
	first := 0
	if q.After != "" {
		if first, err = strconv.Atoi(q.After); err != nil || first < 0 || first > int(ib.MaxUnicastLID) {
			return nil, badCursor()
		}
	}
	page, limit := pageOf[v1.FabricEntry](x), pageSize(q.Limit)
	owners := x.owners()
	row := x.Tables.LFT(id)
	for lid := first + 1; lid < len(row); lid++ {
		if row[lid] == ib.NoPort {
			continue
		}
		if len(page.Items) == limit {
			page.Next = page.Items[limit-1].LID.String()
			break
		}
		page.Items = append(page.Items, x.entry(id, ib.LID(lid), row[lid], owners))
	}
	return page, nil
}

// onlySwitch finds a switch.
func (x *index) onlySwitch(word string) (topo.NodeID, error) {
	id, err := x.node(word)
	if err != nil {
		return topo.None, err
	}
	if n := x.Fabric.Node(id); n.Type != ib.NodeSwitch {
		return topo.None, &refusal.Error{
			Code: "not_a_switch", Status: refusal.Invalid,
			Detail: "node " + x.name(id) + " is a " + n.Type.String() + ", not a switch", Hint: "portcullis fabric nodes --type switch lists them",
		}
	}
	return id, nil
}

// owners returns one more than the id of the end port of every LID, 0 for none.
func (x *index) owners() []topo.PortID {
	owners := make([]topo.PortID, int(x.Tables.MaxLID)+1)
	for _, id := range x.Fabric.EndPorts() {
		p := x.Fabric.Port(id)
		for i := range 1 << p.LMC {
			if lid := int(p.LID) + i; p.LID != 0 && lid < len(owners) {
				owners[lid] = id + 1
			}
		}
	}
	return owners
}

func (x *index) entry(id topo.NodeID, lid ib.LID, out ib.PortNum, owners []topo.PortID) v1.FabricEntry {
	e := v1.FabricEntry{LID: lid, Out: out}
	if p := x.Fabric.PortOf(id, out); out != 0 && p != topo.None && x.Fabric.Port(p).Peer != topo.None {
		e.Via = x.portName(x.Fabric.Port(p).Peer)
	}
	if int(lid) < len(owners) && owners[lid] != 0 {
		e.Owner = x.portName(owners[lid] - 1)
	}
	return e
}
