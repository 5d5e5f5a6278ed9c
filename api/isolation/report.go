package isolation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

const (
	// maxExamples bounds the packets that a report shows.
	maxExamples = 20
	// maxRows bounds each other list of a report.
	maxRows = 100
)

// Span is when a fabric was read.
type Span struct {
	Begun time.Time // of the reading of everything
	Again time.Time // of the newest reading that built on it; zero: none
	Ended time.Time
}

// Newest returns when the newest reading began.
func (s *Span) Newest() time.Time {
	if s.Again.IsZero() {
		return s.Begun
	}
	return s.Again
}

// Proven is what follows from one reading. Its methods may run at the same time.
type Proven struct {
	in     *Intent
	found  *reader.Found
	when   Span
	result *proof.Result
	names  map[string]string // of devices: as the reader calls them, and as people do
	there  *sightings
	kept   kept
	heard  *Heard // nil: nothing
}

// Prove proves what it can of what was read by the options of an Intent. It does not change what was read.
func Prove(in *Intent, found *reader.Found, when Span) (*Proven, error) {
	p := &Proven{in: in, when: when, names: map[string]string{}}
	copied, fabric := *found, *found.Fabric
	fabric.Devices = slices.Clone(fabric.Devices)
	copied.Fabric = &fabric
	p.found = &copied
	p.rename()
	var err error
	if p.result, err = proof.Prove(&fabric); err != nil {
		return nil, fmt.Errorf("prove isolation: %w", err)
	}
	p.there = newSightings(p.in, p.found)
	return p, nil
}

// Report says what follows for a question, by whose options was read.
func (p *Proven) Report(q v1.IsolationQuery) *v1.Isolation {
	if q.Tenant == "" {
		return p.ofAll(q.Membership)
	}
	return p.report(q, nil)
}

// report also adds to a Detail what it found of each pair and port; nil: it does not.
func (p *Proven) report(q v1.IsolationQuery, detail *Detail) *v1.Isolation {
	r := newReporter(p, q.Tenant, detail)
	r.ends()
	r.strangers()
	r.ghosts(p.ghosts(q.Tenant))
	r.administration()
	r.pairs()
	r.conclude()
	r.bounds(p.when, q.Membership)
	return r.out
}

func newReporter(p *Proven, tenant string, detail *Detail) *reporter {
	r := &reporter{of: p, in: p.in, found: p.found, result: p.result, tenant: tenant, parties: map[proof.Owner]*v1.IsolationParty{}, detail: detail}
	r.out = &v1.Isolation{Tenant: tenant, Examples: []v1.IsolationExample{}, Missing: []v1.MissingPort{}, Undeclared: []v1.UndeclaredPort{}, Ghosts: []v1.GhostMember{}, Unread: []v1.UnreadValue{}}
	return r
}

// reporter makes one report.
type reporter struct {
	of      *Proven
	in      *Intent
	found   *reader.Found
	result  *proof.Result
	tenant  string
	out     *v1.Isolation
	parties map[proof.Owner]*v1.IsolationParty
	lacks   map[proof.Owner]bool // parties with a port that was not found
	apart   map[pair]bool        // parties that only forwarding tables keep apart
	detail  *Detail              // nil: not wanted

	missing, undeclared, ghostly, byRoute, disclosed int
}

// rename calls devices as people do.
func (p *Proven) rename() {
	f := p.found.Fabric
	hosts := map[int]string{}
	for i := range p.found.Ends {
		e := &p.found.Ends[i]
		if at, ok := p.in.byPlace[e.At]; ok && at >= 0 && f.Devices[e.Port.Device].Ports[e.Port.Port].Owner.Kind != proof.Undeclared {
			hosts[e.Port.Device] = p.in.ends[at].host
		}
	}
	for i := range f.Devices {
		d := &f.Devices[i]
		was := d.Name
		if host := hosts[i]; host != "" {
			d.Name = fmt.Sprintf("%s (%s)", host, was)
		} else {
			d.Name = p.in.nodeName(d)
		}
		p.names[was] = d.Name
	}
}

// ends finds the declared ports among those that were read.
func (r *reporter) ends() {
	there := r.of.there
	r.lacks = map[proof.Owner]bool{}
	for i := range r.in.ends {
		e := &r.in.ends[i]
		is := there.ends[i] != proof.Place{}
		r.port(e, is)
		if e.owner.Kind == proof.Tenant {
			p := r.party(e.owner)
			p.Declared++
			if is {
				p.Found++
			}
		}
		if is {
			continue
		}
		// Of other hosts nothing is claimed. Wherever they are, they are undeclared devices there, which count.
		r.lacks[e.owner] = e.owner.Kind == proof.Tenant && e.owner.Name != NoTenant
		r.missing++
		if len(r.out.Missing) < maxRows {
			r.out.Missing = append(r.out.Missing, v1.MissingPort{Host: e.host, Party: e.owner.Name, GUID: e.port, Place: e.place, Cause: there.why(e)})
		}
	}
}

