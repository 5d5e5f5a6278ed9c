package inventory

import (
	"fmt"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
)

// claim says that owner has a thing no other owner may have.
type claim struct {
	kind  string // "EK", "GUID", "switch port" and so on
	value string
	owner string // the owner, in words
	at    spot   // zero: from the stored inventory
}

// ledger finds things that two owners claim.
type ledger struct {
	held map[[2]string]claim // by kind and value
	told map[[2]string]bool  // by place and value: one problem is enough
}

func newLedger() *ledger {
	return &ledger{held: map[[2]string]claim{}, told: map[[2]string]bool{}}
}

// enter records c; it reports c when another owner has the thing already.
func (l *ledger) enter(c claim, r *report) {
	first, taken := l.held[[2]string{c.kind, c.value}]
	if !taken {
		l.held[[2]string{c.kind, c.value}] = c
		return
	}
	told := [2]string{c.at.String(), c.value}
	if first.owner == c.owner || l.told[told] {
		return
	}
	l.told[told] = true
	where := first.at.String()
	if first.at == (spot{}) {
		where = "stored inventory"
	}
	r.add(c.at, "%s %s is claimed by %s, but %s has it (%s)", c.kind, c.value, c.owner, first.owner, where)
}

// checkClaims finds what two declarations in the files claim.
func (d *Declaration) checkClaims(r *report) {
	twice(r, KindSite, d.sites)
	twice(r, KindRack, d.racks)
	twice(r, KindSwitch, d.switches)
	l := newLedger()
	for i := range d.switches {
		l.enterAll(switchClaims(&d.switches[i].value, d.switches[i].at), r)
	}
	for _, h := range d.hosts {
		if first, twice := l.held[[2]string{"host id", h.host.ID}]; twice && h.host.ID != "" {
			r.add(h.at, "host %s is declared twice, first at %v", quote(h.host.ID), first.at)
			continue
		}
		l.enter(claim{"host id", h.host.ID, h.host.ID, h.at}, r)
		l.enterAll(h.claims(), r)
	}
	for i := range d.adapters {
		l.enterAll(d.adapters[i].claims(), r)
	}
}

func (l *ledger) enterAll(claims []claim, r *report) {
	for _, c := range claims {
		l.enter(c, r)
	}
}

// claims returns what the host declares to be: its EK and GUIDs. The node GUID and the GUID of a port may be the same
// number, as on one-port cards; two ports may not.
func (h *hostDecl) claims() []claim {
	var out []claim
	owner := fmt.Sprintf("host %s", h.host.ID)
	if h.host.EK != "" {
		out = append(out, claim{"EK", h.host.EK, owner, h.ekAt})
	}
	for i := range h.host.HCAs {
		out = append(out, hcaClaims(owner, fmt.Sprintf("%s (entry %d)", owner, i+1), &h.host.HCAs[i], h.spotOfHCA(i), func(j int) spot { return h.spotOfPort(i, j) })...)
	}
	return out
}

// claims returns what the adapter in stock declares to be.
func (a *adapterDecl) claims() []claim {
	return hcaClaims("stock", "stock, "+a.places.at.String(), &a.adapter.HCA, a.places.at, func(j int) spot {
		if j < len(a.places.ports) {
			return a.places.ports[j].at
		}
		return spot{}
	})
}

// hcaClaims returns the GUIDs of an adapter. entry distinguishes it from the others of owner.
func hcaClaims(owner, entry string, a *HCA, at spot, portAt func(j int) spot) (out []claim) {
	card := fmt.Sprintf("%s hca %v", owner, a.NodeGUID)
	if a.NodeGUID.Valid() {
		out = append(out, claim{"GUID", a.NodeGUID.String(), card, at}, claim{"node GUID", a.NodeGUID.String(), entry, at})
	}
	for j, p := range a.Ports {
		at := portAt(j)
		if p.GUID.Valid() {
			out = append(out, claim{"GUID", p.GUID.String(), card, at}, claim{"port GUID", p.GUID.String(), fmt.Sprintf("%s port %d", card, p.Num), at})
		}
		for _, g := range p.Aliases {
			out = append(out, claim{"GUID", g.String(), fmt.Sprintf("%s port %d as an alias", card, p.Num), at})
		}
	}
	return out
}

// switchClaims returns what a switch declares to be.
func switchClaims(s *Switch, at spot) (out []claim) {
	owner := "switch " + s.ID
	if s.GUID.Valid() {
		out = append(out, claim{"GUID", s.GUID.String(), owner, at})
	}
	if s.AggregationGUID.Valid() {
		out = append(out, claim{"GUID", s.AggregationGUID.String(), owner + " aggregation node", at})
	}
	return out
}

// trunkClaims says that a cable occupies two switch ports.
func trunkClaims(t *Trunk, at spot) []claim {
	owner := fmt.Sprintf("the cable %v to %v", t.A, t.B)
	return []claim{{"switch port", t.A.String(), owner, at}, {"switch port", t.B.String(), owner, at}}
}

func (h *hostDecl) spotOfHCA(i int) spot {
	if i < len(h.hcas) {
		return h.hcas[i].at
	}
	return spot{}
}

func (h *hostDecl) spotOfPort(i, j int) spot {
	if i < len(h.hcas) && j < len(h.hcas[i].ports) {
		return h.hcas[i].ports[j].at
	}
	return spot{}
}

// placeClaim says that a port of host occupies a switch port.
func placeClaim(host string, p Port, at spot) claim {
	return claim{"switch port", p.Cable.String(), fmt.Sprintf("host %s port GUID %v", host, p.GUID), at}
}

// guidOwners maps every GUID of hosts to its host, the first by id where several have it.
func guidOwners(hosts map[string]Host) map[ib.GUID]string {
	m := map[ib.GUID]string{}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(hosts))) {
		for _, a := range hosts[id].HCAs {
			m[a.NodeGUID] = id
			for _, p := range a.Ports {
				m[p.GUID] = id
				for _, g := range p.Aliases {
					m[g] = id
				}
			}
		}
	}
	return m
}
