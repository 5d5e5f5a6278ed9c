package proof

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof/bitset"
)

// pass looks for packets that cross between parties under one assumption.
type pass struct {
	*wiring
	assume Assumption
	only   bitset.Set // the parties that are looked at, each with all others; nil: all parties

	send, recv []class
	sendOf     []int32 // class of an edge; -1: none
	recvOf     []int32
	open       []bitset.Set // by sending class: the receiving classes that have a packet in common and may not
	anyOpen    bool
	transit    map[Place][2]keys // of ports between switches that refuse something: inbound, outbound

	done    []bitset.Set                     // by sending party: the receiving ones that a packet crosses to
	pairs   int                              // how many there are in done
	found   map[[2]party]witness             // the first packets of them; of others, one is looked for again
	relayed [2]map[party]map[ib.PKey]witness // packets to routers, and from them, by sender or receiver; wildcard for all

	ends            [2]marks          // while it runs: of senders, of receivers
	via             [2]map[group]keys // while it runs: packets to routers, and from them
	met             map[Place]party   // ports that meet another party without a switch
	sentTo, gotFrom []party           // by edge: a party that a packet crosses to, and from; nil: none does
}

// class is a set of edges that cannot be distinguished: same party, same packets.
type class struct {
	party party
	keys  keys
	edges []int32
}

// witness is a packet that crosses.
type witness struct {
	from, to int32 // edges
	key      ib.PKey
	raw      bool
	lid      ib.LID   // 0: forwarding tables were not read
	on       *witness // the packet that a router sends on
	meeting  *meeting // the parties meet without a switch; there are no edges
}

// meeting is how parties meet without a switch.
type meeting struct {
	at    Place  // the port of the alias, or of an adapter that is cabled to another
	alias *Alias // nil: a cable
}

// mostFound is how many packets a pass keeps. To keep one for each pair takes more memory than everything else.
const mostFound = 4096

// wildcard stands for every P_Key where packets to and from routers are recorded.
const wildcard ib.PKey = 0

func newPass(w *wiring, a Assumption) *pass {
	p := &pass{
		wiring: w, assume: a, found: map[[2]party]witness{}, done: make([]bitset.Set, len(w.owners)),
		via: [2]map[group]keys{{}, {}}, met: map[Place]party{},
	}
	p.relayed = [2]map[party]map[ib.PKey]witness{{}, {}}
	return p
}

// run finds a packet for each two parties between which one passes.
func (p *pass) run() {
	defer p.finish()
	p.shared()
	if p.sendOf == nil {
		p.classify()
	}
	if p.only == nil {
		p.match()
	} else {
		p.matchFew()
	}
	if !p.anyOpen {
		return // whatever the routes are
	}
	p.ends = [2]marks{newMarks(len(p.edges)), newMarks(len(p.edges))}
	if p.upper && !p.routed {
		p.anyRoute()
	} else {
		p.findTransit()
		all, few := p.sources()
		open, mine := p.leads()
		p.unicast(all, few, open, mine)
		p.multicast(all, few, open, mine)
	}
	p.throughRouters()
}

// crosses reports whether no packet may pass from one party to another, and it is looked for one.
func (p *pass) crosses(a, b party) bool {
	return p.wiring.crosses(a, b) && (p.only == nil || p.only.Has(a) || p.only.Has(b))
}

// table returns the packets that a P_Key table lets pass.
func (p *pass) table(t Read[[]ib.PKey], r rule) keys {
	switch {
	case t.known():
		return p.tables.passing(t.Value, r)
	case p.upper:
		return everything
	default:
		return keys{raw: true}
	}
}

// inbound returns the packets that may enter a switch by an external port.
func (p *pass) inbound(at Place) keys {
	r := base
	if rule := p.f.Devices[at.Device].Inbound; rule == InboundMembership || rule == InboundUnknown && !p.upper {
		r = notAbove
	}
	c := p.f.port(at).Check
	return p.checked(at, r, c.Value.Inbound, c.Value.RawInbound)
}

// outbound returns the packets that may leave a switch by an external port.
func (p *pass) outbound(at Place) keys {
	c := p.f.port(at).Check
	return p.checked(at, matching, c.Value.Outbound, c.Value.RawOutbound)
}

