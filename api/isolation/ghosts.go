package isolation

import (
	"cmp"
	"maps"
	"slices"

	"portcullis/api/fabric/records"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

// member is a P_Key at a port. Without a port GUID it is one of the switch port alone.
type member struct {
	seat
	base ib.PKey
}

// explain keeps what a grant explains, also while it is being withdrawn: its P_Key is in the tables until it is gone.
func (in *Intent) explain(k records.Key, g *records.Grant) {
	base := k.PKey.Base()
	in.members[member{seat{k.GUID, k.Place}, base}] = true
	in.members[member{seat{at: k.Place}, base}] = true
	if g.Adopted == "" && !g.Limited {
		in.owns[base] = cmp.Or(g.Tenant, "cluster "+g.Cluster)
	}
}

// ghosts finds the ports that hold a P_Key of a tenant which no grant explains. A table that was not read has none.
func (r *reporter) ghosts() {
	f := r.found.Fabric
	found := map[ib.Place]*v1.GhostMember{}
	for i := range r.found.Ends {
		e := &r.found.Ends[i]
		port := &f.Devices[e.Port.Device].Ports[e.Port.Port]
		if port.Owner.Kind == proof.Infrastructure || e.At.IsZero() {
			continue
		}
		if keys := r.unexplained(port, seat{e.GUID, e.At}); len(keys) > 0 {
			found[e.At] = &v1.GhostMember{GUID: e.GUID, Place: e.At, PKeys: keys, Held: v1.GhostInAdapter}
		}
	}
	for i := range f.Devices {
		d := &f.Devices[i]
		if d.Type != ib.NodeSwitch || d.Owner.Kind != proof.Infrastructure {
			continue
		}
		for num := 1; num < len(d.Ports); num++ {
			if trunk(f, &d.Ports[num]) {
				continue
			}
			at := ib.Place{Switch: d.GUID, Port: ib.PortNum(num)}
			keys := r.unexplained(&d.Ports[num], seat{at: at})
			if len(keys) == 0 {
				continue
			}
			g := found[at]
			if g == nil {
				found[at] = &v1.GhostMember{Place: at, PKeys: keys, Held: v1.GhostInSwitch}
				continue
			}
			g.Held, g.PKeys = v1.GhostInBoth, sortedKeys(append(g.PKeys, keys...))
		}
	}
	r.ghostly = len(found)
	places := slices.SortedFunc(maps.Keys(found), func(a, b ib.Place) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
	})
	for _, at := range places[:min(len(places), maxRows)] {
		r.out.Ghosts = append(r.out.Ghosts, *found[at])
	}
}

// trunk reports whether a switch port leads to another switch or to infrastructure, which may hold every P_Key.
func trunk(f *proof.Fabric, p *proof.Port) bool {
	to := p.Cable
	if to.Port == 0 || to.Device < 0 || to.Device >= len(f.Devices) || int(to.Port) >= len(f.Devices[to.Device].Ports) {
		return false
	}
	return f.Devices[to.Device].Type == ib.NodeSwitch || f.Devices[to.Device].Ports[to.Port].Owner.Kind == proof.Infrastructure
}

// unexplained returns the P_Keys of tenants in a table that no grant at that seat explains.
func (r *reporter) unexplained(p *proof.Port, at seat) (out []ib.PKey) {
	if p.PKeys.How != proof.WasRead {
		return nil
	}
	for _, k := range p.PKeys.Value {
		tenant, owned := r.in.owns[k.Base()]
		if owned && (r.tenant == "" || tenant == r.tenant) && !r.in.members[member{at, k.Base()}] {
			out = append(out, k)
		}
	}
	return sortedKeys(out)
}

func sortedKeys(keys []ib.PKey) []ib.PKey {
	slices.Sort(keys)
	return slices.Compact(keys)
}
