package proof

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
)

// Status is what is proven of two parties.
type Status uint8

// Statuses.
const (
	Unproven Status = iota // a packet may pass, depending on what was not read
	Leaks                  // a packet passes
	Isolated               // no packet passes, whatever was not read
)

var statusNames = [...]string{"unproven", "leaks", "isolated"}

// String names the status.
func (s Status) String() string {
	if int(s) >= len(statusNames) {
		return fmt.Sprintf("status %d", uint8(s))
	}
	return statusNames[s]
}

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

var depthNames = [...]string{"nothing", "switch and adapter together", "the adapter alone", "the switch alone", "switch and adapter, each alone"}

// String names what holds.
func (d Depth) String() string {
	if int(d) >= len(depthNames) {
		return fmt.Sprintf("depth %d", uint8(d))
	}
	return depthNames[d]
}

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
	for a := range assumptions {
		r.upper[a] = newPass(r.base, a)
		r.upper[a].run()
		r.lower[a] = r.upper[a]
	}
	if len(r.base.unread) == 0 {
		return r, nil
	}
	below := newWiring(f, false)
	for a := range assumptions {
		r.lower[a] = newPass(below, a)
		if len(r.upper[a].found) > 0 {
			r.lower[a].run()
		}
	}
	return r, nil
}

// Unread lists what was not read and may matter, in words.
func (r *Result) Unread() []string { return slices.Clone(r.base.unread) }

// Parties returns the owners that the statement covers: tenants, and Undeclared and Spare if such ports carry packets.
func (r *Result) Parties() []Owner { return slices.Clone(r.base.owners[1:]) }

// Pair returns what is proven of two owners. Of an owner that has no port here, nothing is proven.
func (r *Result) Pair(a, b Owner) Verdict {
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

func (r *Result) status(assume Assumption, a, b Owner) Status {
	x, y := r.base.known(a), r.base.known(b)
	if x == noParty || y == noParty {
		return Unproven
	}
	if _, ok := r.find(r.lower[assume], a, b); ok {
		return Leaks
	}
	if _, ok := r.find(r.upper[assume], a, b); ok {
		return Unproven
	}
	return Isolated
}

// find returns the packet of one owner to another in a pass.
func (r *Result) find(p *pass, a, b Owner) (witness, bool) {
	w, ok := p.found[[2]party{p.known(a), p.known(b)}]
	return w, ok
}

// Pair names two parties in the direction of a packet.
type Pair struct{ From, To Owner }

// Open returns the ordered pairs between which a packet passes, or may pass, under an assumption, sorted.
func (r *Result) Open(assume Assumption) []Pair {
	p := r.upper[assume]
	out := make([]Pair, 0, len(p.found))
	for pair := range p.found {
		out = append(out, Pair{p.owners[pair[0]], p.owners[pair[1]]})
	}
	slices.SortFunc(out, comparePairs)
	return out
}

func comparePairs(x, y Pair) int {
	return cmp.Or(compareOwners(x.From, y.From), compareOwners(x.To, y.To))
}

func compareOwners(a, b Owner) int {
	return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name))
}

// Holds reports whether every pair of tenants, and each tenant and undeclared or spare ports, are isolated under an
// assumption.
func (r *Result) Holds(assume Assumption) bool { return len(r.upper[assume].found) == 0 }

// ByRoutes returns the ordered pairs between which no packet passes because forwarding tables do not lead there, and for no other reason,
// under an assumption. A change of routes may let one pass. What is sent on by routers is not among them.
func (r *Result) ByRoutes(assume Assumption) []Pair {
	p := r.upper[assume]
	if !p.anyOpen {
		return nil
	}
	apart := map[[2]party]bool{}
	for i := range p.send {
		for j := range p.recv {
			if pair := [2]party{p.send[i].party, p.recv[j].party}; p.open[i].has(int32(j)) && !p.done[pair[0]].has(pair[1]) {
				apart[pair] = true
			}
		}
	}
	var out []Pair
	for pair := range apart {
		if pair[0] != routers && pair[1] != routers {
			out = append(out, Pair{p.owners[pair[0]], p.owners[pair[1]]})
		}
	}
	slices.SortFunc(out, comparePairs)
	return out
}

// Edge is a port of a trusted switch behind which is no other one, and what passes there.
type Edge struct {
	At      Place // the switch port
	Adapter Place // Port 0: no end port is known behind it
	Owner   Owner // of what is behind it
	// Sends and Receives are the P_Keys of packets that pass from and to what is behind the port, sorted; none if every P_Key passes. The
	// caller must not change them.
	Sends, Receives []ib.PKey
}

// Edges returns the ports behind which is an owner that the statement covers, with the packets that pass there under an assumption,
// whatever was not read.
func (r *Result) Edges(assume Assumption) []Edge {
	p := r.lower[assume]
	out := make([]Edge, 0, len(p.edges))
	for i := range p.edges {
		e := &p.edges[i]
		if e.party <= routers {
			continue
		}
		out = append(out, Edge{At: e.at, Adapter: e.adapter, Owner: p.owners[e.party], Sends: p.sends(e).list, Receives: p.receives(e).list})
	}
	return out
}

// ErrIsolated is returned where there is nothing to explain.
var ErrIsolated = errors.New("no packet passes")

// Explain returns a packet that passes from one owner to another under an assumption, or may pass.
func (r *Result) Explain(assume Assumption, pair Pair) (CounterExample, error) {
	for _, p := range []*pass{r.lower[assume], r.upper[assume]} {
		if w, ok := r.find(p, pair.From, pair.To); ok {
			return p.explain(pair, w, p == r.lower[assume]), nil
		}
	}
	return CounterExample{}, fmt.Errorf("explain %v to %v: %w", pair.From, pair.To, ErrIsolated)
}