func (p *pass) checked(at Place, r rule, enforced, filtered bool) keys {
	if p.assume == Adapters {
		return everything
	}
	port := p.f.port(at)
	if !port.Check.known() {
		enforced, filtered = !p.upper, !p.upper
	}
	out := everything
	if enforced {
		out = p.table(port.PKeys, r)
	}
	out.raw = !filtered
	return out
}

// honest reports whether the adapter behind an edge is counted on.
func (p *pass) honest(e *edge) bool {
	return e.adapter.Port != 0 && (e.party == routers || p.assume != Switches && e.party >= 0 && p.owners[e.party].Kind == Tenant)
}

// sends returns the packets that may come from an edge. An honest adapter sends what its table holds; a router sends on
// what matches its table.
func (p *pass) sends(e *edge) keys {
	out := p.inbound(e.at)
	if p.honest(e) {
		r := exact
		if e.party == routers {
			r = matching
		}
		out = out.and(p.table(p.f.port(e.adapter).PKeys, r))
	}
	out.raw = out.raw && p.assume != Adapters && e.party != routers
	return out
}

// receives returns the packets that may arrive behind an edge.
func (p *pass) receives(e *edge) keys {
	out := p.outbound(e.at)
	if p.honest(e) {
		out = out.and(p.table(p.f.port(e.adapter).PKeys, matching))
	}
	out.raw = out.raw && p.assume != Adapters && e.party != routers
	return out
}

// classify groups edges into classes.
func (p *pass) classify() {
	p.sendOf, p.send = p.group(p.sends)
	p.recvOf, p.recv = p.group(p.receives)
}

