package perfread

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/topo"
)

// Agents returns what there is to read in a fabric: the external ports of switches that have a link, and the active ports of other
// nodes. Of nodes with one GUID the first counts.
func Agents(f *topo.Fabric) []perfmgr.Agent {
	var all []perfmgr.Agent
	for _, id := range f.ByGUID() {
		n := f.Node(id)
		switch {
		case f.NodeByGUID(n.GUID) != id:
		case n.Type == ib.NodeSwitch:
			if a := ofSwitch(f, n); a.LID.IsUnicast() && len(a.Ports) > 0 {
				all = append(all, a)
			}
		default:
			for i := 1; i <= int(n.NumPorts); i++ {
				if p := f.Port(n.FirstPort + topo.PortID(i)); p.State == ib.PortActive && p.LID.IsUnicast() {
					all = append(all, perfmgr.Agent{GUID: n.GUID, At: p.Num, LID: p.LID, Ports: []ib.PortNum{p.Num}})
				}
			}
		}
	}
	return all
}

func ofSwitch(f *topo.Fabric, n *topo.Node) perfmgr.Agent {
	a := perfmgr.Agent{GUID: n.GUID, LID: f.Port(n.FirstPort).LID}
	for i := 1; i <= int(n.NumPorts); i++ {
		if p := f.Port(n.FirstPort + topo.PortID(i)); p.State >= ib.PortInit {
			a.Ports = append(a.Ports, p.Num)
		}
	}
	return a
}
