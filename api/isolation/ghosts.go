package isolation

import (
	"cmp"
	"maps"
	"slices"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// member is a P_Key at a port. Without a port GUID it is one of the switch port alone.
type member struct {
	seat
	base ib.PKey
}

// ghosts lists the ports that hold a P_Key of a tenant which no grant explains. A table that was not read has none.
func (r *reporter) ghosts(found map[ib.Place]*ghost) {
	r.ghostly = len(found)
	places := slices.SortedFunc(maps.Keys(found), func(a, b ib.Place) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
	})
	for _, at := range places[:min(len(places), maxRows)] {
		g := found[at]
		out := v1.GhostMember{GUID: g.guid, Place: at, PKeys: sortedKeys(slices.Concat(g.adapter, g.front)), Held: v1.GhostInBoth}
		switch {
		case len(g.front) == 0:
			out.Held = v1.GhostInAdapter
		case len(g.adapter) == 0:
			out.Held = v1.GhostInSwitch
		}
		r.out.Ghosts = append(r.out.Ghosts, out)
	}
}

// ghost is a port with P_Keys of tenants that no grant explains.
type ghost struct {
	guid           ib.GUID // 0: nothing answers there, or its own table has none
	adapter, front []ib.PKey
}

// ghosts finds such ports by place, of all tenants or of one.
func (p *Proven) ghosts(tenant string) map[ib.Place]*ghost {
	f := p.found.Fabric
	found := map[ib.Place]*ghost{}
	for i := range p.found.Ends {
		p.adapterGhost(found, &p.found.Ends[i], tenant)
	}
	for i := range f.Devices {
		d := &f.Devices[i]
		for num := 1; num < len(d.Ports) && d.Type == ib.NodeSwitch; num++ {
			p.frontGhost(found, d, ib.PortNum(num), tenant)
		}
	}
	return found
}

// adapterGhost adds the port of an adapter, if it is one.
func (p *Proven) adapterGhost(found map[ib.Place]*ghost, e *reader.End, tenant string) {
	port := &p.found.Fabric.Devices[e.Port.Device].Ports[e.Port.Port]
	if port.Owner.Kind == proof.Infrastructure || e.At.IsZero() {
		return
	}
	if keys := p.strays(port, seat{e.GUID, e.At}, tenant); len(keys) > 0 {
		found[e.At] = &ghost{guid: e.GUID, adapter: keys}
	}
}

// frontGhost adds the port of a switch, if it is one.
func (p *Proven) frontGhost(found map[ib.Place]*ghost, d *proof.Device, num ib.PortNum, tenant string) {
	if d.Owner.Kind != proof.Infrastructure || trunk(p.found.Fabric, &d.Ports[num]) {
		return
	}
	at := ib.Place{Switch: d.GUID, Port: num}
	keys := p.strays(&d.Ports[num], seat{at: at}, tenant)
	if len(keys) == 0 {
		return
	}
	if found[at] == nil {
		found[at] = &ghost{}
	}
	found[at].front = keys
}

// trunk reports whether a switch port leads to another switch or to infrastructure, which may hold every P_Key.
func trunk(f *proof.Fabric, p *proof.Port) bool {
	to := p.Cable
	if !has(f, to) {
		return false
	}
	return f.Devices[to.Device].Type == ib.NodeSwitch || f.Devices[to.Device].Ports[to.Port].Owner.Kind == proof.Infrastructure
}

// strays returns the P_Keys of tenants, or of one, in a table that no grant at that seat explains.
func (p *Proven) strays(port *proof.Port, at seat, tenant string) (out []ib.PKey) {
	if port.PKeys.How != proof.WasRead {
		return nil
	}
	for _, k := range port.PKeys.Value {
		of, owned := p.in.owns[k.Base()]
		if owned && (tenant == "" || of == tenant) && !p.in.members[member{at, k.Base()}] {
			out = append(out, k)
		}
	}
	return sortedKeys(out)
}

func sortedKeys(keys []ib.PKey) []ib.PKey {
	slices.Sort(keys)
	return slices.Compact(keys)
}
