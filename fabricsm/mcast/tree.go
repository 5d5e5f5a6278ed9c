package mcast

import (
	"cmp"
	"math/bits"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Branch is what one switch does with packets of a group: it sends them out of
// all ports but the one they came in by.
type Branch struct {
	Switch topo.NodeID
	Ports  Ports
}

// seat is where members of a group are: a switch and the ports of it that
// receive. A switch of which no port receives has members that only send.
type seat struct {
	sw       topo.NodeID
	receives Ports
	sends    Ports // of ports that only send
}

// planner makes trees on a ground, reusing its memory.
type planner struct {
	gr       *Ground
	ports    []Ports // by switch: the tree in hand
	children []int32 // by switch: branches below it
	in       []bool  // by switch: part of the tree
	order    []int32 // switches of the tree
	members  []int32 // switches with members
	group    []int32 // of which those of one island
	common   []uint64
	out      []Branch
	roots    []topo.NodeID // of the trees in out
}

func newPlanner(gr *Ground) *planner {
	n := len(gr.g.IDs)
	return &planner{
		gr: gr, ports: make([]Ports, n), children: make([]int32, n), in: make([]bool, n),
		common: make([]uint64, gr.within.words),
	}
}

// plan returns the trees of a group, one for each island with members, by switch id, and the switches whose members cannot
// be reached. Switches that cannot hold the multicast LID are not used. The results are valid until the next call.
func (p *planner) plan(mlid ib.LID, seats []seat) (tree []Branch, left []topo.NodeID) {
	p.out, p.members, p.order, p.roots = p.out[:0], p.members[:0], p.order[:0], p.roots[:0]
	gr := p.gr
	for i := range seats {
		s := gr.number(seats[i].sw)
		if s < 0 {
			continue
		}
		if gr.f.Node(seats[i].sw).MulticastFDBCap == 0 || mlid >= gr.ceiling {
			left = append(left, seats[i].sw)
			continue
		}
		p.members = append(p.members, s)
		p.ports[s].Union(&seats[i].receives)
	}
	for len(p.members) > 0 {
		lost := p.grow(mlid)
		for _, s := range lost {
			p.ports[s] = Ports{}
			left = append(left, gr.g.IDs[s])
		}
	}
	for _, s := range p.order {
		if p.in[s] && !p.ports[s].IsEmpty() {
			p.out = append(p.out, Branch{gr.g.IDs[s], p.ports[s]})
		}
		p.in[s], p.children[s], p.ports[s] = false, 0, Ports{}
	}
	slices.Sort(p.roots)
	slices.SortFunc(p.out, func(a, b Branch) int { return cmp.Compare(a.Switch, b.Switch) })
	slices.Sort(left)
	return p.out, left
}

// grow makes the tree of one island and removes its members from the list. It returns those that the tree does not reach.
func (p *planner) grow(mlid ib.LID) (lost []int32) {
	island := p.gr.island[p.members[0]]
	p.group = p.group[:0]
	p.members = slices.DeleteFunc(p.members, func(s int32) bool {
		if p.gr.island[s] != island {
			return false
		}
		p.group = append(p.group, s)
		return true
	})
	root, depth := p.root(mlid, p.group)
	if root < 0 {
		root, depth, lost = p.widest(mlid)
	}
	for _, s := range p.group {
		p.climb(mlid, s, root, depth)
	}
	if root = p.prune(root); !p.ports[root].IsEmpty() {
		p.roots = append(p.roots, p.gr.g.IDs[root])
	}
	return lost
}

// root chooses among the switches that are above some switches and least far
// from the farthest of them; -1 if none is above all.
func (p *planner) root(mlid ib.LID, members []int32) (root int32, depth int) {
	w := &p.gr.within
	for depth := range w.by {
		copy(p.common, w.of(depth, members[0]))
		for _, s := range members[1:] {
			intersect(p.common, w.of(depth, s))
		}
		if !isZero(p.common) {
			return p.heaviest(mlid), depth
		}
	}
	return -1, 0
}

// heaviest chooses among the tops in common.
func (p *planner) heaviest(mlid ib.LID) int32 {
	best, most := int32(-1), uint64(0)
	for i, set := range p.common {
		for ; set != 0; set &= set - 1 {
			s := p.gr.tops[i*64+bits.TrailingZeros64(set)]
			if w := weigh(mlid, uint64(p.gr.g.GUID(s))); best < 0 || w > most {
				best, most = s, w
			}
		}
	}
	return best
}

// widest removes the members that have no common root above them, one by one in the order of their GUIDs, until there is a
// root.
func (p *planner) widest(mlid ib.LID) (root int32, depth int, lost []int32) {
	slices.Sort(p.group)
	kept := p.group[:1:1]
	root, depth = p.root(mlid, kept)
	for _, s := range p.group[1:] {
		if r, d := p.root(mlid, append(kept, s)); r >= 0 {
			kept, root, depth = append(kept, s), r, d
		} else {
			lost = append(lost, s)
		}
	}
	p.group = append(p.group[:0], kept...)
	return root, depth, lost
}

// climb adds the shortest way up from a switch to the root, up to a switch that is in the tree already.
func (p *planner) climb(mlid ib.LID, s, root int32, depth int) {
	gr := p.gr
	top := gr.top[root]
	links := depth
	for links > 0 && gr.within.has(links-1, s, top) {
		links--
	}
	for !p.in[s] {
		p.in[s] = true
		p.order = append(p.order, s)
		if links == 0 {
			return
		}
		links--
		e := p.choose(mlid, s, top, links)
		parent := gr.g.To[e]
		p.ports[s].Add(gr.g.Port[e])
		p.ports[parent].Add(gr.back[e])
		p.children[parent]++
		s = parent
	}
}

// choose returns the way up after which the root is the given number of links away: to the heaviest switch, by the heaviest
// of parallel cables.
func (p *planner) choose(mlid ib.LID, s, top int32, links int) int32 {
	gr := p.gr
	best, most, cable := int32(-1), uint64(0), uint64(0)
	for _, e := range gr.ups(s) {
		to := gr.g.To[e]
		if !gr.within.has(links, to, top) {
			continue
		}
		w, c := weigh(mlid, uint64(gr.g.GUID(to))), weigh(mlid, uint64(gr.back[e])+1)
		if best < 0 || w > most || w == most && c > cable {
			best, most, cable = e, w, c
		}
	}
	return best
}

// prune removes the trunk: from the root down all switches with only one branch and no members. It returns the root of the
// rest.
func (p *planner) prune(root int32) int32 {
	gr := p.gr
	for p.children[root] == 1 && !slices.Contains(p.group, root) {
		// All its ports lead to switches, and there is one.
		var port ib.PortNum
		p.ports[root].Each(func(n ib.PortNum) { port = n })
		e := gr.g.EdgeAt(root, port)
		child := gr.g.To[e]
		p.ports[child].Remove(gr.back[e])
		p.in[root], p.ports[root] = false, Ports{}
		root = child
	}
	return root
}

// number returns the number of a switch of the ground, -1 for none.
func (gr *Ground) number(id topo.NodeID) int32 {
	if int(id) >= len(gr.g.Num) {
		return -1
	}
	return gr.g.Num[id]
}
