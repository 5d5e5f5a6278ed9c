package sim

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Endpoint is a port by the name of its node.
type Endpoint struct {
	Node string
	Port ib.PortNum
}

// Multicast shows where a packet to a multicast LID comes out that a port
// sends: every CA and router port and switch port 0 that gets a copy, once for
// each copy, nearest switch first. Tables, MulticastFDBTop and states of links
// count; P_Keys, lanes and default multicast ports do not. An error means that
// the packet goes round in circles.
func (f *Fabric) Multicast(from Endpoint, mlid ib.LID) ([]Endpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(from.Node, from.Port)
	if err != nil {
		return nil, err
	}
	var out []Endpoint
	type hop struct {
		sw *node
		in ib.PortNum
	}
	queue := []hop{{p.node, p.num}}
	if p.node.sw == nil {
		if queue = nil; p.carries(false) {
			queue = []hop{{p.peer.node, p.peer.num}}
		}
	}
	for hops := 0; len(queue) > 0; queue = queue[1:] {
		if hops++; hops > len(f.nodes) {
			return out, fmt.Errorf("a packet from %s to multicast LID 0x%04x goes round in circles", from.Node, uint16(mlid))
		}
		h := queue[0]
		if h.sw.sw == nil {
			out = append(out, Endpoint{h.sw.name, h.in})
			continue
		}
		for _, num := range h.sw.multicastPorts(mlid) {
			switch q := h.sw.ports[num]; {
			case num == h.in:
			case num == 0:
				out = append(out, Endpoint{h.sw.name, 0})
			case q.carries(false):
				queue = append(queue, hop{q.peer.node, q.peer.num})
			}
		}
	}
	return out, nil
}

// MulticastPorts shows the ports that a switch sends a multicast LID to, by
// number; none for what is no switch.
func (f *Fabric) MulticastPorts(node string, mlid ib.LID) []ib.PortNum {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(node)
	if err != nil || n.sw == nil {
		return nil
	}
	return n.multicastPorts(mlid)
}

func (n *node) multicastPorts(mlid ib.LID) (ports []ib.PortNum) {
	if n.sw.hasMulticastTop && mlid > n.sw.info.MulticastFDBTop || !mlid.IsMulticast() {
		return nil
	}
	at := uint32(mlid - ib.MinMulticastLID)
	for position := uint8(0); int(position)*multicastPositions < len(n.ports); position++ {
		block := n.sw.multicast[mad.MulticastForwardingMod(position, uint16(at/mad.MLIDsPerBlock))]
		if block == nil {
			continue
		}
		mask := uint16(block[2*(at%mad.MLIDsPerBlock)])<<8 | uint16(block[2*(at%mad.MLIDsPerBlock)+1])
		for i := range ib.PortNum(multicastPositions) {
			if num := ib.PortNum(position)*multicastPositions + i; mask&(1<<i) != 0 && int(num) < len(n.ports) {
				ports = append(ports, num)
			}
		}
	}
	return ports
}

// SwitchInfo shows a switch as it is; what is no switch gives the zero
// SwitchInfo.
func (f *Fabric) SwitchInfo(node string) mad.SwitchInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(node)
	if err != nil || n.sw == nil {
		return mad.SwitchInfo{}
	}
	return n.sw.info
}

// SLtoVL shows the virtual lanes by service level of packets that come in by one
// port of a switch and leave by another; of a CA port, in is 0 and out the port.
func (f *Fabric) SLtoVL(node string, in, out ib.PortNum) (t mad.SLtoVLMappingTable) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, err := f.findPort(node, out); err == nil && int(in) < len(p.slToVL) {
		must(mad.Decode(p.slToVL[in][:], &t))
	}
	return t
}

// VLArbitration shows a half of the arbitration table of a port.
func (f *Fabric) VLArbitration(node string, num ib.PortNum, half mad.VLArbHalf) (t mad.VLArbitration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, err := f.findPort(node, num); err == nil {
		must(mad.Decode(p.vlArb[half-1][:], &t))
	}
	return t
}
