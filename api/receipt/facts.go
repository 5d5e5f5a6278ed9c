package receipt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/attest/result"
)

// Facts are what a receipt is made of. Each has its time and its bound.
type Facts struct {
	Issued time.Time
	MaxAge time.Duration // of the whole statement

	// Report, Pairs, Ports and Digest are of one run of package isolation.
	Report        *v1.Isolation
	Pairs         []v1.IsolationPair
	Ports         []v1.IsolationPort
	Digest        string
	ReadingMaxAge time.Duration

	Members  Dated // when the records were as Ports has them
	Topology Topology
	Keys     Keys
	// Attestations are by host. A host with a member and without one is an error: the caller says that there is none.
	Attestations map[string]Judged
}

// Judged is how a host was judged, and when.
type Judged struct {
	Dated
	Status   result.Tier
	Evidence time.Time // when the evidence that counts was accepted; zero: none counts
	Adapters []Adapter
}

// New returns the predicate of facts. It refuses facts that contradict each other, and a fact without a time or a bound.
func New(f Facts) (*Predicate, error) {
	if f.Report == nil {
		return nil, errors.New("make a receipt: there is no report about isolation: prove it first")
	}
	b := &f.Report.Bounds
	p := &Predicate{
		Issued: From(f.Issued, f.MaxAge), Tenant: f.Report.Tenant, Verdict: f.Report.Verdict,
		Reading: Reading{
			Dated: From(b.Begun, f.ReadingMaxAge), Ended: b.Ended.UTC().Truncate(time.Second), Digest: f.Digest,
			Counts: &Counts{
				Requests: b.Requests, Devices: b.Devices, Switches: b.Switches, Ends: b.Ends, Missing: b.Missing, Undeclared: b.Undeclared,
				Unread: b.Unread, Strays: b.Strays,
			},
			Assumptions: append([]string{}, b.Assumptions...),
		},
		Parties: []Party{}, Pairs: append([]v1.IsolationPair{}, f.Pairs...),
		Members:  Members{f.Members, append([]v1.IsolationPort{}, f.Ports...)},
		Topology: f.Topology, Keys: Keys{f.Keys.Dated, append([]Epoch{}, f.Keys.Epochs...)}, Attestations: []Attestation{},
	}
	for i := range f.Report.Parties {
		r := &f.Report.Parties[i]
		p.Parties = append(p.Parties, Party{r.Name, r.Tenant, r.Declared, r.Found})
	}
	slices.SortFunc(p.Parties, func(a, b Party) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Pairs, comparePairs)
	slices.SortFunc(p.Members.Ports, comparePorts)
	slices.SortFunc(p.Keys.Epochs, func(a, b Epoch) int { return strings.Compare(a.Kind, b.Kind) })
	for _, host := range p.hosts() {
		a, ok := f.Attestations[host]
		if !ok {
			return nil, fmt.Errorf("make a receipt: no attestation result of host %q is given: say when there was none", host)
		}
		adapters := append([]Adapter{}, a.Adapters...)
		slices.SortFunc(adapters, func(a, b Adapter) int { return cmp.Compare(a.GUID, b.GUID) })
		row := Attestation{Dated: a.Dated, Host: host, Status: a.Status, Adapters: adapters}
		if !a.Evidence.IsZero() {
			row.Evidence = a.Evidence.UTC().Truncate(time.Second)
		}
		p.Attestations = append(p.Attestations, row)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("make a receipt: %w", err)
	}
	return p, nil
}

// hosts returns the hosts that have a member, sorted.
func (p *Predicate) hosts() []string {
	var out []string
	for i := range p.Members.Ports {
		out = append(out, p.Members.Ports[i].Host)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func comparePairs(a, b v1.IsolationPair) int {
	return cmp.Or(strings.Compare(a.A, b.A), strings.Compare(a.B, b.B))
}

func comparePorts(a, b v1.IsolationPort) int {
	return cmp.Or(strings.Compare(a.Party, b.Party), strings.Compare(a.Host, b.Host), cmp.Compare(a.GUID, b.GUID),
		cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
}
