package trace

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Loads counts routes over single links. One serves any number of links of the
// same fabric and tables; it is not safe for concurrent use.
type Loads struct {
	f      *topo.Fabric
	t      *route.Tables
	hosts  []int64 // by node: CA and router ports with a LID cabled to it
	toCA   []bool  // by LID
	passes []uint8 // by node, for one LID
	path   []topo.NodeID
}

// State of a switch while the routes to one LID are walked.
const (
	unknown uint8 = iota
	onTheWay
	yes
	no
)

// NewLoads prepares counting.
func NewLoads(f *topo.Fabric, t *route.Tables) *Loads {
	l := &Loads{f: f, t: t, hosts: make([]int64, f.NumNodes()), passes: make([]uint8, f.NumNodes())}
	if t == nil {
		return l
	}
	l.toCA = make([]bool, int(t.MaxLID)+1)
	for _, id := range f.EndPorts() {
		p := f.Port(id)
		if p.Num == 0 || p.LID == 0 {
			continue
		}
		if up := f.LinkUp(id); up != topo.None {
			l.hosts[f.Port(up).Node]++
		}
		for i := range 1 << p.LMC {
			if lid := int(p.LID) + i; lid < len(l.toCA) {
				l.toCA[lid] = true
			}
		}
	}
	return l
}

// Of counts the routes that leave a switch by a port towards another switch, each from a CA port to a LID of a CA port: the
// load of the link if all sent to all. It is 0 for other links.
func (l *Loads) Of(node topo.NodeID, out ib.PortNum) int64 {
	row := l.t.LFT(node)
	far := l.next(node, out)
	if row == nil || far == topo.None {
		return 0
	}
	var sum int64
	for lid := 1; lid < len(l.toCA) && lid < len(row); lid++ {
		if row[lid] == out && l.toCA[lid] {
			sum += l.through(node, ib.LID(lid))
		}
	}
	return sum
}

// next returns the switch that a port leads to.
func (l *Loads) next(node topo.NodeID, out ib.PortNum) topo.NodeID {
	id := l.f.PortOf(node, out)
	if id == topo.None || out == 0 {
		return topo.None
	}
	peer := l.f.LinkUp(id)
	if peer == topo.None || l.f.NodeOf(peer).Type != ib.NodeSwitch {
		return topo.None
	}
	return l.f.Port(peer).Node
}

// through counts the CA ports whose packets to a LID pass a switch.
func (l *Loads) through(node topo.NodeID, lid ib.LID) int64 {
	var sum int64
	switches := l.f.Switches()
	for _, s := range switches {
		l.passes[s] = unknown
	}
	l.passes[node] = yes
	for _, s := range switches {
		if l.hosts[s] > 0 && l.passing(s, lid) {
			sum += l.hosts[s]
		}
	}
	return sum
}

// passing follows the route from a switch until what comes of it is known.
func (l *Loads) passing(s topo.NodeID, lid ib.LID) bool {
	l.path = l.path[:0]
	verdict := no
	for s != topo.None {
		if l.passes[s] != unknown {
			if l.passes[s] == yes {
				verdict = yes
			}
			break
		}
		l.passes[s] = onTheWay
		l.path = append(l.path, s)
		row := l.t.LFT(s)
		if int(lid) >= len(row) {
			break
		}
		s = l.next(s, row[lid])
	}
	for _, p := range l.path {
		l.passes[p] = verdict
	}
	return verdict == yes
}