func (r *reporter) owner(e *reader.End) proof.Owner {
	return r.found.Fabric.Devices[e.Port.Device].Ports[e.Port.Port].Owner
}

// strangers lists the ports that are not declared where they are.
func (r *reporter) strangers() {
	for i := range r.found.Ends {
		e := &r.found.Ends[i]
		if r.owner(e).Kind != proof.Undeclared {
			continue
		}
		r.undeclared++
		why := "no such port is declared"
		if len(r.out.Undeclared) < maxRows {
			if at, ok := r.in.declaredAt(e.GUID); ok {
				why = fmt.Sprintf("it is declared at %v", at)
			}
			r.out.Undeclared = append(r.out.Undeclared, v1.UndeclaredPort{GUID: e.GUID, Place: e.At, Cause: why})
		}
	}
}

// party returns the row of a party.
func (r *reporter) party(o proof.Owner) *v1.IsolationParty {
	p, ok := r.parties[o]
	if !ok {
		p = &v1.IsolationParty{Name: nameOf(o), Tenant: o.Kind == proof.Tenant && o.Name != NoTenant}
		r.parties[o] = p
	}
	return p
}

// nameOf returns the name of a party.
func nameOf(o proof.Owner) string {
	switch o.Kind {
	case proof.Undeclared:
		return "(undeclared devices)"
	case proof.Spare:
		return "(spare ports)"
	default:
		return o.Name
	}
}

// pair is two parties, the lesser name first.
type pair [2]proof.Owner

func pairOf(a, b proof.Owner) pair {
	if compareOwners(a, b) > 0 {
		a, b = b, a
	}
	return pair{a, b}
}

// pairs counts the pairs by verdict, and shows packets.
func (r *reporter) pairs() {
	for _, o := range r.result.Parties() {
		r.party(o)
	}
	owners := slices.SortedFunc(maps.Keys(r.parties), compareOwners)
	parties, concern := r.proofParties(owners), r.of.concern()
	var leaks, unknown []pair
	r.apart = r.byRoutes()
	for i, a := range owners {
		for j, b := range owners[i+1:] {
			if !r.counts(a, b) {
				continue
			}
			v := proof.Verdict{proof.Isolated, proof.Isolated, proof.Isolated} // of a party that has no port
			if x, y := parties[i], parties[i+1+j]; x != nil && y != nil {
				v = r.result.Between(*x, *y)
			}
			status := r.status(a, b, v)
			switch p := pairOf(a, b); {
			case v[proof.Both] == proof.Leaks:
				leaks = append(leaks, p)
			case v[proof.Both] == proof.Unproven:
				unknown = append(unknown, p)
			case r.isRouted(p):
				r.routed(p)
			case concern.has(a, b):
				status = proof.Unproven
				r.disclosed++
			}
			r.count(a, b, status, v, 1)
			r.pair(a, b, status, v)
		}
	}
	r.examples(append(leaks, unknown...))
}

// status returns what follows of two parties of what is proven of them.
func (r *reporter) status(a, b proof.Owner, v proof.Verdict) proof.Status {
	if v[proof.Both] == proof.Isolated && (r.lacks[a] || r.lacks[b] || r.apart[pairOf(a, b)]) {
		return proof.Unproven
	}
	return v[proof.Both]
}

// isRouted reports whether two parties between which no packet passes are not proven to be isolated for nothing but their routes.
func (r *reporter) isRouted(p pair) bool { return r.apart[p] && !r.lacks[p[0]] && !r.lacks[p[1]] }

func compareOwners(a, b proof.Owner) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func comparePairs(a, b pair) int { return cmp.Or(compareOwners(a[0], b[0]), compareOwners(a[1], b[1])) }

// proofParties returns the parties of owners as the proof knows them, nil for those that have no port.
func (r *reporter) proofParties(owners []proof.Owner) []*proof.Party {
	out := make([]*proof.Party, len(owners))
	for i, o := range owners {
		if p, ok := r.result.Party(o); ok {
			out[i] = &p
		}
	}
	return out
}

// byRoutes returns the pairs that only forwarding tables keep apart. These change by themselves with each link that fails or returns, so
// they prove nothing.
func (r *reporter) byRoutes() map[pair]bool {
	out := map[pair]bool{}
	for _, p := range r.result.ByRoutes(proof.Both) {
		out[pairOf(p.From, p.To)] = true
	}
	return out
}

