package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Nodes lists nodes in the order of their GUIDs.
func (o *Observer) Nodes(_ context.Context, q v1.NodeQuery) (*v1.Page[v1.FabricNode], error) {
	x, at, err := o.asked(q.After)
	if err != nil {
		return nil, err
	}
	return nodePage(x, at, q.Limit, func(id topo.NodeID) (v1.FabricNode, bool) {
		n := x.Fabric.Node(id)
		if q.Type != "" && n.Type.String() != q.Type || q.Host != "" && x.hostOf[n.GUID] != q.Host {
			return v1.FabricNode{}, false
		}
		row := x.nodeRow(id)
		return row, !q.Problem || row.Problem != ""
	}), nil
}

// nodePage makes a page of a row for each node that has one, from behind a
// position on.
func nodePage[T any](x *index, at position, size int, row func(topo.NodeID) (T, bool)) *v1.Page[T] {
	page, limit := pageOf[T](x), pageSize(size)
	var last topo.NodeID
	for _, id := range from(x.Fabric, at) {
		if at.set && id == at.node && x.Fabric.Node(id).GUID == at.guid {
			continue
		}
		r, ok := row(id)
		if !ok {
			continue
		}
		if len(page.Items) == limit {
			page.Next = position{guid: x.Fabric.Node(last).GUID, node: last}.String()
			break
		}
		page.Items, last = append(page.Items, r), id
	}
	return page
}

func (x *index) nodeRow(id topo.NodeID) v1.FabricNode {
	f := x.Fabric
	n := f.Node(id)
	row := v1.FabricNode{
		GUID: n.GUID, Type: n.Type.String(), Name: x.name(id), Description: n.Description, Host: x.hostOf[n.GUID],
		System: n.SystemImageGUID, Vendor: fmt.Sprintf("0x%06x", n.VendorID), Device: n.DeviceID, Ports: int(n.NumPorts),
	}
	if n.Type == ib.NodeSwitch {
		row.LID = f.Port(n.FirstPort).LID
	}
	for i := 1; i <= int(n.NumPorts); i++ {
		if p := f.Port(n.FirstPort + topo.PortID(i)); p.Peer != topo.None {
			row.Cabled++
			if p.State == ib.PortActive {
				row.Active++
			}
		}
	}
	all := slices.Clone(x.ofGUID[n.GUID])
	if x.twinned[n.GUID] {
		all = append(all, "several nodes show this GUID")
	}
	row.Problem = strings.Join(all, "; ")
	return row
}
