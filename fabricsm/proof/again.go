package proof

import (
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof/bitset"
)

// mostAgain is for how many parties packets are looked for again. For more, everything is proven.
const mostAgain = 32

// mostEmpty is how many classes without edges a pass keeps: those that edges left. With more, everything is proven.
const mostEmpty = 256

// Again is Prove of a fabric that differs from that of r only in P_Key tables of ports that are no ends of a link between
// switches or routers, and which were read then and now, and in which tenants own ports of adapters that are at switches. It finds
// out what differs, and reports false if that is anything else.
//
// It looks again for packets from and to the parties that have, or had, a changed port: packets between two others depend on nothing that
// changed.
func (r *Result) Again(f *Fabric) (_ *Result, d Difference, ok bool) {
	c, ok := changes(r.base.f, f)
	if !ok {
		return nil, d, false
	}
	next := &Result{base: r.base.on(f, &c)}
	below := next.base
	if r.lower[Both].wiring != r.base {
		below = r.lower[Both].on(f, &c)
	}
	for a := range assumptions {
		if next.upper[a], ok = r.upper[a].again(next.base, &c); !ok {
			return nil, d, false
		}
		next.lower[a] = next.upper[a]
		switch {
		case below == next.base:
		case r.lower[a].sendOf == nil && next.upper[a].pairs == 0: // it was not looked for packets that pass for sure, and need not be
			next.lower[a] = newPass(below, a)
		default:
			next.lower[a], ok = r.lower[a].again(below, &c)
		}
		if !ok {
			return nil, d, false
		}
	}
	return next, next.since(r, &c), true
}

// Difference is in what two results may differ. What is not in it is the same in both. Pairs with an owner that has no port in one of them
// need not be in it.
type Difference struct {
	Tables []Place // ports whose P_Key tables differ
	Owners []Place // ports of adapters that are of another tenant
	Pairs  []Pair  // what is proven of a packet from one to the other
	Ports  []Place // ports of adapters of which something else is proven
}

// since returns the difference from an earlier result.
func (r *Result) since(was *Result, c *changed) Difference {
	pairs, ports := map[Pair]bool{}, map[Place]bool{}
	for i, p := range slices.Concat(r.upper[:], r.lower[:]) {
		old := slices.Concat(was.upper[:], was.lower[:])[i]
		differ := func(a, b party) bool { return a != b && (p.assume == Both || a == noParty || b == noParty) } // Port names none but of Both
		for from, row := range p.done {
			var before bitset.Set
			if from < len(old.done) {
				before = old.done[from]
			}
			for to := range row.Other(before).All() {
				pairs[Pair{p.owners[from], p.owners[to]}] = true
			}
		}
		for e := range p.edges {
			if differ(mark(p.sentTo, e), mark(old.sentTo, e)) || differ(mark(p.gotFrom, e), mark(old.gotFrom, e)) {
				ports[p.edges[e].adapter] = true
			}
		}
		for at, other := range p.met {
			if before, ok := old.met[at]; !ok || differ(before, other) {
				ports[at] = true
			}
		}
		for at := range old.met {
			if _, ok := p.met[at]; !ok {
				ports[at] = true
			}
		}
	}
	return Difference{c.tables, places(c.owners), slices.SortedFunc(maps.Keys(pairs), comparePairs), slices.Collect(maps.Keys(ports))}
}

// mark returns the mark of an edge; nil: none has one.
func mark(of []party, e int) party {
	if of == nil {
		return noParty
	}
	return of[e]
}

// changed is in what two fabrics differ.
type changed struct {
	tables []Place
	owners []sold
}

// sold is a port of an adapter that is of another tenant than before.
type sold struct {
	at       Place
	from, to Owner
}

func places(list []sold) (out []Place) {
	for i := range list {
		out = append(out, list[i].at)
	}
	return out
}

// on returns the same wiring of another fabric, in which some ports are of other tenants.
func (w *wiring) on(f *Fabric, c *changed) *wiring {
	out := *w
	if out.f = f; len(c.owners) == 0 {
		return &out
	}
	out.owners, out.parties, out.edges, out.uses = slices.Clone(w.owners), maps.Clone(w.parties), slices.Clone(w.edges), slices.Clone(w.uses)
	for i := range c.owners {
		s := &c.owners[i]
		from := out.parties[s.from]
		out.uses[from]--
		to, front := out.party(s.to), f.port(s.at).Cable
		if e := out.edgeAt[front.Device][front.Port]; e >= 0 && out.edges[e].party == from {
			out.edges[e].party = to
			out.uses[from]--
			out.uses[to]++
		}
	}
	return &out
}

