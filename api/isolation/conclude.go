package isolation

import (
	"cmp"
	"slices"
	"strings"

	v1 "portcullis/api/v1"
)

// conclude decides the verdicts.
func (r *reporter) conclude() {
	tenants, listed := false, make([]*v1.IsolationParty, 0, len(r.parties))
	for owner, p := range r.parties {
		p.Verdict = verdictOf(&p.Pairs, r.lacks[owner])
		tenants = tenants || p.Tenant && (r.tenant == "" || owner == r.asked())
		if r.tenant == "" || owner == r.asked() || p.Pairs != (v1.IsolationPairs{}) {
			listed = append(listed, p)
		}
	}
	slices.SortFunc(listed, func(a, b *v1.IsolationParty) int {
		return cmp.Or(cmp.Compare(rank(a.Verdict), rank(b.Verdict)), strings.Compare(a.Name, b.Name))
	})
	r.out.Parties = make([]v1.IsolationParty, len(listed))
	for i, p := range listed {
		r.out.Parties[i] = *p
	}
	missing := false
	for owner, lacks := range r.lacks {
		missing = missing || lacks && (r.tenant == "" || owner == r.asked())
	}
	r.out.Verdict = verdictOf(&r.out.Pairs, missing)
	switch {
	case !tenants:
		r.out.Verdict, r.out.Reason = v1.IsolationUnknown, "no host belongs to a tenant, so there is nothing to prove"
	case r.out.Verdict != v1.IsolationUnknown:
	case missing:
		r.out.Reason = "ports of tenants were not found where they are declared"
	case r.byRoute > 0:
		r.out.Reason = "only forwarding tables keep parties apart, and the next change of routes may connect them"
	case r.disclosed > 0:
		r.out.Reason = "subnet administration disclosed one party to another one, or showed a key"
	default:
		r.out.Reason = "values were not read on which a packet depends"
	}
}

// rank returns the place of a verdict in the order in which parties are listed.
func rank(verdict string) int {
	return slices.Index([]string{v1.Leaks, v1.IsolationUnknown, v1.Isolated}, verdict)
}

// verdictOf returns the worst verdict.
func verdictOf(p *v1.IsolationPairs, missing bool) string {
	switch {
	case p.Leaks > 0:
		return v1.Leaks
	case p.Unknown > 0 || missing:
		return v1.IsolationUnknown
	default:
		return v1.Isolated
	}
}
