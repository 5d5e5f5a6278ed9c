package drill

import (
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/topospec"
)

// declare returns the declared topology of a netlist, as its builder would write it down. Racks are made up, so that
// findings can name a location.
func declare(l *netlist.Netlist) *topospec.Revision {
	r := &topospec.Revision{Fabric: "drill"}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		d := topospec.Device{GUID: n.GUID, Name: n.Name, Ports: uint8(n.NumPorts()), Rack: "R1", SystemImage: n.SystemImageGUID}
		switch n.Type {
		case ib.NodeSwitch:
			d.Kind = topospec.KindSwitch
		case ib.NodeRouter:
			d.Kind = topospec.KindRouter
		default:
			// Adapters of a host are named h1, h1-2, h1-3.
			d.Kind, d.Role = topospec.KindHCA, topospec.RoleCompute
			d.Host, _, _ = strings.Cut(n.Name, "-")
		}
		if n.Name == "sm" {
			d.Role = topospec.RoleSM
		}
		for p := 1; n.Type != ib.NodeSwitch && p < len(n.Ports); p++ {
			d.PortGUIDs = append(d.PortGUIDs, n.PortGUID(ib.PortNum(p)))
		}
		r.Devices = append(r.Devices, d)
		for p := 1; n.Type == ib.NodeSwitch && p < len(n.Ports); p++ {
			far := l.Find(n.Ports[p].Peer)
			if far == nil {
				continue
			}
			a, b := topospec.End{GUID: n.GUID, Port: ib.PortNum(p)}, topospec.End{GUID: far.GUID, Port: n.Ports[p].PeerPort}
			if far.Type != ib.NodeSwitch || a.Compare(b) < 0 {
				r.Links = append(r.Links, topospec.Link{A: a, B: b})
			}
		}
	}
	return r
}
