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
	l := newLedger()
	for _, h := range d.hosts {
		if first, twice := l.held[[2]string{"host id", h.host.ID}]; twice && h.host.ID != "" {
			r.add(h.at, "host %s is declared twice, first at %v", quote(h.host.ID), first.at)
			continue
		}
		l.enter(claim{"host id", h.host.ID, h.host.ID, h.at}, r)
		for _, c := range h.claims() {
			l.enter(c, r)
		}
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
	for i, a := range h.host.HCAs {
		card := fmt.Sprintf("%s hca %v", owner, a.NodeGUID)
		at := h.spotOfHCA(i)
		if a.NodeGUID.Valid() {
			out = append(out, claim{"GUID", a.NodeGUID.String(), card, at}, claim{"node GUID", a.NodeGUID.String(), fmt.Sprintf("%s (entry %d)", owner, i+1), at})
		}
		for j, p := range a.Ports {
			at := h.spotOfPort(i, j)
			if p.GUID.Valid() {
				out = append(out, claim{"GUID", p.GUID.String(), card, at}, claim{"port GUID", p.GUID.String(), fmt.Sprintf("%s port %d", card, p.Num), at})
			}
			for _, g := range p.Aliases {
				out = append(out, claim{"GUID", g.String(), fmt.Sprintf("%s port %d as an alias", card, p.Num), at})
			}
		}
	}
	return out
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