// changes returns the ports whose P_Key tables and tenants differ. It reports false if anything else does.
func changes(was, is *Fabric) (c changed, ok bool) {
	if len(was.Devices) != len(is.Devices) {
		return c, false
	}
	for i := range is.Devices {
		a, b := &was.Devices[i], &is.Devices[i]
		if a.GUID != b.GUID || a.Type != b.Type || a.Owner != b.Owner || a.Inbound != b.Inbound || a.MulticastDefaults != b.MulticastDefaults || len(a.Ports) != len(b.Ports) ||
			a.LFT.How != b.LFT.How || !same(a.LFT.Value, b.LFT.Value) || a.MFT.How != b.MFT.How || !maps.Equal(a.MFT.Value, b.MFT.Value) {
			return c, false
		}
		if len(a.Ports) == 0 || &a.Ports[0] == &b.Ports[0] {
			continue
		}
		for num := range a.Ports {
			p, q := &a.Ports[num], &b.Ports[num]
			if p.Cable != q.Cable || p.State != q.State || p.Check != q.Check || !slices.Equal(p.Aliases, q.Aliases) || p.PKeys.How != q.PKeys.How {
				return c, false
			}
			at := Place{i, ib.PortNum(num)}
			if p.Owner != q.Owner {
				if !is.sellable(at) || p.Owner.Kind != Tenant || q.Owner.Kind != Tenant || q.Owner.Name == "" {
					return c, false
				}
				c.owners = append(c.owners, sold{at, p.Owner, q.Owner})
			}
			if same(p.PKeys.Value, q.PKeys.Value) {
				continue
			}
			if !q.PKeys.known() {
				return c, false
			}
			c.tables = append(c.tables, at)
		}
	}
	return c, true
}

// sellable reports whether a port meets no other party without a switch, so that of its owner only what is behind its switch port depends.
func (f *Fabric) sellable(at Place) bool {
	far, agreed := f.far(at)
	return f.Devices[at.Device].Type == ib.NodeCA && at.Port > 0 && len(f.port(at).Aliases) == 0 && agreed && f.Devices[far.Device].trusted()
}

