package receipt

import (
	"errors"
	"fmt"
	"slices"

	v1 "portcullis/api/v1"
)

// Others is the party that stands for all others in a receipt that shows nothing of them. No tenant can have the name.
const Others = "(others)"

// Confine has the predicate of one tenant show nothing of others: they are one party, and their names and numbers are left out. The
// verdict of the only pair is that of the worst pair, and what holds it apart is what holds each of the pairs apart.
func (p *Predicate) Confine() error {
	if p.Tenant == "" {
		return errors.New("confine a receipt: it is about all tenants: want one about a single tenant")
	}
	own := Party{Name: p.Tenant, Tenant: true}
	others := false
	for _, q := range p.Parties {
		if q.Name == p.Tenant {
			own = q
		} else {
			others = true
		}
	}
	p.Reading.Counts, p.Parties = nil, []Party{own}
	if others {
		p.Parties = []Party{{Name: Others}, own} // "(" is before every letter and digit
		p.Pairs = []v1.IsolationPair{worst(p.Pairs)}
		p.Pairs[0].A, p.Pairs[0].B = Others, own.Name
	}
	return p.check()
}

// ErrNoHost says that a predicate has no port of a host.
var ErrNoHost = errors.New("no port of this host is declared for a tenant that the receipt is about")

// ErrTenants says that a host has ports of several tenants. A receipt about a host is about one.
var ErrTenants = errors.New("ports of this host are declared for different tenants")

// Narrow has the predicate be about one host: of the pairs, those of the host's tenant, and of members and attestation results, those
// of the host. The error is ErrNoHost if it has none, and
// ErrTenants if they are of several tenants.
func (p *Predicate) Narrow(host string) error {
	p.Members.Ports = slices.DeleteFunc(p.Members.Ports, func(m v1.IsolationPort) bool { return m.Host != host })
	if len(p.Members.Ports) == 0 || host == "" {
		return fmt.Errorf("host %q: %w", host, ErrNoHost)
	}
	p.Host, p.Tenant = host, p.Members.Ports[0].Party
	if other := slices.IndexFunc(p.Members.Ports, func(m v1.IsolationPort) bool { return m.Party != p.Tenant }); other >= 0 {
		return fmt.Errorf("host %q: %w: %s and %s", host, ErrTenants, p.Tenant, p.Members.Ports[other].Party)
	}
	p.Pairs = slices.DeleteFunc(p.Pairs, func(pair v1.IsolationPair) bool { return pair.A != p.Tenant && pair.B != p.Tenant })
	p.Attestations = slices.DeleteFunc(p.Attestations, func(a Attestation) bool { return a.Host != host })
	p.Verdict = p.derive()
	return p.check()
}

// worst returns what is true of all pairs together.
func worst(pairs []v1.IsolationPair) v1.IsolationPair {
	out := v1.IsolationPair{Verdict: v1.Isolated, Held: v1.HeldByEach}
	for i := range pairs {
		switch pair := &pairs[i]; {
		case pair.Verdict == v1.Leaks || out.Verdict == v1.Leaks:
			out.Verdict = v1.Leaks
		case pair.Verdict != v1.Isolated:
			out.Verdict = v1.IsolationUnknown
		case pair.Held == out.Held || pair.Held == v1.HeldByEach:
		case out.Held == v1.HeldByEach:
			out.Held = pair.Held
		default: // one pair needs the switches, and the other one the adapters
			out.Held = v1.HeldTogether
		}
	}
	if out.Verdict != v1.Isolated {
		out.Held = ""
	}
	return out
}
