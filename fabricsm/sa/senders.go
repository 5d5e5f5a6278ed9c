package sa

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// senders finds out which port sent a directed route that came to ours. It is immutable.
type senders struct {
	fabric   *topo.Fabric // nil: nothing is known
	own      topo.PortID
	managers []topo.PortID
}

func sendersOf(v *sm.View) senders {
	return senders{fabric: v.Fabric, own: v.Fabric.PortByGUID(v.GUID), managers: v.Managers}
}

// sender is the sender that the return path of a directed route identifies.
type sender struct {
	port topo.PortID // topo.None: the fabric is not known as far as that
	// behind is the last known switch port on the way back. All hosts and switches behind it are one sender as long as they
	// are not known.
	behind ib.Place
}

// of follows the return path back over the known cables. Each switch on the way wrote the port by which the packet came in.
// The sender chose the bytes before and after the hops. So the path ends at the first node that is no switch: only a switch
// forwards directed routes.
func (s *senders) of(m *mad.MAD) sender {
	out := sender{port: topo.None}
	if s.fabric == nil || s.own == topo.None || m.HopCount() > mad.MaxHops {
		return out
	}
	at, path := s.fabric.Port(s.own).Node, m.ReturnPath()
	for i := int(m.HopCount()); i > 0; i-- {
		p := s.fabric.PortOf(at, ib.PortNum(path[i]))
		if i == int(m.HopCount()) && path[i] == 0 {
			p = s.own // some adapters leave their own port out
		}
		if p == topo.None || s.fabric.Port(p).Num == 0 {
			return sender{port: topo.None, behind: out.behind}
		}
		if n := s.fabric.Node(at); n.Type == ib.NodeSwitch {
			out.behind = ib.Place{Switch: n.GUID, Port: s.fabric.Port(p).Num}
		}
		peer := s.fabric.Port(p).Peer
		if peer == topo.None {
			return sender{port: topo.None, behind: out.behind}
		}
		at, out.port = s.fabric.Port(peer).Node, peer
		n := s.fabric.Node(at)
		if n.Type != ib.NodeSwitch {
			return out
		}
		out.port = n.FirstPort // a switch itself, unless it goes on
	}
	return out
}

// manager reports the port of a subnet manager with which ours works.
func (s *senders) manager(p topo.PortID) bool {
	_, is := slices.BinarySearch(s.managers, p)
	return is
}

// endPort describes the end port with a base LID for a report; nil: none has it. It looks
// at all.
func (s *senders) endPort(lid ib.LID) *portindex.EndPort {
	if s.fabric == nil || !lid.IsUnicast() {
		return nil
	}
	for id, p := range s.fabric.Ports() {
		if p.LID == lid && p.GUID != 0 && s.fabric.IsEndPort(id) {
			return &portindex.EndPort{Port: id, Node: p.Node, Type: s.fabric.Node(p.Node).Type, GUID: p.GUID, LID: lid, LMC: p.LMC}
		}
	}
	return nil
}

// way is one number for the senders behind a switch port. Nothing in it is for a sender to
// choose.
func (s *sender) way() uint8 {
	h := uint64(s.behind.Switch)*0x9E3779B97F4A7C15 + uint64(s.behind.Port)*0xBF58476D1CE4E5B9
	return uint8((h ^ h>>32) >> 8 % limiter.NumRoutes)
}
