package proof

import (
	"encoding/binary"
	"slices"

	"portcullis/fabricsm/ib"
)

// Assumption says which devices are counted on.
type Assumption uint8

// Assumptions. Adapters behind undeclared and spare ports are never counted on; those of declared routers always are.
const (
	Both     Assumption = iota // switches check as they are set, and adapters honour their P_Key tables in both directions
	Switches                   // only switches: adapters send and receive everything
	Adapters                   // only adapters: switches check nothing. Raw packets are left out, which adapters cannot refuse
	assumptions
)

var assumptionNames = [...]string{"switches and adapters", "switches alone", "adapters alone"}

// String names the devices that are counted on.
func (a Assumption) String() string {
	if int(a) >= len(assumptionNames) {
		return "unknown assumption"
	}
	return assumptionNames[a]
}

// pass looks for packets that cross between parties under one assumption.
type pass struct {
	*wiring
	assume Assumption

	send, recv []class
	sendOf     []int32 // class of an edge; -1: none
	recvOf     []int32
	open       []bits // by sending class: the receiving classes that have a packet in common and may not
	anyOpen    bool
	transit    map[Place][2]keys // of ports between switches that refuse something: inbound, outbound

	found   map[[2]party]witness
	done    []bits                           // by sending party: the receiving ones that are in found
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

// wildcard stands for every P_Key where packets to and from routers are recorded.
const wildcard ib.PKey = 0

func newPass(w *wiring, a Assumption) *pass {
	p := &pass{
		wiring: w, assume: a, found: map[[2]party]witness{}, transit: map[Place][2]keys{}, done: make([]bits, len(w.owners)),
		via: [2]map[group]keys{{}, {}}, met: map[Place]party{},
	}
	p.relayed = [2]map[party]map[ib.PKey]witness{{}, {}}
	return p
}

// run finds a packet for each two parties between which one passes.
func (p *pass) run() {
	defer p.finish()
	p.shared()
	p.classify()
	p.match()
	if !p.anyOpen {
		return // whatever the routes are
	}
	p.ends = [2]marks{newMarks(len(p.edges)), newMarks(len(p.edges))}
	if p.upper && p.routesUnread() {
		p.anyRoute()
	} else {
		p.findTransit()
		p.unicast()
		p.multicast()
	}
	p.throughRouters()
}

func (p *pass) routesUnread() bool {
	return slices.ContainsFunc(p.f.Devices, func(d Device) bool {
		return d.trusted() && (!d.LFT.known() || !d.MFT.known() || !d.MulticastDefaults.known())
	})
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
	p.open = make([]bits, len(p.send))
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

func (p *pass) mark(i int, receivers []int32) {
	for _, j := range receivers {
		if !p.crosses(p.send[i].party, p.recv[j].party) {
			continue
		}
		if p.open[i] == nil {
			p.open[i] = make(bits, (len(p.recv)+63)/64)
		}
		p.open[i].set(j)
		p.anyOpen = true
	}
}

// anyRoute takes it that a packet reaches every port, where a forwarding table was not read.
func (p *pass) anyRoute() {
	for i := range p.send {
		for j := range p.recv {
			if p.open[i].has(int32(j)) {
				p.hit(group{p.send[i].edges[0], everywhere}, group{p.recv[j].edges[0], everywhere}, p.send[i].keys.and(p.recv[j].keys), 0)
			}
		}
	}
}

// settled reports whether nothing new can be found between two parties. Packets of routers are all recorded.
func (p *pass) settled(a, b party) bool {
	return a != routers && b != routers && p.done[a].has(b)
}

// settle records the first packet between two parties.
func (p *pass) settle(a, b party, w witness) {
	if p.done[a].has(b) {
		return
	}
	if p.done[a] == nil {
		p.done[a] = make(bits, (len(p.owners)+63)/64)
	}
	p.done[a].set(b)
	p.found[[2]party{a, b}] = w
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
