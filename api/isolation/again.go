package isolation

import (
	"maps"
	"slices"
	"sync"

	"portcullis/api/isolation/outsiders"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// kept is what was worked out of a Proven, for those that ask again, and for one that builds on it. Nothing in it changes once it is there.
type kept struct {
	mu        sync.Mutex
	whole     *reporter // of all tenants, before it concludes
	ghosts    map[ib.Place]*ghost
	ports     []v1.IsolationPortVerdict
	rows      map[proof.Place][]int // of ports that were found
	drift     []v1.Drift
	outsiders []outsiders.Outsider

	hasDrift, hasOutsiders bool
}

// Again is Prove of a reading that differs from the one of p only in P_Key tables, and in which tenants own ports, by the same Intent or by one
// that [Intent.With] made of it. Its cost grows with what changed. It reports false if something else differs, or too much: then
// everything is to be proven.
func (p *Proven) Again(in *Intent, found *reader.Found, when Span) (*Proven, bool) {
	f := p.found
	declared, ok := in.since(p.in)
	if !ok || len(found.Fabric.Devices) != len(f.Fabric.Devices) || !slices.Equal(found.Ends, f.Ends) || !slices.Equal(found.Unknown, f.Unknown) {
		return nil, false
	}
	copied, fabric := *found, *found.Fabric
	fabric.Devices = slices.Clone(fabric.Devices)
	copied.Fabric = &fabric
	for i := range fabric.Devices {
		fabric.Devices[i].Name = f.Fabric.Devices[i].Name
	}
	result, d, ok := p.result.Again(&fabric)
	if !ok {
		return nil, false
	}
	next := &Proven{in: in, found: &copied, when: when, result: result, names: p.names, there: p.there.on(in, &copied)}
	next.carry(p, &d, &declared)
	return next, true
}

// carry takes over what was worked out of an earlier Proven, with what differs in what was read and declared.
func (p *Proven) carry(was *Proven, d *proof.Difference, declared *step) {
	was.kept.mu.Lock()
	defer was.kept.mu.Unlock()
	places, edges := p.touched(slices.Concat(d.Tables, d.Owners, p.holders(declared.bases)), declared.places)
	if was.kept.ghosts != nil {
		p.kept.ghosts = p.ghostsAgain(was.kept.ghosts, places)
	}
	if was.kept.whole != nil {
		p.kept.whole = p.wholeAgain(was, d)
	}
	if was.kept.ports != nil {
		p.kept.ports, p.kept.rows = was.kept.ports, was.kept.rows
		p.portsAgain(d.Ports, places)
	}
	at := func(place ib.Place) bool { return places[place] }
	if was.kept.hasDrift && len(was.kept.drift) <= mostDrift {
		rows := slices.DeleteFunc(slices.Clone(was.kept.drift), func(row v1.Drift) bool { return at(row.Place) })
		p.kept.drift, p.kept.hasDrift = p.driftAt(rows, at), true
	}
	if was.kept.hasOutsiders {
		others := slices.DeleteFunc(slices.Clone(was.kept.outsiders), func(o outsiders.Outsider) bool { return at(o.Place) })
		p.kept.outsiders, p.kept.hasOutsiders = p.outsidersAmong(others, edges), true
	}
}

// holders returns the ports whose P_Key tables have one of some P_Keys.
func (p *Proven) holders(bases []ib.PKey) (out []proof.Place) {
	if len(bases) == 0 {
		return nil
	}
	devices := p.found.Fabric.Devices
	for i := range devices {
		for num := range devices[i].Ports {
			if slices.ContainsFunc(devices[i].Ports[num].PKeys.Value, func(k ib.PKey) bool { return k.Base() != 0 && slices.Contains(bases, k.Base()) }) {
				out = append(out, proof.Place{Device: i, Port: ib.PortNum(num)})
			}
		}
	}
	return out
}

// touched returns the places of ports, which are those of switch ports, and what is at these and at others.
func (p *Proven) touched(tables []proof.Place, others []ib.Place) (places map[ib.Place]bool, edges []proof.Edge) {
	f := p.found.Fabric
	places = map[ib.Place]bool{}
	loose := map[proof.Place]bool{} // ports of adapters whose cable was not seen twice: where they were found is known, though
	add := func(front proof.Place) {
		d := &f.Devices[front.Device]
		if at := (ib.Place{Switch: d.GUID, Port: front.Port}); d.Type == ib.NodeSwitch && !places[at] {
			places[at] = true
			if e, ok := p.result.Edge(proof.Both, front); ok {
				edges = append(edges, e)
			}
		}
	}
	for _, at := range tables {
		port := &f.Devices[at.Device].Ports[at.Port]
		switch {
		case f.Devices[at.Device].Type == ib.NodeSwitch:
			add(at)
		case has(f, port.Cable):
			add(port.Cable)
		default:
			loose[at] = true
		}
	}
	for i := 0; i < len(p.found.Ends) && len(loose) > 0; i++ {
		if e := &p.found.Ends[i]; loose[e.Port] {
			others = append(slices.Clip(others), e.At)
		}
	}
	for _, at := range others {
		if sw, ok := p.there.switches[at.Switch]; ok && at.Port > 0 && int(at.Port) < len(f.Devices[sw].Ports) {
			add(proof.Place{Device: sw, Port: at.Port})
		}
		places[at] = true // also where nothing was found
	}
	return places, edges
}

// ghostly returns the ghosts of all tenants. The caller holds the lock, or is the only one to know of p.
func (p *Proven) ghostly() map[ib.Place]*ghost {
	if p.kept.ghosts == nil {
		p.kept.ghosts = p.ghosts("")
	}
	return p.kept.ghosts
}

// ghostsAgain returns the ghosts where tables differ at some places.
func (p *Proven) ghostsAgain(was map[ib.Place]*ghost, places map[ib.Place]bool) map[ib.Place]*ghost {
	found := maps.Clone(was)
	maps.DeleteFunc(found, func(at ib.Place, _ *ghost) bool { return places[at] })
	for i := range p.found.Ends {
		if e := &p.found.Ends[i]; places[e.At] {
			p.adapterGhost(found, e, "")
		}
	}
	for at := range places {
		if sw, ok := p.there.switches[at.Switch]; ok && at.Port > 0 && int(at.Port) < len(p.found.Fabric.Devices[sw].Ports) {
			p.frontGhost(found, &p.found.Fabric.Devices[sw], at.Port, "")
		}
	}
	return found
}

// portsAgain judges ports again, and names the tenants of those at some places.
func (p *Proven) portsAgain(ports []proof.Place, places map[ib.Place]bool) {
	if len(ports)+len(places) == 0 {
		return
	}
	p.kept.ports = slices.Clone(p.kept.ports)
	for i := range p.kept.ports {
		row := &p.kept.ports[i]
		if !places[row.Place] {
			continue
		}
		if at, ok := p.in.byPort[row.GUID]; ok && at >= 0 {
			row.Tenant = tenantOf(&p.in.ends[at])
		}
	}
	unread := p.unread()
	for _, at := range ports {
		for _, i := range p.kept.rows[at] {
			p.judge(&p.kept.ports[i], at, unread)
		}
	}
}

// ofAll is the report of all tenants. What is kept of it has no disclosures: with some, which are rare, all pairs are counted again.
func (p *Proven) ofAll(membership bool) *v1.Isolation {
	if p.heard != nil && len(p.heard.Findings) > 0 {
		return p.report(v1.IsolationQuery{Membership: membership}, nil)
	}
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	if p.kept.whole == nil {
		r := newReporter(p, "", nil)
		r.ends()
		r.strangers()
		r.ghosts(p.ghostly())
		r.pairs()
		p.kept.whole = r
	}
	r := p.kept.whole.on(p)
	r.administration()
	r.conclude()
	r.bounds(p.when, membership)
	return r.out
}

// on returns a copy of a reporter that may go on, with what differs of another Proven.
func (r *reporter) on(p *Proven) *reporter {
	next, out := *r, *r.out
	next.of, next.in, next.found, next.result, next.out = p, p.in, p.found, p.result, &out
	next.parties = make(map[proof.Owner]*v1.IsolationParty, len(r.parties))
	rows := make([]v1.IsolationParty, 0, len(r.parties))
	for owner, party := range r.parties {
		rows = append(rows, *party)
		next.parties[owner] = &rows[len(rows)-1]
	}
	return &next
}

// wholeAgain counts the pairs again of which something else is proven.
func (p *Proven) wholeAgain(was *Proven, d *proof.Difference) *reporter {
	before := was.kept.whole
	r := before.on(p)
	r.out.Ghosts, r.out.Examples, r.out.ByRoutes, r.byRoute = []v1.GhostMember{}, []v1.IsolationExample{}, nil, 0
	r.ghosts(p.ghostly())
	r.apart = r.byRoutes()
	sold := p.in.sold(was.in)
	switch {
	case len(sold) == 0:
	case r.moved(before, sold):
		sold = nil // nothing but what differs is counted again
	default:
		r.sold(before, sold)
	}
	differ := map[pair]bool{}
	for _, x := range d.Pairs {
		differ[pairOf(x.From, x.To)] = true
	}
	for _, m := range []map[pair]bool{before.apart, r.apart} {
		for x := range m {
			differ[x] = differ[x] || before.apart[x] != r.apart[x]
		}
	}
	for x, really := range differ {
		if !really || sold[x[0]] || sold[x[1]] || !r.counts(x[0], x[1]) {
			continue
		}
		v := was.result.Pair(x[0], x[1])
		r.count(x[0], x[1], before.status(x[0], x[1], v), v, -1)
		v = p.result.Pair(x[0], x[1])
		r.count(x[0], x[1], r.status(x[0], x[1], v), v, 1)
	}
	r.open()
	return r
}

// moved counts the ports again that are of another party. It reports false if that is not enough: a port was not found, or a party is new,
// or gone.
func (r *reporter) moved(before *reporter, sold map[proof.Owner]bool) bool {
	if r.missing > 0 || len(r.lacks) > 0 {
		return false
	}
	for o := range sold {
		_, was := before.result.Party(o)
		_, is := r.result.Party(o)
		if was != is || !is || r.parties[o] == nil {
			return false
		}
	}
	for i := range r.in.ends {
		from, to := before.in.ends[i].owner, r.in.ends[i].owner
		if from == to {
			continue
		}
		a, b := r.parties[from], r.parties[to]
		a.Declared, a.Found = a.Declared-1, a.Found-1
		b.Declared, b.Found = b.Declared+1, b.Found+1
	}
	return true
}

// sold counts the ports of all parties again, and the pairs of those that have, or had, a port that is of another one now.
func (r *reporter) sold(before *reporter, sold map[proof.Owner]bool) {
	before.ofSold(r, sold, -1)
	for _, party := range r.parties {
		party.Declared, party.Found = 0, 0
	}
	r.missing, r.undeclared, r.out.Missing, r.out.Undeclared = 0, 0, []v1.MissingPort{}, []v1.UndeclaredPort{}
	r.ends()
	r.strangers()
	is := map[proof.Owner]bool{}
	for _, o := range r.result.Parties() {
		is[o] = true
		r.party(o)
	}
	maps.DeleteFunc(r.parties, func(o proof.Owner, party *v1.IsolationParty) bool { return !is[o] && party.Declared == 0 })
	r.ofSold(r, sold, 1)
}

// ofSold adds n to the counts of another reporter for each pair with one of some parties, by what is known of it here.
func (r *reporter) ofSold(to *reporter, sold map[proof.Owner]bool, n int) {
	for a := range sold {
		one, ok := r.parties[a]
		if !ok {
			continue
		}
		x, there := r.result.Party(a)
		counted := to.parties[a]
		for b, other := range r.parties {
			if !one.Tenant && !other.Tenant || a == b || !r.concerns(a, b) || sold[b] && compareOwners(a, b) > 0 {
				continue
			}
			v := proof.Verdict{proof.Isolated, proof.Isolated, proof.Isolated} // of a party that has no port
			if y, also := r.result.Party(b); there && also {
				v = r.result.Between(x, y)
			}
			to.countOf(counted, to.parties[b], r.status(a, b, v), v, n)
		}
	}
}

// open lists the pairs that only forwarding tables keep apart, and shows packets of those that are not isolated.
func (r *reporter) open() {
	for _, p := range slices.SortedFunc(maps.Keys(r.apart), comparePairs) {
		if r.counts(p[0], p[1]) && r.isRouted(p) && r.result.Pair(p[0], p[1])[proof.Both] == proof.Isolated {
			r.routed(p)
		}
	}
	all := map[pair]bool{}
	for _, p := range r.result.Open(proof.Both) {
		all[pairOf(p.From, p.To)] = true
	}
	var leaks, unknown []pair
	for _, p := range slices.SortedFunc(maps.Keys(all), comparePairs) {
		switch {
		case !r.counts(p[0], p[1]):
		case r.result.Pair(p[0], p[1])[proof.Both] == proof.Leaks:
			leaks = append(leaks, p)
		default:
			unknown = append(unknown, p)
		}
	}
	r.examples(append(leaks, unknown...))
}