// same compares two lists, and does not look at one that is the other.
func same[T comparable](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// again is run of a pass in whose fabric some P_Key tables and tenants differ.
func (p *pass) again(w *wiring, c *changed) (*pass, bool) {
	edges, parties, ok := w.behind(slices.Concat(c.tables, places(c.owners)))
	if !ok {
		return nil, false
	}
	for i := range c.owners {
		parties = append(parties, w.parties[c.owners[i].from], w.parties[c.owners[i].to])
	}
	next := *p
	next.wiring = w
	if p.sendOf == nil {
		next.classify()
	} else {
		next.sendOf, next.send = next.regroup(edges, p.sendOf, p.send, next.sends)
		next.recvOf, next.recv = next.regroup(edges, p.recvOf, p.recv, next.receives)
		if empty(next.send) > mostEmpty || empty(next.recv) > mostEmpty {
			return nil, false
		}
	}
	alone := len(parties) == 0
	for _, e := range edges {
		if p.sendOf == nil || p.sendOf[e] != next.sendOf[e] || p.recvOf[e] != next.recvOf[e] {
			parties = append(parties, w.edges[e].party)
		}
	}
	if alone && p.sendOf != nil && next.isSettled(p, edges, parties) {
		return &next, true
	}
	for {
		slices.Sort(parties)
		if parties = slices.Compact(parties); len(parties) == 0 {
			return &next, true
		} else if len(parties) > mostAgain {
			return nil, false
		}
		more := next.take(p, next.look(bitset.Of(len(w.owners), parties...)))
		if len(more) == 0 {
			return &next, true
		}
		parties = append(parties, more...)
	}
}

// isSettled reports whether the changed edges, all of one party, have a packet in common with the same others as before. Then the same
// pass between it and these as before, where no port between switches checks, and no router sends packets on; and it takes over which these are.
func (p *pass) isSettled(was *pass, edges, parties []int32) bool {
	p.findTransit()
	if parties = slices.Compact(parties); len(parties) != 1 || len(p.transit) > 0 || p.routers {
		return false
	}
	mine := parties[0]
	for _, e := range edges {
		for i := range p.send {
			c := &p.send[i]
			if len(c.edges) > 0 && p.crosses(c.party, mine) && c.keys.meets(held(was.recvOf[e], was.recv)) != c.keys.meets(held(p.recvOf[e], p.recv)) {
				return false
			}
		}
		for i := range p.recv {
			c := &p.recv[i]
			if len(c.edges) > 0 && p.crosses(mine, c.party) && c.keys.meets(held(was.sendOf[e], was.send)) != c.keys.meets(held(p.sendOf[e], p.send)) {
				return false
			}
		}
	}
	s := newPass(p.wiring, p.assume)
	s.send, s.recv, s.only = p.send, p.recv, bitset.Of(len(p.owners), mine)
	s.matchFew()
	p.takeOpen(was, s)
	p.found = maps.Clone(was.found)
	maps.DeleteFunc(p.found, func(pair [2]party, _ witness) bool { return pair[0] == mine || pair[1] == mine }) // their P_Keys may be gone
	return true
}

// held returns the packets of a class; -1: none.
func held(class int32, classes []class) keys {
	if class < 0 {
		return keys{}
	}
	return classes[class].keys
}

// behind returns the edges that the P_Key tables of ports may change, and the parties of those that are cabled to another adapter. It
// reports false if the tables may matter to packets of others.
func (w *wiring) behind(places []Place) (edges []int32, parties []party, ok bool) {
	for _, at := range places {
		port := at
		far, agreed := w.f.far(at)
		if slices.ContainsFunc(w.f.port(at).PKeys.Value, func(k ib.PKey) bool { return k.Base() == w.fresh.Base() }) {
			return nil, nil, false
		}
		switch trusted := w.f.Devices[at.Device].trusted(); {
		case !trusted && agreed && w.f.Devices[far.Device].trusted():
			port = far
		case !trusted && agreed:
			for _, o := range []Owner{w.f.port(at).Owner, w.f.port(far).Owner} {
				if of := w.known(o); of >= 0 {
					parties = append(parties, of)
				}
			}
			continue
		case !trusted:
			continue
		case w.next[at.Device][at.Port].Port != 0:
			return nil, nil, false
		}
		edge := w.edgeAt[port.Device][port.Port]
		switch {
		case edge < 0 || w.edges[edge].party == noParty:
		case w.edges[edge].party == routers:
			return nil, nil, false
		case !slices.Contains(edges, edge):
			edges = append(edges, edge)
		}
	}
	return edges, parties, true
}

// regroup is group where only the packets of some edges may differ. A class may be left without edges.
func (p *pass) regroup(edges, byEdge []int32, classes []class, of func(*edge) keys) ([]int32, []class) {
	byEdge, classes = slices.Clone(byEdge), slices.Clone(classes)
	for _, e := range edges {
		k, was := of(&p.edges[e]), byEdge[e]
		if was >= 0 && classes[was].party == p.edges[e].party && classes[was].keys.same(k) {
			continue
		}
		if was >= 0 {
			classes[was].edges = slices.DeleteFunc(slices.Clone(classes[was].edges), func(other int32) bool { return other == e })
		}
		if byEdge[e] = -1; k.empty() {
			continue
		}
		i := slices.IndexFunc(classes, func(c class) bool { return c.party == p.edges[e].party && c.keys.same(k) })
		if i < 0 {
			i, classes = len(classes), append(classes, class{party: p.edges[e].party, keys: k})
		}
		byEdge[e], classes[i].edges = int32(i), append(slices.Clip(classes[i].edges), e)
	}
	return byEdge, classes
}

// empty returns how many classes have no edges.
func empty(classes []class) (n int) {
	for i := range classes {
		if len(classes[i].edges) == 0 {
			n++
		}
	}
	return n
}

// look looks for packets between some parties and all others.
func (p *pass) look(only bitset.Set) *pass {
	s := newPass(p.wiring, p.assume)
	s.send, s.recv, s.sendOf, s.recvOf, s.transit = p.send, p.recv, p.sendOf, p.recvOf, p.transit
	if s.only = only; p.routers {
		s.only.Add(routers)
	}
	s.run()
	return s
}

// take adds what was looked for again to what else was found. It returns the parties that must be looked at, too: that a packet of a
// port of theirs crosses was known by a packet to or from a party that was looked at, and none was found again.
func (p *pass) take(was, s *pass) (more []party) {
	few := slices.Collect(s.only.All())
	p.transit, p.pairs, p.found = s.transit, 0, make(map[[2]party]witness, len(was.found))
	p.done = make([]bitset.Set, len(p.owners))
	copy(p.done, was.done)
	for from := range p.done {
		p.done[from] = p.done[from].Replace(s.only.Has(int32(from)), len(p.owners), few, s.done[from])
		p.pairs += p.done[from].Count()
	}
	for _, from := range []*pass{was, s} {
		for pair, w := range from.found {
			if old := !s.only.Has(pair[0]) && !s.only.Has(pair[1]); old == (from == was) && len(p.found) < mostFound {
				p.found[pair] = w
			}
		}
	}
	p.takeOpen(was, s)
	p.sentTo, more = p.marked(s, was.sentTo, s.sentTo, more)
	p.gotFrom, more = p.marked(s, was.gotFrom, s.gotFrom, more)
	p.met = map[Place]party{}
	p.shared() // all pairs that it settles are
	return more
}

// takeOpen takes which classes have a packet in common and may not.
func (p *pass) takeOpen(was, s *pass) {
	var columns []int32
	for j := range p.recv {
		if s.only.Has(p.recv[j].party) {
			columns = append(columns, int32(j))
		}
	}
	p.open, p.anyOpen = make([]bitset.Set, len(p.send)), false
	copy(p.open, was.open)
	for i := range p.open {
		p.open[i] = p.open[i].Replace(s.only.Has(p.send[i].party), len(p.recv), columns, s.open[i])
		p.anyOpen = p.anyOpen || p.open[i] != nil
	}
}

// marked returns the mark of each edge.
func (p *pass) marked(s *pass, was, is, more []party) (out, needed []party) {
	if was == nil && is == nil {
		return nil, more
	}
	out = slices.Repeat([]party{noParty}, len(p.edges))
	for e := range out {
		before, now := mark(was, e), mark(is, e)
		switch mine := p.edges[e].party; {
		case mine == noParty:
		case before == noParty || s.only.Has(mine):
			out[e] = now
		case !s.only.Has(before):
			out[e] = before
		case now == noParty:
			more = append(more, mine)
		default:
			out[e] = now
		}
	}
	return out, more
}
