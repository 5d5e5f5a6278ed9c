package isolation

import (
	"cmp"
	"slices"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

// Detail is what a report says, and what it counts.
type Detail struct {
	Report *v1.Isolation
	Pairs  []v1.IsolationPair // all that count, by names
	// Ports are all declared ports of the tenants that the report is about, by party, host and GUID.
	Ports  []v1.IsolationPort
	Digest Digest
}

// Examine is as [Proven.Report], and returns each verdict.
func (p *Proven) Examine(q v1.IsolationQuery) *Detail {
	d := &Detail{Pairs: []v1.IsolationPair{}, Ports: []v1.IsolationPort{}, Digest: DigestOf(p.found)}
	d.Report = p.report(q, d)
	slices.SortFunc(d.Pairs, func(a, b v1.IsolationPair) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	slices.SortFunc(d.Ports, func(a, b v1.IsolationPort) int {
		return cmp.Or(cmp.Compare(a.Party, b.Party), cmp.Compare(a.Host, b.Host), cmp.Compare(a.GUID, b.GUID),
			cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
	})
	return d
}

// pair adds the verdict about two parties.
func (r *reporter) pair(a, b proof.Owner, status proof.Status, v proof.Verdict) {
	if r.detail == nil {
		return
	}
	p := v1.IsolationPair{A: nameOf(a), B: nameOf(b), Verdict: v1.IsolationUnknown}
	if p.A > p.B {
		p.A, p.B = p.B, p.A
	}
	switch status {
	case proof.Isolated:
		p.Verdict, p.Held = v1.Isolated, heldBy(v.Depth())
	case proof.Leaks:
		p.Verdict = v1.Leaks
	case proof.Unproven:
	}
	r.detail.Pairs = append(r.detail.Pairs, p)
}

func heldBy(d proof.Depth) string {
	switch d {
	case proof.HeldByEitherSide:
		return v1.HeldByEach
	case proof.HeldBySwitches:
		return v1.HeldBySwitches
	case proof.HeldByAdapters:
		return v1.HeldByAdapters
	default:
		return v1.HeldTogether
	}
}

// port adds a declared port of a tenant.
func (r *reporter) port(e *end, found bool) {
	if r.detail == nil || e.owner.Kind != proof.Tenant || e.owner.Name == NoTenant || r.tenant != "" && e.owner.Name != r.tenant {
		return
	}
	p := v1.IsolationPort{Party: e.owner.Name, Host: e.host, GUID: e.port, Place: e.place, Found: found}
	p.PKeys = append([]ib.PKey{}, r.in.granted[seat{e.port, e.place}]...)
	r.detail.Ports = append(r.detail.Ports, p)
}