// routed lists a pair that only forwarding tables keep apart.
func (r *reporter) routed(p pair) {
	r.byRoute++
	if len(r.out.ByRoutes) < maxRows {
		r.out.ByRoutes = append(r.out.ByRoutes, v1.IsolationByRoutes{A: nameOf(p[0]), B: nameOf(p[1])})
	}
}

// counts reports whether two parties must be isolated from each other, and the report is about them.
func (r *reporter) counts(a, b proof.Owner) bool {
	tenants := r.parties[a].Tenant || r.parties[b].Tenant
	return tenants && r.concerns(a, b)
}

// concerns reports whether a pair is of the tenant that is reported on, if it is one alone.
func (r *reporter) concerns(a, b proof.Owner) bool {
	return r.tenant == "" || a == r.asked() || b == r.asked()
}

func (r *reporter) asked() proof.Owner { return proof.Owner{Kind: proof.Tenant, Name: r.tenant} }

// count adds n to the counts that a pair belongs to.
func (r *reporter) count(a, b proof.Owner, status proof.Status, v proof.Verdict, n int) {
	r.countOf(r.parties[a], r.parties[b], status, v, n)
}

// countOf is count of two parties that were looked up.
func (r *reporter) countOf(a, b *v1.IsolationParty, status proof.Status, v proof.Verdict, n int) {
	for _, to := range [...]*v1.IsolationPairs{&r.out.Pairs, &a.Pairs, &b.Pairs} {
		switch status {
		case proof.Isolated:
			to.Isolated += n
		case proof.Leaks:
			to.Leaks += n
		default:
			to.Unknown += n
		}
	}
	if status != proof.Isolated {
		return
	}
	switch v.Depth() {
	case proof.HeldByEitherSide:
		r.out.Held.Each += n
	case proof.HeldBySwitches:
		r.out.Held.Switches += n
	case proof.HeldByAdapters:
		r.out.Held.Adapters += n
	default:
		r.out.Held.Together += n
	}
}

func (r *reporter) examples(list []pair) {
	for _, p := range list[:min(len(list), maxExamples)] {
		for _, way := range []proof.Pair{{From: p[0], To: p[1]}, {From: p[1], To: p[0]}} {
			c, err := r.result.Explain(proof.Both, way)
			if err != nil {
				continue // the packet passes the other way
			}
			r.out.Examples = append(r.out.Examples, example(&c))
			break
		}
	}
}

func example(c *proof.CounterExample) v1.IsolationExample {
	e := v1.IsolationExample{
		From: nameOf(c.From), To: nameOf(c.To), Certain: c.Certain, PKey: c.Key, Raw: c.Raw, DLID: c.DLID, Cure: c.Change.String(),
		Hops: []v1.IsolationHop{},
	}
	for _, h := range c.Hops {
		e.Hops = append(e.Hops, v1.IsolationHop{Device: h.Device, In: h.In, Out: h.Out, Passed: h.Passed})
	}
	return e
}

// assumptions are what every verdict takes for granted.
var assumptions = []string{
	"switches check P_Keys as their PortInfo says, and adapters of tenants send and receive only P_Keys of their tables",
	"the adversary is root on every host and chooses P_Key, DLID and SLID of its packets",
	"a switch that claims to enforce does; tables are what devices apply",
	"declared hosts, switches and cables are as declared; the own port is the one of this service",
	"virtual ports were not read; SLtoVL tables, which can only have packets dropped, were read in part, and no verdict counts on them",
}

func (r *reporter) bounds(when Span, membership bool) {
	b := &r.out.Bounds
	*b = v1.IsolationBounds{
		Begun: when.Begun, Ended: when.Ended, Requests: r.found.Sent, Devices: len(r.found.Fabric.Devices), Ends: len(r.found.Ends),
		Missing: r.missing, Undeclared: r.undeclared, Ghosts: r.ghostly, Unread: len(r.found.Unknown), Strays: r.found.Strays, Assumptions: slices.Clone(assumptions),
	}
	if !when.Again.IsZero() {
		b.Again = &when.Again
		b.Assumptions = append(b.Assumptions, "since the reading of everything only that changed which the Subnet Manager saw change")
	}
	b.Assumptions = append(b.Assumptions, heardOf[r.out.Administration.Verdict])
	if membership {
		b.Assumptions = append(b.Assumptions, "switches refuse inbound packets that claim full membership where the port is a limited member, as was asked to assume")
	}
	for i := range r.found.Fabric.Devices {
		if r.found.Fabric.Devices[i].Type == ib.NodeSwitch {
			b.Switches++
		}
	}
	r.unread(true)
	r.unread(false)
}

// where names the device of a value as people do.
func (p *Proven) where(said string) string {
	device, port, _ := strings.Cut(said, " port ")
	if name := p.names[device]; name != "" {
		return strings.TrimSuffix(name+" port "+port, " port ")
	}
	return said
}
