// Package discovered turns observations of a fabric into a revision, and a revision into an observed fabric: text of
// ibnetdiscover in its grouped form, netlists of ibsim, which are similar, and snapshots of package topo. The form of
// ibnetdiscover --ports has port GUIDs and no node GUIDs, which is not enough for a specification: it is rejected.
//
// A revision made from a running fabric accepts every fault in it. It is a draft to be compared with the design, never the
// design.
package discovered

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// Fabric makes the observed fabric that has exactly the active links of a
// revision. A device whose number of ports the revision does not say has as many
// as its links need.
func Fabric(r *topospec.Revision) (*topo.Fabric, error) {
	ports := map[ib.GUID]uint8{}
	for i := range r.Links {
		for _, e := range [2]topospec.End{r.Links[i].A, r.Links[i].B} {
			ports[e.GUID] = max(ports[e.GUID], uint8(e.Port))
		}
	}
	var b topo.Builder
	ids := make(map[ib.GUID]topo.NodeID, len(r.Devices))
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Stock != topospec.InUse {
			continue
		}
		id := b.AddNode(topo.Node{GUID: d.GUID, SystemImageGUID: d.SystemImage, Type: nodeType(d.Kind), NumPorts: max(d.Ports, ports[d.GUID], 1), Description: d.Name, PartitionCap: 1})
		ids[d.GUID] = id
		namePorts(&b, id, d)
	}
	for i := range r.Links {
		l := &r.Links[i]
		if l.State != topospec.Active && l.State != topospec.Maintenance {
			continue
		}
		x, okX := ids[l.A.GUID]
		y, okY := ids[l.B.GUID]
		if !okX || !okY {
			return nil, fmt.Errorf("link %v to %v: one of the two is not listed as a device in use", l.A, l.B)
		}
		p, q := b.PortOf(x, l.A.Port), b.PortOf(y, l.B.Port)
		for _, port := range [2]topo.PortID{p, q} {
			tp := b.Port(port)
			tp.State, tp.Phys, tp.Width = ib.PortActive, ib.PhysLinkUp, ib.Width4x
			b.SetPort(port, tp)
		}
		b.Connect(p, q)
	}
	return b.Freeze(), nil
}

// namePorts sets the port GUIDs of a node's end ports: those that the revision has. Otherwise it uses the rule of most
// adapters: consecutive GUIDs from the node's.
func namePorts(b *topo.Builder, id topo.NodeID, d *topospec.Device) {
	n := b.Node(id)
	if n.Type == ib.NodeSwitch {
		p := b.Port(n.FirstPort)
		p.GUID = d.GUID
		b.SetPort(n.FirstPort, p)
		return
	}
	for i := 1; i <= int(n.NumPorts); i++ {
		p := b.Port(n.FirstPort + topo.PortID(i))
		p.GUID = d.GUID + ib.GUID(i)
		if i <= len(d.PortGUIDs) {
			p.GUID = d.PortGUIDs[i-1]
		}
		b.SetPort(n.FirstPort+topo.PortID(i), p)
	}
}

func nodeType(k topospec.Kind) ib.NodeType {
	switch k {
	case topospec.KindSwitch:
		return ib.NodeSwitch
	case topospec.KindRouter:
		return ib.NodeRouter
	default:
		return ib.NodeCA
	}
}

// Revision makes a draft of an observed fabric: its devices, and a link for every
// cable that is up. Names are what devices call themselves, where they differ from
// each other; they identify nothing.
func Revision(f *topo.Fabric, fabric string) (*topospec.Revision, error) {
	c := newCollector("fabric", fabric)
	for _, id := range f.ByGUID() {
		n := f.Node(id)
		d := device{guid: n.GUID, typ: n.Type, ports: n.NumPorts, description: n.Description, system: n.SystemImageGUID}
		for i := 1; i <= int(n.NumPorts); i++ {
			p := n.FirstPort + topo.PortID(i)
			if n.Type != ib.NodeSwitch {
				d.portGUIDs = append(d.portGUIDs, f.Port(p).GUID)
			}
			if q := f.LinkUp(p); q != topo.None {
				d.links = append(d.links, cable{port: ib.PortNum(i), peer: topospec.End{GUID: f.NodeOf(q).GUID, Port: f.Port(q).Num}})
			}
		}
		c.add(d)
	}
	return c.revision()
}
