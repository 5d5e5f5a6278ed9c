package mcast

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Masks returns the ports that a switch sends packets of a multicast LID to.
type Masks func(sw topo.NodeID, mlid ib.LID) Ports

// Members are the end ports of a group, in any order.
type Members struct {
	MLID     ib.LID
	Receives []topo.PortID
	Sends    []topo.PortID // of ports that do not receive
}

// Check judges multicast forwarding tables by sending a packet from every member of every group. The packet must come once
// to each receiving member of the sender's island, to no other port, and to no switch twice. Check trusts only the fabric
// and the masks.
func Check(f *topo.Fabric, masks Masks, groups []Members) error {
	var errs []error
	c := checker{f: f, masks: masks, island: islandsOf(f)}
	for _, g := range groups {
		for _, from := range slices.Concat(g.Receives, g.Sends) {
			if err := c.send(from, &g); err != nil {
				errs = append(errs, fmt.Errorf("multicast LID 0x%04x from port %v: %w", uint16(g.MLID), f.Port(from).GUID, err))
				break
			}
		}
	}
	return errors.Join(errs...)
}

type checker struct {
	f      *topo.Fabric
	masks  Masks
	island map[topo.NodeID]int
}

// islandsOf numbers the connected parts of the switches.
func islandsOf(f *topo.Fabric) map[topo.NodeID]int {
	island := make(map[topo.NodeID]int)
	for i, id := range f.Switches() {
		if _, ok := island[id]; ok {
			continue
		}
		island[id] = i
		for queue := []topo.NodeID{id}; len(queue) > 0; queue = queue[1:] {
			n := f.Node(queue[0])
			for num := 1; num <= int(n.NumPorts); num++ {
				peer := f.LinkUp(n.FirstPort + topo.PortID(num))
				if peer == topo.None || f.NodeOf(peer).Type != ib.NodeSwitch {
					continue
				}
				v := f.Port(peer).Node
				if _, ok := island[v]; !ok {
					island[v] = i
					queue = append(queue, v)
				}
			}
		}
	}
	return island
}

// seatOf returns the switch and its port that an end port is cabled to.
func (c *checker) seatOf(p topo.PortID) (topo.NodeID, ib.PortNum, bool) {
	if port := c.f.Port(p); c.f.Node(port.Node).Type == ib.NodeSwitch {
		return port.Node, 0, port.Num == 0
	}
	at := c.f.LinkUp(p)
	if at == topo.None || c.f.NodeOf(at).Type != ib.NodeSwitch {
		return 0, 0, false
	}
	return c.f.Port(at).Node, c.f.Port(at).Num, true
}

// hop is a packet that came to a switch by a port.
type hop struct {
	sw topo.NodeID
	in ib.PortNum
}

func (c *checker) send(from topo.PortID, g *Members) error {
	sw, in, ok := c.seatOf(from)
	if !ok {
		return nil // its link is down
	}
	want := make(map[topo.PortID]bool)
	for _, p := range g.Receives {
		if at, _, ok := c.seatOf(p); ok && p != from && c.island[at] == c.island[sw] {
			want[p] = true
		}
	}
	seen := map[topo.NodeID]bool{sw: true}
	for queue := []hop{{sw, in}}; len(queue) > 0; queue = queue[1:] {
		next, err := c.forward(queue[0], g.MLID, want)
		if err != nil {
			return err
		}
		for _, h := range next {
			if seen[h.sw] {
				return fmt.Errorf("it comes to switch %v twice", c.f.Node(h.sw).GUID)
			}
			seen[h.sw] = true
			queue = append(queue, h)
		}
	}
	for _, p := range c.f.EndPorts() {
		if want[p] {
			return fmt.Errorf("it does not come to port %v", c.f.Port(p).GUID)
		}
	}
	return nil
}

// forward processes a packet as a switch does, and removes the ports that got it from want.
func (c *checker) forward(h hop, mlid ib.LID, want map[topo.PortID]bool) (next []hop, err error) {
	mask := c.masks(h.sw, mlid)
	mask.Remove(h.in)
	n := c.f.Node(h.sw)
	mask.Each(func(num ib.PortNum) {
		to := topo.PortID(topo.None)
		switch {
		case num == 0:
			to = n.FirstPort
		case num <= ib.PortNum(n.NumPorts):
			to = c.f.LinkUp(n.FirstPort + topo.PortID(num))
		}
		switch {
		case to == topo.None:
			err = fmt.Errorf("switch %v sends it to port %d, which leads nowhere", n.GUID, num)
		case num != 0 && c.f.NodeOf(to).Type == ib.NodeSwitch:
			next = append(next, hop{c.f.Port(to).Node, c.f.Port(to).Num})
		case !want[to]:
			err = fmt.Errorf("switch %v sends it to port %v, which is no member or had it already", n.GUID, c.f.Port(to).GUID)
		default:
			delete(want, to)
		}
	})
	return next, err
}

// CheckWaits reports whether multicast with some masks and the unicast routes of a lane close a cycle of waiting links.
// lids are the multicast LIDs in use.
func CheckWaits(f *topo.Fabric, waits route.Waits, masks Masks, lids []ib.LID) error {
	g := waits.Graph()
	follow := make([]map[int32]bool, len(g.To))
	edges := make([]int32, len(g.To))
	for e := range edges {
		edges[e], follow[e] = int32(e), make(map[int32]bool)
	}
	for _, mlid := range lids {
		for s := range int32(len(g.IDs)) {
			mask := masks(g.IDs[s], mlid)
			for e := g.Row[s]; e < g.Row[s+1]; e++ {
				if mask.Has(g.Port[e]) {
					onward := masks(g.IDs[g.To[e]], mlid)
					onward.Remove(f.Port(f.LinkUp(f.PortOf(g.IDs[s], g.Port[e]))).Num)
					onward.Each(func(n ib.PortNum) {
						if next := g.EdgeAt(g.To[e], n); next >= 0 {
							follow[e][next] = true
						}
					})
				}
			}
		}
	}
	if drains(g, edges, func(e int32, visit func(int32)) {
		waits.Each(e, visit)
		for next := range follow[e] {
			visit(next)
		}
	}) {
		return nil
	}
	return errors.New("multicast trees and unicast routes close a circle of links that wait for each other")
}
