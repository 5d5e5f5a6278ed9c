package isolation

import (
	"cmp"
	"slices"

	"portcullis/api/isolation/outsiders"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

// Outsiders returns the ports at which packets of P_Keys pass that no membership explains, by place. What was not read counts as empty: it
// makes no port an outsider. Ports that pass every P_Key, and the default partition, are left out: they are open to each
// tenant whatever is granted.
func (p *Proven) Outsiders() []outsiders.Outsider {
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	if !p.kept.hasOutsiders {
		p.kept.outsiders, p.kept.hasOutsiders = p.outsidersAmong(nil, p.result.Edges(proof.Both)), true
	}
	return slices.Clone(p.kept.outsiders)
}

// outsidersAmong returns outsiders and those among some edges, by place.
func (p *Proven) outsidersAmong(out []outsiders.Outsider, edges []proof.Edge) []outsiders.Outsider {
	f := p.found.Fabric
	guids := make(map[proof.Place]ib.GUID, len(edges))
	for i := range edges {
		guids[edges[i].Adapter] = 0
	}
	for i := range p.found.Ends {
		if _, wanted := guids[p.found.Ends[i].Port]; wanted {
			guids[p.found.Ends[i].Port] = p.found.Ends[i].GUID
		}
	}
	for i := range edges {
		e := &edges[i]
		at := &f.Devices[e.At.Device]
		o := outsiders.Outsider{Port: outsiders.Port{Place: ib.Place{Switch: at.GUID, Port: e.At.Port}, Name: at.Name, Party: e.Owner.String()}}
		if e.Adapter.Port != 0 {
			o.GUID, o.Name = guids[e.Adapter], f.Devices[e.Adapter.Device].Name
		}
		if o.PKeys = p.unexplained(seat{o.GUID, o.Place}, e); len(o.PKeys) > 0 {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b outsiders.Outsider) int {
		return cmp.Or(cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
	})
	return out
}

// unexplained returns the P_Keys that no membership explains, sorted: as full ones if packets pass between the edge and limited members, and
// else as limited ones, whose packets pass to and from full members.
func (p *Proven) unexplained(at seat, e *proof.Edge) (out []ib.PKey) {
	add := func(passing []ib.PKey, reaches func(ib.PKey) bool) {
		for _, k := range passing {
			switch base := k.Base(); {
			case base == ib.DefaultPKeyLimited, p.in.members[member{at, base}]:
			case reaches(k):
				out = append(out, base.Full())
			default:
				out = append(out, base.Limited())
			}
		}
	}
	add(e.Sends, ib.PKey.IsFull)
	add(e.Receives, func(k ib.PKey) bool { return !k.IsFull() })
	slices.SortFunc(out, func(a, b ib.PKey) int { return cmp.Or(cmp.Compare(a.Base(), b.Base()), cmp.Compare(b, a)) })
	return slices.CompactFunc(out, func(a, b ib.PKey) bool { return a.Base() == b.Base() })
}
