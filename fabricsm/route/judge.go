package route

import (
	"math/bits"

	"portcullis/fabricsm/ib"
)

// State of a switch on the way to one LID, besides an edge number.
const (
	delivered = -1 // the LID is behind this switch
	dropped   = -2 // the packet ends here
)

// gatherLIDs is how many LIDs are read from all tables at a time: tables lie
// in memory by switch, the walk wants them by LID, and the LIDs behind one
// switch are mostly neighbours.
const gatherLIDs = 64

// judge walks the routes to the LIDs behind some switches.
type judge struct {
	g      *Graph
	t      *Tables
	rows   [][]ib.PortNum
	island []int32

	ports []ib.PortNum // gathered: by LID of the chunk, then switch
	next  []int32      // by switch: edge, delivered or dropped
	seen  []int32      // by switch: the walk that saw it last
	depth []int32      // by switch: links up to the home switch, -1 if never
	order []int32      // switches, each after the one that follows it on the route
	path  []int32
	flow  []int64 // by switch: CA ports whose packets pass
	lanes []uint8 // by switch: the layers of what passes, a bit each
	walk  int32

	load   []int64
	deps   []*dependencies // by layer
	byPort *laneWalk       // nil: layers are what there is
	report Report

	wrong, odd bool // of LIDs that differ from tables before: some is, see change
}

func newJudge(g *Graph, t *Tables, rows [][]ib.PortNum, island []int32) *judge {
	n := len(g.IDs)
	j := &judge{
		g: g, t: t, rows: rows, island: island, lanes: make([]uint8, n),
		ports: make([]ib.PortNum, gatherLIDs*n), next: make([]int32, n), seen: make([]int32, n),
		depth: make([]int32, n), order: make([]int32, 0, n), flow: make([]int64, n),
		load: make([]int64, len(g.To)),
	}
	for range t.Layers() {
		j.deps = append(j.deps, newDependencies(g))
	}
	for s := range j.lanes {
		j.lanes[s] = 1
	}
	if t.LanesByPort() {
		j.byPort = newLaneWalk(g, t)
		clear(j.lanes) // account counts the load only
	}
	return j
}

// errand is a LID to be walked, and the switch it is behind.
type errand struct {
	home int32
	Target
}

// each reads the entries of all switches for some LIDs, and visits the LIDs.
func (j *judge) each(errands []errand, visit func(home int32, t Target, ports []ib.PortNum)) {
	for len(errands) > 0 {
		chunk := errands[:min(gatherLIDs, len(errands))]
		errands = errands[len(chunk):]
		n := len(j.rows)
		for s, row := range j.rows {
			for k := range chunk {
				j.ports[k*n+s] = row[chunk[k].LID]
			}
		}
		for k := range chunk {
			visit(chunk[k].home, chunk[k].Target, j.ports[k*n:(k+1)*n])
		}
	}
}

// readEntries turns the entries for one LID into what follows each switch and
// reports those that are wrong in themselves.
func (j *judge) readEntries(home int32, t Target, ports []ib.PortNum) {
	for s := range j.next {
		port := ports[s]
		if int32(s) == home {
			j.next[s] = delivered
			if port != t.Out {
				j.find(WrongDelivery, int32(s), t, port)
			}
			continue
		}
		j.next[s] = dropped
		near := j.island[s] == j.island[home]
		switch {
		case port == ib.NoPort:
			if near && t.Out != ib.NoPort {
				j.find(NoRoute, int32(s), t, port)
			}
		case !near:
			j.find(Stray, int32(s), t, port)
		default:
			if j.next[s] = j.g.EdgeAt(int32(s), port); j.next[s] < 0 {
				j.next[s] = dropped
				j.find(BadPort, int32(s), t, port)
			}
		}
	}
}

// walkAll follows the route from every switch. order ends up with the home
// switch first.
func (j *judge) walkAll(t Target) {
	j.walk += 2 // walk-1: on the path being followed, walk: done
	j.order = j.order[:0]
	for s := range j.next {
		j.path = j.path[:0]
		u := int32(s)
		for j.seen[u] < j.walk-1 {
			j.seen[u] = j.walk - 1
			j.path = append(j.path, u)
			if j.next[u] < 0 {
				break
			}
			u = j.g.To[j.next[u]]
		}
		if len(j.path) == 0 {
			continue
		}
		j.finish(u, t)
	}
}

// finish settles the switches of a path that ended at switch u.
func (j *judge) finish(u int32, t Target) {
	reached, depth := false, int32(-1)
	switch last := j.path[len(j.path)-1]; {
	case j.next[last] == delivered:
		reached = true
	case j.next[last] == dropped:
	case j.seen[u] == j.walk-1:
		j.find(ForwardingLoop, u, t, j.g.Port[j.next[u]])
		j.next[last] = dropped
	default:
		reached, depth = j.depth[u] >= 0, j.depth[u]
	}
	for i := len(j.path) - 1; i >= 0; i-- {
		if reached {
			depth++
		}
		s := j.path[i]
		j.depth[s], j.seen[s] = depth, j.walk
		j.order = append(j.order, s)
	}
}

// startLanes sets the layer of the packets that each switch sends to a LID. With one layer nothing changes.
func (j *judge) startLanes(home int32, t Target) {
	if len(j.deps) == 1 || j.byPort != nil {
		return
	}
	for s, id := range j.g.IDs {
		j.lanes[s] = 0
		if t.Out != 0 || j.g.Hosts[s] > 0 {
			j.lanes[s] = 1 << j.t.layerOf(id, j.g.IDs[home])
		}
	}
}

// account adds the traffic to one LID to the loads, and the links that it uses
// one after the other to the dependencies.
func (j *judge) account(t Target) {
	g, toCA := j.g, t.Out != 0
	copy(j.flow, g.Hosts)
	for i := len(j.order) - 1; i >= 0; i-- {
		s := j.order[i]
		e := j.next[s]
		if e < 0 || !toCA && j.flow[s] == 0 {
			continue
		}
		to := g.To[e]
		j.flow[to] += j.flow[s]
		if toCA {
			j.load[e] += j.flow[s]
			if g.Hosts[s] > 0 {
				j.report.MaxHops = max(j.report.MaxHops, int(j.depth[s]))
			}
		}
		j.lanes[to] |= j.lanes[s]
		if follow := j.next[to]; follow >= 0 {
			for l := j.lanes[s]; l != 0; l &= l - 1 {
				j.deps[bits.TrailingZeros8(l)].set(e, follow)
			}
		}
	}
}

func (j *judge) find(f Fault, s int32, t Target, port ib.PortNum) {
	j.report.find(Finding{Fault: f, Switch: j.g.GUID(s), LID: t.LID, Port: port})
}
