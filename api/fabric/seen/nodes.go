package seen

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
	page, limit := pageOf[v1.FabricNode](x), pageSize(q.Limit)
	var last topo.NodeID
	for _, id := range from(x.Fabric, at) {
		n := x.Fabric.Node(id)
		if at.set && n.GUID == at.guid && id == at.node || q.Type != "" && n.Type.String() != q.Type ||
			q.Host != "" && x.hostOf[n.GUID] != q.Host {
			continue
		}
		row := x.nodeRow(id)
		if q.Problem && row.Problem == "" {
			continue
		}
		if len(page.Items) == limit {
			page.Next = position{guid: x.Fabric.Node(last).GUID, node: last}.String()
			break
		}
		page.Items, last = append(page.Items, row), id
	}
	return page, nil
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
