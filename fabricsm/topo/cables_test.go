package topo

import (
	"testing"

	"portcullis/fabricsm/ib"
)

// TestCables asks a builder about a host, the switch in front of it, and a switch without cables.
func TestCables(t *testing.T) {
	var b Builder
	sw := b.AddNode(Node{GUID: 1, Type: ib.NodeSwitch, NumPorts: 3})
	host := b.AddNode(Node{GUID: 2, Type: ib.NodeCA, NumPorts: 2})
	alone := b.AddNode(Node{GUID: 3, Type: ib.NodeSwitch, NumPorts: 1})
	sp, hp := b.PortOf(sw, 3), b.PortOf(host, 2)
	b.Connect(sp, hp)
	at := ib.Place{Switch: 1, Port: 3}

	if b.PlaceOf(hp) != at || b.PlaceOf(sp) != at || b.LinkEnd(sp) != at || b.SwitchPortAt(at) != sp {
		t.Errorf("the host is at %v and %v, port %d; want %v, port %d", b.PlaceOf(hp), b.PlaceOf(sp), b.SwitchPortAt(at), at, sp)
	}
	if !b.PlaceOf(None).IsZero() || !b.PlaceOf(b.PortOf(host, 1)).IsZero() || !b.PlaceOf(b.PortOf(sw, 0)).IsZero() {
		t.Error("a port without a switch port in front of it has a place")
	}
	if b.SwitchPortAt(ib.Place{Switch: 1}) != None || b.SwitchPortAt(ib.Place{Switch: 2, Port: 2}) != None || b.SwitchPortAt(ib.Place{Switch: 9, Port: 1}) != None {
		t.Error("port 0, a host and an unknown switch name a switch port")
	}
	if b.FirstPeer(sw) != hp || b.FirstPeer(alone) != None || b.HasOtherCable(sw, sp) || !b.HasOtherCable(sw, sp-1) {
		t.Error("the one cable of the switch is not found, or found twice")
	}
	if b.EntryPort(sp) != b.PortOf(sw, 0) || b.EntryPort(hp) != hp || b.Attachment(hp) != sp || b.Attachment(b.PortOf(sw, 0)) != b.PortOf(sw, 0) {
		t.Error("entry ports or attachments are wrong")
	}
	var external, ends, cables int
	for _, id := range []NodeID{sw, host, alone} {
		b.EachExternal(id, func(p PortID) {
			if b.IsExternal(p) && !b.IsEndPort(p) {
				external++
			}
		})
		b.EachEndPort(id, func(PortID) { ends++ })
		b.EachCable(id, func(own, far PortID) {
			if b.Peer(own) == far && b.Peer(far) == own {
				cables++
			}
		})
	}
	if external != 4 || ends != 4 || cables != 2 {
		t.Errorf("%d external ports, %d end ports and %d ends of cables; want 4, 4 and 2", external, ends, cables)
	}
}
