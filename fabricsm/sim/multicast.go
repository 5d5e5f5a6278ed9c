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

// MulticastPorts returns the ports to which a switch sends a multicast LID, by number; none for any other node.
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

// spreading is a multicast packet of which copies are on their way.
type spreading struct {
	fabric *network
	data   *Data
	queue  []dataCopy
	report Report
}

// dataCopy is one copy, at the port where it came in.
type dataCopy struct {
	at   *port
	hops int
}

// spread takes a multicast packet to every end port that the tables lead to.
func (f *network) spread(from *port, d *Data) Report {
	s := &spreading{fabric: f, data: d, queue: []dataCopy{{from, 0}}, report: Report{Fate: NoRoute, At: from.endpoint()}}
	if from.node.sw == nil {
		fate, at := f.crossData(from, 0, d)
		if fate == LinkDown {
			fate = NotSent
		}
		if fate != Delivered {
			return Report{Fate: fate, At: at.endpoint()}
		}
		s.queue[0].at = at
	}
	for copies := 1; len(s.queue) > 0; copies++ {
		c := s.queue[0]
		s.queue = s.queue[1:]
		switch {
		case c.hops >= maxHops || copies > len(f.nodes)*maxHops:
			f.stats.Looped++
			c.at.counters.RelayError()
			s.end(Looped, c.at)
		case c.at.node.sw == nil:
			s.end(f.takeData(c.at, d))
		default:
			s.fan(c)
		}
	}
	return s.report
}

// fan sends copies of a packet that reached a switch.
func (s *spreading) fan(c dataCopy) {
	f, n := s.fabric, c.at.node
	ports := n.multicastPorts(s.data.DLID)
	if len(ports) == 0 {
		f.stats.NoRoute++
		c.at.counters.RelayError()
		s.end(NoRoute, c.at)
	}
	for _, num := range ports {
		out := n.ports[num]
		switch num {
		case c.at.num:
		case 0:
			s.end(f.takeData(out, s.data))
		default:
			fate, at := f.crossData(out, c.at.num, s.data)
			if fate != Delivered {
				s.end(fate, at)
				continue
			}
			s.queue = append(s.queue, dataCopy{at, c.hops + 1})
		}
	}
}

// end notes where a copy ended.
func (s *spreading) end(fate Fate, at *port) {
	r := &s.report
	if r.Fate != Delivered {
		r.Fate, r.At = fate, at.endpoint()
	}
	if fate == Delivered {
		r.To = append(r.To, at.endpoint())
	}
}
