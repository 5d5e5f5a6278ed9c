package lanes

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// laneID names what the SL-to-VL tables of a port are made for, so that a change
// is seen.
type laneID uint8

const (
	lanesUnknown laneID = iota // nothing was decided
	lanesAsFound               // they are left alone
	lanesByPort                // what the routes say for each pair of ports
	firstLanes                 // and above: Lanes.tables, one for all input ports
)

// maxTables bounds the tables that are kept apart; common configurations need ten.
const maxTables = 200

// wantedFor returns the lanes for which the tables of a port have to be made.
func (l *Lanes) wantedFor(p topo.PortID) laneID {
	switch {
	case !l.programsMaps() || !l.CanMap(p):
		return lanesAsFound
	case l.layered && l.routes.LanesByPort() && l.topo.IsExternal(p):
		return lanesByPort
	}
	want := l.lanesOf(p, 0)
	i := slices.Index(l.tables, want)
	if i < 0 {
		if len(l.tables) == maxTables {
			l.tables = nil
			l.relaneAll()
		}
		i = len(l.tables)
		l.tables = append(l.tables, want)
	}
	return firstLanes + laneID(i)
}

// lanesOf returns the lane for each service level of packets that leave by a port and came in by another of its switch.
// Only links between switches can be part of a credit loop: to and from hosts the present lanes are enough for all levels.
func (l *Lanes) lanesOf(p topo.PortID, in ib.PortNum) [16]ib.VL {
	if !l.layered {
		return l.kinds[l.kindOf(p)].Lanes(l.fabric.VLs(p))
	}
	want := l.base
	pt := l.fabric.Port(p)
	if l.topo.IsExternal(p) && l.routes.LanesByPort() {
		want = l.routes.SwitchLanes(pt.Node, in, pt.Num)
	}
	if l.own != 0 {
		want[l.extra] = l.own
	}
	if pt.Num != 0 && l.topo.IsExternal(p) && !l.topo.IsEndPort(l.topo.Peer(p)) {
		return want
	}
	fold(&want, l.fabric.VLs(p))
	return want
}

// fold has each lane that a port does not have stood for by one that it has.
func fold(want *[16]ib.VL, vls ib.VLCap) {
	n := max(1, vls.Count())
	for sl, vl := range want {
		if vl != ib.VL15 {
			want[sl] = ib.VL(int(vl) % n)
		}
	}
}

// Follow takes the lanes that routes and multicast need now. Where tables have to change, new forwarding waits for them, as
// far as devices answer. It reports whether service levels of the routes may have changed.
func (l *Lanes) Follow(routes *route.Tables, ground *mcast.Ground) bool {
	if l.routes == routes && l.ground == ground {
		return false
	}
	was, layered, base, extra, own := l.routes, l.layered, l.base, l.extra, l.own
	l.routes, l.ground = routes, ground
	l.layered, l.base, l.extra, l.own = routes.Layers() > 1, routes.SLtoVL(), 0, 0
	if ground != nil && ground.VL != 0 {
		l.extra, l.own = ground.SL, ground.VL
		if !l.layered {
			l.layered, l.base = true, oneLane()
		}
	}
	changed := l.layered != layered || l.base != base || l.extra != extra || l.own != own
	switch {
	case was.LanesByPort() || routes.LanesByPort():
		l.relanePorts(was, changed)
	case changed || was == nil && l.undoes():
		l.relaneAll()
	}
	if l.closed = l.closed || l.layered && was != routes; l.closed {
		l.next = 0
	}
	return l.layered || layered || was == nil
}

// oneLane returns the tables of routes on one lane, when other traffic has another.
func oneLane() (vl [16]ib.VL) {
	for sl := 1; sl < len(vl); sl++ {
		vl[sl] = ib.VL15
	}
	return vl
}

// relaneAll looks at the SL-to-VL tables of all ports again.
func (l *Lanes) relaneAll() {
	for i := range l.maps {
		p := topo.PortID(i)
		if pt := l.fabric.Port(p); pt.isSeen() && l.has(p) {
			l.reread(p)
			l.queue.MarkPort(work.SLtoVL, p)
			if l.undoes() {
				l.queue.MarkPort(work.VLArb, p)
			}
		}
	}
}

// relanePorts looks again at the SL-to-VL tables of those switch ports for which
// the routes say something else than before.
func (l *Lanes) relanePorts(was *route.Tables, all bool) {
	now := l.routes
	for i := range l.maps {
		p := topo.PortID(i)
		pt := l.fabric.Port(p)
		if !pt.isSeen() || !l.has(p) {
			continue
		}
		differs := all || !l.topo.IsExternal(p)
		for in := ib.PortNum(0); !differs && in <= ib.PortNum(l.topo.Node(pt.Node).NumPorts); in++ {
			differs = was.SwitchLanes(pt.Node, in, pt.Num) != now.SwitchLanes(pt.Node, in, pt.Num)
		}
		if differs {
			l.reread(p)
			l.queue.MarkPort(work.SLtoVL, p)
		}
	}
}

// Delays reports whether the forwarding of a switch must not be written yet. It is marked again as soon as it may.
func (l *Lanes) Delays(id topo.NodeID) bool {
	if l.closed {
		l.waiting = append(l.waiting, id)
	}
	return l.closed
}

// Release lets forwarding be written once all links between switches have their lanes, but those of switches that do not
// answer or refuse. It reports whether there is work now.
func (l *Lanes) Release() bool {
	if !l.closed {
		return false
	}
	for ; int(l.next) < len(l.maps); l.next++ {
		pt := l.fabric.Port(l.next)
		peer := topo.PortID(topo.None)
		if n := l.fabric.Node(pt.Node); n.IsAlive && !n.IsSilent && l.topo.IsExternal(l.next) {
			peer = l.topo.Peer(l.next)
		}
		if peer != topo.None && l.topo.IsExternal(peer) && pt.isSeen() && !l.maps[l.next].done() && !l.fabric.IsPaused(work.OnPort(work.SLtoVL, l.next)) {
			return false
		}
	}
	l.closed = false
	for _, id := range l.waiting {
		if l.fabric.Node(id).IsAlive {
			l.queue.MarkNode(work.LFT, id)
		}
	}
	waited := len(l.waiting) > 0
	l.waiting = nil
	return waited
}
