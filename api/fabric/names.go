package fabric

import (
	"maps"

	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/alias"
)

// owners are inventory's names of nodes and of places.
type owners struct {
	names   map[ib.GUID]string    // hosts by node GUID
	nodes   map[string][]ib.GUID  // node GUIDs by host
	cables  map[ib.Place]string   // hosts by the switch port they are cabled to
	ports   map[ib.GUID]string    // hosts by port GUID
	places  map[string][]ib.Place // those by host
	aliases map[string]alias.List // that ports of a host may have
	hcas    map[string][]inventory.HCA
	renamed bool // since the names were last passed on, or a grant changed
}

func newOwners() owners {
	return owners{
		names: map[ib.GUID]string{}, nodes: map[string][]ib.GUID{},
		cables: map[ib.Place]string{}, ports: map[ib.GUID]string{}, places: map[string][]ib.Place{}, aliases: map[string]alias.List{}, hcas: map[string][]inventory.HCA{}, renamed: true,
	}
}

// host takes note of an inventory record; nil: it is gone.
func (o *owners) host(id string, h *inventory.Host) {
	for _, g := range o.nodes[id] {
		delete(o.names, g)
	}
	for _, pl := range o.places[id] {
		delete(o.cables, pl)
	}
	for _, a := range o.hcas[id] {
		for _, p := range a.Ports {
			if o.ports[p.GUID] == id {
				delete(o.ports, p.GUID)
			}
		}
	}
	delete(o.nodes, id)
	delete(o.places, id)
	delete(o.aliases, id)
	delete(o.hcas, id)
	o.renamed = true
	if h == nil {
		return
	}
	o.hcas[id] = h.HCAs
	for _, a := range h.HCAs {
		o.names[a.NodeGUID] = id
		o.nodes[id] = append(o.nodes[id], a.NodeGUID)
	}
	for _, p := range h.Ports() {
		o.ports[p.GUID] = id
		if !p.Cable.IsZero() {
			o.cables[p.Cable] = id
			o.places[id] = append(o.places[id], p.Cable)
		}
		if len(p.Aliases) > 0 {
			o.aliases[id] = o.aliases[id].With(alias.List{p.GUID: p.Aliases})
		}
	}
}

// naming is what others may know of owners. It is not written to.
type naming struct {
	hosts   map[ib.GUID]string  // by node GUID
	cables  map[ib.Place]string // hosts by place
	tenants map[string]string   // by host

	clusters map[string]tenancy         // by host: those of which it is a member in full
	hcas     map[string][]inventory.HCA // by host
}

// tenancy is a host's membership of a cluster.
type tenancy struct {
	cluster string
	epoch   int64 // of the assignment; 0: not known
}

// Partition describes a partition for observers of the fabric.
type Partition struct {
	Cluster string
	Tenant  string // empty: it has none, or several share it
}

// partitions returns the partitions that have a member, or had one until its removal is proven, by base P_Key.
func (b *book) partitions() map[ib.PKey]Partition {
	out := make(map[ib.PKey]Partition)
	for k, g := range b.grants {
		if g.adopted {
			continue
		}
		p, seen := out[k.PKey.Base()]
		switch {
		case !seen:
			p = Partition{Cluster: g.cluster, Tenant: g.tenant}
		case p.Tenant != g.tenant:
			p.Tenant = ""
		}
		if g.limited {
			p.Tenant = "" // tenants share it
		}
		p.Cluster = min(p.Cluster, g.cluster)
		out[k.PKey.Base()] = p
	}
	for k, g := range b.grants {
		if g.adopted {
			p := out[k.PKey.Base()]
			p.Tenant = "" // it is not known whose the port is
			out[k.PKey.Base()] = p
		}
	}
	return out
}

// mayBe returns the alias GUIDs that ports may have.
func (o *owners) mayBe() alias.List {
	all := make(alias.List)
	for _, list := range o.aliases {
		maps.Copy(all, list)
	}
	return all
}

// naming returns the names as they are now. A host belongs to the tenant whose grants it has; one whose access was taken
// away, until that is proven, too.
func (b *book) naming() *naming {
	n := &naming{hosts: maps.Clone(b.owners.names), cables: maps.Clone(b.owners.cables), tenants: map[string]string{}, clusters: map[string]tenancy{}, hcas: maps.Clone(b.owners.hcas)}
	for _, g := range b.grants {
		if g.adopted {
			continue // of no host, cluster or tenant
		}
		if !g.withdrawn && !g.limited {
			n.clusters[g.host] = tenancy{g.cluster, g.epoch}
		}
		if g.tenant != "" && (!g.withdrawn || n.tenants[g.host] == "") {
			n.tenants[g.host] = g.tenant
		}
	}
	return n
}