func (p *pass) group(of func(*edge) keys) (byEdge []int32, classes []class) {
	index := map[string]int32{}
	byEdge = make([]int32, len(p.edges))
	var name []byte
	var members []int // by class
	total := 0
	for i := range p.edges {
		e := &p.edges[i]
		byEdge[i] = -1
		if e.party == noParty {
			continue
		}
		k := of(e)
		if k.empty() {
			continue
		}
		name = binary.LittleEndian.AppendUint32(name[:0], uint32(e.party))
		name = append(name, flag(k.all)|flag(k.raw)<<1)
		for _, key := range k.list {
			name = binary.LittleEndian.AppendUint16(name, uint16(key))
		}
		at, ok := index[string(name)]
		if !ok {
			at = int32(len(classes))
			index[string(name)] = at
			classes, members = append(classes, class{party: e.party, keys: k}), append(members, 0)
		}
		byEdge[i] = at
		members[at]++
		total++
	}
	all := make([]int32, 0, total)
	for c, n := range members {
		classes[c].edges, all = all[:0:n], all[n:n]
	}
	for i, at := range byEdge {
		if at >= 0 {
			classes[at].edges = append(classes[at].edges, int32(i))
		}
	}
	return byEdge, classes
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// match finds the classes that have a packet in common and may not, P_Key by P_Key.
func (p *pass) match() {
	byKey := map[ib.PKey][]int32{}
	var all, raw, some []int32
	for j := range p.recv {
		k := &p.recv[j].keys
		for _, key := range k.list {
			byKey[key] = append(byKey[key], int32(j))
		}
		if k.all {
			all = append(all, int32(j))
		}
		if k.raw {
			raw = append(raw, int32(j))
		}
		if k.all || len(k.list) > 0 {
			some = append(some, int32(j))
		}
	}
	p.open = make([]bitset.Set, len(p.send))
	for i := range p.send {
		k := &p.send[i].keys
		for _, key := range k.list {
			p.mark(i, byKey[key])
		}
		if len(k.list) > 0 {
			p.mark(i, all)
		}
		if k.all {
			p.mark(i, some)
		}
		if k.raw {
			p.mark(i, raw)
		}
	}
}

// matchFew is match for the parties that are looked at.
func (p *pass) matchFew() {
	p.open = make([]bitset.Set, len(p.send))
	mine, all := []int32{}, make([]int32, len(p.recv))
	for j := range p.recv {
		all[j] = int32(j)
		if p.only.Has(p.recv[j].party) {
			mine = append(mine, int32(j))
		}
	}
	for i := range p.send {
		to := mine
		if p.only.Has(p.send[i].party) {
			to = all
		}
		for k := range to {
			if p.send[i].keys.meets(p.recv[to[k]].keys) {
				p.mark(i, to[k:k+1])
			}
		}
	}
}

func (p *pass) mark(i int, receivers []int32) {
	for _, j := range receivers {
		if !p.crosses(p.send[i].party, p.recv[j].party) || len(p.send[i].edges) == 0 || len(p.recv[j].edges) == 0 {
			continue
		}
		if p.open[i] == nil {
			p.open[i] = make(bitset.Set, (len(p.recv)+63)/64)
		}
		p.open[i].Add(j)
		p.anyOpen = true
	}
}

// anyRoute takes it that a packet reaches every port, where a forwarding table was not read.
func (p *pass) anyRoute() {
	for i := range p.send {
		for j := range p.recv {
			if p.open[i].Has(int32(j)) {
				p.hit(group{p.send[i].edges[0], everywhere}, group{p.recv[j].edges[0], everywhere}, p.send[i].keys.and(p.recv[j].keys), 0)
			}
		}
	}
}

// settled reports whether nothing new can be found between two parties. Packets of routers are all recorded.
func (p *pass) settled(a, b party) bool {
	return a != routers && b != routers && p.done[a].Has(b)
}

// settle records the first packet between two parties.
func (p *pass) settle(a, b party, w witness) {
	if p.done[a].Has(b) {
		return
	}
	if p.done[a] == nil {
		p.done[a] = make(bitset.Set, (len(p.owners)+63)/64)
	}
	p.done[a].Add(b)
	if p.pairs++; p.pairs <= mostFound || p.only != nil {
		p.found[[2]party{a, b}] = w
	}
}

// hit records that packets pass between two edges.
func (p *pass) hit(from, to group, k keys, lid ib.LID) {
	if k.empty() {
		return
	}
	a, b := p.edges[from.edge].party, p.edges[to.edge].party
	w := witness{from: from.edge, to: to.edge, lid: lid}
	w.key, w.raw = p.pick(k)
	switch {
	case b == routers:
		p.relay(0, a, k, w)
		p.through(0, from, k)
	case a == routers:
		p.relay(1, b, k, w)
		p.through(1, to, k)
	default:
		p.ends[0].mark(from, b)
		p.ends[1].mark(to, a)
		p.settle(a, b, w)
	}
}

// pick chooses a packet of a set that is not empty.
func (p *pass) pick(k keys) (key ib.PKey, raw bool) {
	switch {
	case len(k.list) > 0:
		return k.list[0], false
	case k.all:
		return p.fresh, false
	default:
		return 0, true
	}
}

func (p *pass) relay(way int, of party, k keys, w witness) {
	m := p.relayed[way][of]
	if m == nil {
		m = map[ib.PKey]witness{}
		p.relayed[way][of] = m
	}
	list := k.list
	if k.all {
		list = []ib.PKey{wildcard}
	}
	for _, key := range list {
		if _, ok := m[key]; !ok {
			if key != wildcard {
				w.key = key
			}
			m[key] = w
		}
	}
}

// throughRouters joins packets that reach routers with those that routers send on under the same P_Key.
func (p *pass) throughRouters() {
	for a, in := range p.relayed[0] {
		for b, out := range p.relayed[1] {
			if !p.crosses(a, b) || p.settled(a, b) {
				continue
			}
			if w, ok := join(in, out); ok {
				p.settle(a, b, w)
			}
		}
	}
}

// join returns the packet with the lowest P_Key that is in both.
func join(in, out map[ib.PKey]witness) (best witness, ok bool) {
	take := func(a, b witness, key ib.PKey) {
		if !ok || key < best.key {
			a.key, b.key = key, key
			a.on = &b
			best, ok = a, true
		}
	}
	for key, a := range in {
		if b, both := out[key]; both {
			take(a, b, a.key)
		} else if b, both := out[wildcard]; both {
			take(a, b, key)
		}
	}
	if a, all := in[wildcard]; all {
		for key, b := range out {
			if key != wildcard {
				take(a, b, key)
			}
		}
	}
	return best, ok
}
