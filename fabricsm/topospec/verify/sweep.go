package verify

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Fact returns the fact that a Subnet Manager would see behind a switch port of an observed fabric; ok is false when there
// is no link.
func Fact(f *topo.Fabric, at topo.PortID) (s Seen, ok bool) {
	peer := f.LinkUp(at)
	if peer == topo.None {
		return s, false
	}
	p, n := f.Port(peer), f.NodeOf(peer)
	s = Seen{
		At: ib.Place{Switch: f.NodeOf(at).GUID, Port: f.Port(at).Num}, GUID: n.GUID, Port: p.Num,
		Type: n.Type, NumPorts: n.NumPorts, PortGUID: p.GUID, SystemImage: n.SystemImageGUID,
	}
	if n.Type == ib.NodeSwitch {
		s.PortGUID = f.Port(n.FirstPort).GUID
	}
	return s, true
}

// Sweep passes a whole observed fabric to a judge in the order in which a Subnet Manager at port sm finds it: it does not
// look behind a port at which the judge holds or disables. It returns how many ports were judged.
func Sweep(j *Judge, f *topo.Fabric, sm topo.PortID) int {
	start := f.Port(sm).Node
	judged := 0
	if f.Node(start).Type == ib.NodeSwitch {
		j.AttachSwitch(f.Node(start).GUID)
	} else {
		at := f.LinkUp(sm)
		if at == topo.None || f.NodeOf(at).Type != ib.NodeSwitch {
			return 0
		}
		own, _ := Fact(f, at)
		j.Attach(own)
		start = f.Port(at).Node
	}
	seen := make([]bool, f.NumNodes())
	seen[start] = true
	for queue := []topo.NodeID{start}; len(queue) > 0; queue = queue[1:] {
		n := f.Node(queue[0])
		for i := 1; i <= int(n.NumPorts); i++ {
			at := n.FirstPort + topo.PortID(i)
			s, ok := Fact(f, at)
			if !ok {
				continue
			}
			if plan := j.Before(s.At); plan != PlanProbe && plan != PlanDark {
				continue
			}
			judged++
			r := j.Link(s)
			far := f.Port(f.LinkUp(at)).Node
			if (r.Action == Admit || r.Action == Keep) && f.Node(far).Type == ib.NodeSwitch && !seen[far] {
				seen[far] = true
				queue = append(queue, far)
			}
		}
	}
	return judged
}
