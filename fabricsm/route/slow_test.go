package route_test

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// slow judges tables the obvious way: it walks from every switch to every LID, port by port, and searches the dependency
// graph as a map. The checker and the engines are compared with it.
type slow struct {
	f      *topo.Fabric
	t      *route.Tables
	faults []string
	deps   map[channel]map[channel]bool
}

// hop is the link that leaves a switch by a port.
type hop struct {
	sw   topo.NodeID
	port ib.PortNum
}

func judgeSlowly(f *topo.Fabric, t *route.Tables) *slow {
	s := &slow{f: f, t: t, deps: make(map[channel]map[channel]bool)}
	owners := s.owners()
	for lid := ib.LID(1); lid <= t.MaxLID; lid++ {
		owner, known := owners[lid]
		for _, sw := range f.Switches() {
			s.judge(sw, lid, owner, known)
		}
	}
	return s
}

// channel is a link on a virtual lane.
type channel struct {
	hop
	vl ib.VL
}

// lane returns the virtual lane of a link of a path.
func (s *slow) lane(path []hop, i int, sl ib.SL) ib.VL {
	in := ib.PortNum(0)
	if i > 0 {
		in = s.f.Port(s.f.LinkUp(s.f.PortOf(path[i-1].sw, path[i-1].port))).Num
	}
	return s.t.SwitchLanes(path[i].sw, in, path[i].port)[sl]
}

// owners returns the end port of every LID that can be reached at all.
func (s *slow) owners() map[ib.LID]topo.PortID {
	owners := make(map[ib.LID]topo.PortID)
	for _, id := range s.f.EndPorts() {
		p := s.f.Port(id)
		if s.f.NodeOf(id).Type != ib.NodeSwitch && s.f.LinkUp(id) == topo.None {
			continue
		}
		for i := range 1 << p.LMC {
			if p.LID != 0 {
				owners[p.LID+ib.LID(i)] = id
			}
		}
	}
	return owners
}

func (s *slow) home(owner topo.PortID) topo.NodeID {
	if n := s.f.Port(owner).Node; s.f.Node(n).Type == ib.NodeSwitch {
		return n
	}
	return s.f.Port(s.f.LinkUp(owner)).Node
}

func (s *slow) judge(sw topo.NodeID, lid ib.LID, owner topo.PortID, known bool) {
	if !known {
		if p := s.t.LFT(sw)[lid]; p != ib.NoPort && s.t.Home(lid) == topo.None {
			s.fault("stray", sw, lid)
		}
		return
	}
	home := s.home(owner)
	distance := s.distance(sw, home)
	path, end := s.walk(sw, lid)
	if distance < 0 {
		if s.t.LFT(sw)[lid] != ib.NoPort {
			s.fault("route to another island", sw, lid)
		}
		return
	}
	if end != owner {
		s.fault(fmt.Sprintf("ends at port %d", end), sw, lid)
	}
	toCA := s.f.NodeOf(owner).Type != ib.NodeSwitch
	if toCA || s.hosts(sw) {
		sl := s.t.SL(s.f.Port(s.f.PortOf(sw, 0)).LID, lid)
		for i := 1; i < len(path); i++ {
			a, b := channel{path[i-1], s.lane(path, i-1, sl)}, channel{path[i], s.lane(path, i, sl)}
			if s.deps[a] == nil {
				s.deps[a] = make(map[channel]bool)
			}
			s.deps[a][b] = true
		}
	}
}

func (s *slow) fault(what string, sw topo.NodeID, lid ib.LID) {
	s.faults = append(s.faults, fmt.Sprintf("%s: switch %v LID %v", what, s.f.Node(sw).GUID, lid))
}

// walk follows a LID from a switch. It returns the links between switches that it used and the end port it came to, None if
// it was dropped or came back.
func (s *slow) walk(sw topo.NodeID, lid ib.LID) (path []hop, end topo.PortID) {
	for range len(s.f.Switches()) + 1 {
		num := s.t.LFT(sw)[lid]
		port := s.f.PortOf(sw, num)
		if num == ib.NoPort || port == topo.None {
			return path, topo.None
		}
		if num == 0 {
			return path, port
		}
		peer := s.f.LinkUp(port)
		if peer == topo.None {
			return path, topo.None
		}
		if s.f.NodeOf(peer).Type != ib.NodeSwitch {
			return path, peer
		}
		path = append(path, hop{sw, num})
		sw = s.f.Port(peer).Node
	}
	return path, topo.None
}

func (s *slow) hosts(sw topo.NodeID) bool {
	n := s.f.Node(sw)
	for i := 1; i <= int(n.NumPorts); i++ {
		peer := s.f.LinkUp(n.FirstPort + topo.PortID(i))
		if peer != topo.None && s.f.NodeOf(peer).Type != ib.NodeSwitch && s.f.Port(peer).LID != 0 {
			return true
		}
	}
	return false
}

// distance is the number of links between two switches, -1 without a way.
func (s *slow) distance(from, to topo.NodeID) int {
	dist := map[topo.NodeID]int{from: 0}
	for queue := []topo.NodeID{from}; len(queue) > 0; queue = queue[1:] {
		u := queue[0]
		if u == to {
			return dist[u]
		}
		n := s.f.Node(u)
		for i := 1; i <= int(n.NumPorts); i++ {
			peer := s.f.LinkUp(n.FirstPort + topo.PortID(i))
			if peer == topo.None || s.f.NodeOf(peer).Type != ib.NodeSwitch {
				continue
			}
			v := s.f.Port(peer).Node
			if _, seen := dist[v]; !seen {
				dist[v] = dist[u] + 1
				queue = append(queue, v)
			}
		}
	}
	return -1
}

// creditLoop searches the dependencies depth first.
func (s *slow) creditLoop() bool {
	const onPath, done = 1, 2
	state := make(map[channel]int)
	var visit func(channel) bool
	visit = func(h channel) bool {
		state[h] = onPath
		for next := range s.deps[h] {
			if state[next] == onPath || state[next] == 0 && visit(next) {
				return true
			}
		}
		state[h] = done
		return false
	}
	for h := range s.deps {
		if state[h] == 0 && visit(h) {
			return true
		}
	}
	return false
}
