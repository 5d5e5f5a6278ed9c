package proof

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// spread says for which edges of a class one of them stands.
type spread uint8

const (
	atSwitch   spread = iota // those at its switch
	alone                    // itself
	everywhere               // all: the routes are not known
	spreads
)

// group is the edges that one edge stands for.
type group struct {
	edge   int32
	stands spread
}

// marks records, by what an edge stands for, the first party that a packet crosses to or from; noParty: none.
type marks [spreads][]party

func newMarks(edges int) (m marks) {
	for i := range m {
		m[i] = slices.Repeat([]party{noParty}, edges)
	}
	return m
}

func (m *marks) has(g group) bool { return m[g.stands][g.edge] != noParty }

func (m *marks) mark(g group, other party) {
	if !m.has(g) {
		m[g.stands][g.edge] = other
	}
}

// flatten returns the mark of each edge.
func (m *marks) flatten(p *pass, of []int32, classes []class) []party {
	out := slices.Clone(m[alone])
	take := func(e int32, other party) {
		if out[e] == noParty {
			out[e] = other
		}
	}
	at := map[[2]int]party{} // by class and switch
	whole := map[int32]party{}
	for e := range out {
		if other := m[atSwitch][e]; other != noParty {
			at[[2]int{int(of[e]), p.edges[e].at.Device}] = other
		}
		if other := m[everywhere][e]; other != noParty {
			whole[of[e]] = other
		}
	}
	if len(at)+len(whole) == 0 {
		return out
	}
	for c := range classes {
		for _, e := range classes[c].edges {
			if other, ok := at[[2]int{c, p.edges[e].at.Device}]; ok {
				take(e, other)
			}
			if other, ok := whole[int32(c)]; ok {
				take(e, other)
			}
		}
	}
	return out
}

// exhausted reports whether nothing new can be found by a packet between two edges.
func (p *pass) exhausted(s source, to group) bool {
	return p.settled(p.edges[s.edge].party, p.edges[to.edge].party) && p.ends[0].has(s.group) && p.ends[1].has(to)
}

// through records the packets of a group that reach a router, or that a router sends on to it.
func (p *pass) through(way int, g group, k keys) {
	if before, ok := p.via[way][g]; !ok {
		p.via[way][g] = k
	} else if now := before.or(k); !now.same(before) {
		p.via[way][g] = now
	}
}

// carriers marks the edges whose packets cross through routers.
func (p *pass) carriers() {
	for way, groups := range p.via {
		if len(groups) == 0 || len(p.relayed[1-way]) == 0 {
			continue
		}
		byKey, all := map[ib.PKey][]party{}, []party{}
		for other, packets := range p.relayed[1-way] {
			all = append(all, other)
			for key := range packets {
				byKey[key] = append(byKey[key], other)
			}
		}
		slices.Sort(all)
		for _, list := range byKey {
			slices.Sort(list)
		}
		for g, k := range groups {
			mine := p.edges[g.edge].party
			crossing := func(list []party) bool {
				i := slices.IndexFunc(list, func(other party) bool { return p.crosses(mine, other) })
				if i >= 0 {
					p.ends[way].mark(g, list[i])
				}
				return i >= 0
			}
			if k.all && crossing(all) || (k.all || len(k.list) > 0) && crossing(byKey[wildcard]) {
				continue
			}
			for _, key := range k.list {
				if crossing(byKey[key]) {
					break
				}
			}
		}
	}
}

// meets records two parties that meet without a switch, at a port.
func (p *pass) meets(at Place, other party) {
	if _, known := p.met[at]; !known {
		p.met[at] = other
	}
}

// finish keeps what was found of each edge.
func (p *pass) finish() {
	if p.anyOpen {
		p.carriers()
		p.sentTo, p.gotFrom = p.ends[0].flatten(p, p.sendOf, p.send), p.ends[1].flatten(p, p.recvOf, p.recv)
	}
	p.ends, p.via = [2]marks{}, [2]map[group]keys{}
}

// PortVerdict is what is proven of the packets of one port to and from other parties.
type PortVerdict struct {
	Verdict
	// Sends and Receives say of Both whether the port is the end of a packet that passes, or may pass if the status is Unproven.
	Sends, Receives bool
	Other           Owner // the owner at the other end of such a packet; of several, one
}

// Port returns what is proven of a port of an adapter: whether a packet from it reaches a port of another party, or the
// other way. The statement about the port's owner may be worse: it covers all ports of the owner. Of a port that is at no
// declared switch nothing is proven.
func (r *Result) Port(at Place) PortVerdict {
	var v PortVerdict
	if at.Device < 0 || at.Device >= len(r.base.f.Devices) || int(at.Port) >= len(r.base.f.Devices[at.Device].Ports) {
		return v
	}
	far, agreed := r.base.f.far(at)
	placed := agreed && (r.base.f.Devices[far.Device].Type != ib.NodeSwitch || r.base.f.Devices[far.Device].trusted() && r.base.f.port(far).Owner.Kind != Spare)
	for a := range assumptions {
		status, p := Isolated, r.lower[a]
		to, from := p.at(at, far)
		if to != noParty || from != noParty {
			status = Leaks
		} else if p = r.upper[a]; !placed {
			status = Unproven
		} else if to, from = p.at(at, far); to != noParty || from != noParty {
			status = Unproven
		}
		v.Verdict[a] = status
		if other := max(to, from); a == Both && other != noParty {
			v.Sends, v.Receives, v.Other = to != noParty, from != noParty, p.owners[other]
		}
	}
	return v
}

// at returns the parties that a packet crosses to and from at a port, whose cable leads to far.
func (p *pass) at(port, far Place) (to, from party) {
	if other, ok := p.met[port]; ok {
		return other, other
	}
	if p.sentTo == nil || far.Port == 0 {
		return noParty, noParty
	}
	e := p.edgeAt[far.Device][far.Port]
	if e < 0 || p.edges[e].adapter != port {
		return noParty, noParty
	}
	return p.sentTo[e], p.gotFrom[e]
}
