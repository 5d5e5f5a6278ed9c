package proof

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof/bitset"
)

// ByRoutes returns the ordered pairs between which no packet passes because forwarding tables do not lead there, and for no other reason,
// under an assumption. A change of routes may let one pass. What is sent on by routers is not among them.
func (r *Result) ByRoutes(assume Assumption) []Pair {
	p := r.upper[assume]
	if !p.anyOpen {
		return nil
	}
	apart := map[[2]party]bool{}
	for i := range p.send {
		for j := range p.open[i].All() {
			if pair := [2]party{p.send[i].party, p.recv[j].party}; !p.done[pair[0]].Has(pair[1]) {
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
		if e, ok := r.Edge(assume, p.edges[i].at); ok {
			out = append(out, e)
		}
	}
	return out
}

// Edge returns one of Edges. It reports false if the port is none.
func (r *Result) Edge(assume Assumption, at Place) (Edge, bool) {
	p := r.lower[assume]
	i := p.edgeAt[at.Device][at.Port]
	if i < 0 || p.edges[i].party <= routers {
		return Edge{}, false
	}
	e := &p.edges[i]
	return Edge{At: e.at, Adapter: e.adapter, Owner: p.owners[e.party], Sends: p.sends(e).list, Receives: p.receives(e).list}, true
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

// find returns the packet of one owner to another in a pass.
func (r *Result) find(p *pass, a, b Owner) (witness, bool) {
	pair := [2]party{p.known(a), p.known(b)}
	w, ok := p.found[pair]
	if !ok && p.crossed(pair[0], pair[1]) {
		w, ok = p.look(bitset.Of(len(p.owners), pair[0])).found[pair]
	}
	return w, ok
}
