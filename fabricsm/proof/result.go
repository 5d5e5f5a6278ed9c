package proof

import (
	"cmp"
	"fmt"
	"slices"
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

// Status is what is proven of two parties.
type Status uint8

// Statuses.
const (
	Unproven Status = iota // a packet may pass, depending on what was not read
	Leaks                  // a packet passes
	Isolated               // no packet passes, whatever was not read
)

// Depth says what holds two parties apart.
type Depth uint8

// Depths.
const (
	HeldByNothing    Depth = iota // they are not proven to be isolated
	HeldTogether                  // only switches and adapters together hold
	HeldByAdapters                // adapters alone hold, switches alone do not
	HeldBySwitches                // switches alone hold, adapters alone do not
	HeldByEitherSide              // each alone holds
)

// Verdict is what is proven of two parties under each [Assumption]. The worse direction counts.
type Verdict [assumptions]Status

// Depth returns what holds the parties apart.
func (v Verdict) Depth() Depth {
	switches, adapters := v[Switches] == Isolated, v[Adapters] == Isolated
	switch {
	case v[Both] != Isolated:
		return HeldByNothing
	case switches && adapters:
		return HeldByEitherSide
	case switches:
		return HeldBySwitches
	case adapters:
		return HeldByAdapters
	default:
		return HeldTogether
	}
}

// Result is the proof of a fabric. It refers to the [Fabric], which must not change.
type Result struct {
	base         *wiring
	lower, upper [assumptions]*pass // without unread values they are the same
}

// Prove proves what it can of a fabric. An error means that the input is malformed.
func Prove(f *Fabric) (*Result, error) {
	if err := f.validate(); err != nil {
		return nil, fmt.Errorf("prove isolation: %w", err)
	}
	r := &Result{base: newWiring(f, true)}
	defer func() { r.base.tables.full = true }()
	for a := range assumptions {
		r.upper[a] = newPass(r.base, a)
		r.upper[a].run()
		r.lower[a] = r.upper[a]
	}
	if len(r.base.unread) == 0 {
		return r, nil
	}
	below := newWiring(f, false)
	below.tables = r.base.tables
	for a := range assumptions {
		r.lower[a] = newPass(below, a)
		if r.upper[a].pairs > 0 {
			r.lower[a].run()
		}
	}
	return r, nil
}

// Unread lists what was not read and may matter, in words.
func (r *Result) Unread() []string { return slices.Clone(r.base.unread) }

// Parties returns the owners that the statement covers, sorted: tenants, and Undeclared and Spare if such ports carry packets.
func (r *Result) Parties() []Owner {
	var out []Owner
	for i, o := range r.base.owners {
		if r.base.uses[i] > 0 {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, compareOwners)
	return out
}

// Party is an owner that has a port here, for questions about many pairs.
type Party struct{ upper, lower party }

// Party returns the party of an owner. It reports false for an owner that has no port here.
func (r *Result) Party(o Owner) (Party, bool) {
	p := Party{r.base.known(o), r.lower[Both].known(o)}
	return p, p.upper != noParty
}

// Pair returns what is proven of two owners. Of an owner that has no port here, nothing is proven.
func (r *Result) Pair(a, b Owner) Verdict {
	x, known := r.Party(a)
	y, too := r.Party(b)
	if !known || !too {
		return Verdict{}
	}
	return r.Between(x, y)
}

// Between returns what is proven of two parties of this Result.
func (r *Result) Between(a, b Party) Verdict {
	var v Verdict
	for assume := range assumptions {
		there, back := r.status(assume, a, b), r.status(assume, b, a)
		switch {
		case there == Leaks || back == Leaks:
			v[assume] = Leaks
		case there == Isolated && back == Isolated:
			v[assume] = Isolated
		}
	}
	return v
}

func (r *Result) status(assume Assumption, a, b Party) Status {
	switch {
	case r.lower[assume].crossed(a.lower, b.lower):
		return Leaks
	case r.upper[assume].crossed(a.upper, b.upper):
		return Unproven
	default:
		return Isolated
	}
}

// crossed reports whether a packet crosses from one party to another. No packet crosses from no party, or to none.
func (p *pass) crossed(a, b party) bool { return a >= 0 && b >= 0 && p.done[a].Has(b) }

// Pair names two parties in the direction of a packet.
type Pair struct{ From, To Owner }

// Open returns the ordered pairs between which a packet passes, or may pass, under an assumption, sorted.
func (r *Result) Open(assume Assumption) []Pair {
	p := r.upper[assume]
	out := make([]Pair, 0, p.pairs)
	for from, row := range p.done {
		for to := range row.All() {
			out = append(out, Pair{p.owners[from], p.owners[to]})
		}
	}
	slices.SortFunc(out, comparePairs)
	return out
}

// Passes reports whether a packet passes from one owner to another under an assumption, whatever was not read.
func (r *Result) Passes(assume Assumption, pair Pair) bool {
	p := r.lower[assume]
	return p.crossed(p.known(pair.From), p.known(pair.To))
}

func comparePairs(x, y Pair) int {
	return cmp.Or(compareOwners(x.From, y.From), compareOwners(x.To, y.To))
}

func compareOwners(a, b Owner) int {
	return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name))
}

// Holds reports whether every pair of tenants, and each tenant and undeclared or spare ports, are isolated under an
// assumption.
func (r *Result) Holds(assume Assumption) bool { return r.upper[assume].pairs == 0 }
