package isolation

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/topospec"
)

// NoTenant is the name of the party of hosts that belong to no tenant. No tenant can have it.
const NoTenant = "(no tenant)"

var infrastructure = proof.Owner{Kind: proof.Infrastructure}

// Intent is what is declared: who is where, and who owns it.
type Intent struct {
	ends     []end
	byPlace  map[ib.Place]int // of ends; -1: several are declared there
	switches map[ib.GUID]string
	spares   map[ib.Place]bool
	granted  map[seat][]ib.PKey // P_Keys with their membership, sorted; those that are being withdrawn are not among them
	members  map[member]bool    // what any grant explains
	owns     map[ib.PKey]string // tenant by base of a P_Key
}

// seat is a port at a place.
type seat struct {
	port ib.GUID
	at   ib.Place
}

// end is a declared port of a host.
type end struct {
	host  string
	place ib.Place
	node  ib.GUID // 0: not declared
	port  ib.GUID // 0: not declared
	owner proof.Owner
}

// Records are what an Intent is made of.
type Records struct {
	Inventory *inventory.Contents
	Topology  *topospec.Spec // in force; nil: none
	Grants    []store.Record[records.Grant]
}

// NewIntent returns what is declared. Of a device that inventory and topology both declare, inventory counts.
func NewIntent(r Records) (*Intent, error) {
	in := &Intent{
		byPlace: map[ib.Place]int{}, switches: map[ib.GUID]string{}, spares: map[ib.Place]bool{},
		granted: map[seat][]ib.PKey{}, members: map[member]bool{}, owns: map[ib.PKey]string{},
	}
	tenants, err := tenantsOf(r.Grants)
	if err != nil {
		return nil, err
	}
	known := map[ib.GUID]bool{} // node and port GUIDs of adapters in the inventory
	if c := r.Inventory; c != nil {
		for i := range c.Switches {
			if s := &c.Switches[i]; !s.Spare {
				in.switches[s.GUID] = s.ID
			}
		}
		for i := range c.Hosts {
			in.host(&c.Hosts[i], tenants, known)
		}
	}
	if err := in.grants(r.Grants, tenants, known); err != nil {
		return nil, err
	}
	if r.Topology != nil {
		in.topology(r.Topology, known)
	}
	return in, nil
}

// tenantsOf returns the tenant of each port. A port that is being taken from one tenant and given to another belongs to the
// other; one that is only being taken still belongs to its tenant.
func tenantsOf(grants []store.Record[records.Grant]) (map[ib.GUID]string, error) {
	type held struct {
		tenant    string
		withdrawn bool
		since     int64
	}
	of := map[ib.GUID]held{}
	for i := range grants {
		g := &grants[i].Value
		k, err := records.ParseKey(grants[i].Key)
		if err != nil {
			return nil, err
		}
		if g.Limited || g.Adopted != "" { // of a partition that tenants share, or of a host that is not proven
			continue
		}
		now := held{cmp.Or(g.Tenant, "cluster "+g.Cluster), g.Withdrawn, g.Since.UnixNano()}
		was, ok := of[k.GUID]
		if !ok || was.withdrawn && !now.withdrawn || was.withdrawn == now.withdrawn && was.since < now.since {
			of[k.GUID] = now
		}
	}
	out := map[ib.GUID]string{}
	for guid, h := range of {
		out[guid] = h.tenant
	}
	return out, nil
}

func (in *Intent) host(h *inventory.Host, tenants map[ib.GUID]string, known map[ib.GUID]bool) {
	for i := range h.HCAs {
		known[h.HCAs[i].NodeGUID] = true
		if h.Spare {
			continue
		}
		for _, p := range h.HCAs[i].Ports {
			known[p.GUID] = true
			owner := proof.Owner{Kind: proof.Tenant, Name: cmp.Or(tenants[p.GUID], NoTenant)}
			switch {
			case tenants[p.GUID] != "":
			case h.Role == inventory.RoleSM:
				owner = infrastructure
			case h.Role == inventory.RoleService:
				owner = proof.Owner{Kind: proof.Shared, Name: h.ID}
			}
			in.add(end{host: h.ID, place: p.Cable, node: h.HCAs[i].NodeGUID, port: p.GUID, owner: owner})
		}
	}
}

// grants keeps the P_Keys of ports, and adds ports that have a grant and that the inventory no longer has.
func (in *Intent) grants(grants []store.Record[records.Grant], tenants map[ib.GUID]string, known map[ib.GUID]bool) error {
	for i := range grants {
		k, err := records.ParseKey(grants[i].Key)
		if err != nil {
			return err
		}
		in.explain(k, &grants[i].Value)
		if grants[i].Value.Adopted != "" {
			continue // it explains nothing: a port that shares a partition with a tenant shows as a leak
		}
		in.grant(k, &grants[i].Value)
		if tenants[k.GUID] == "" || known[k.GUID] {
			continue
		}
		known[k.GUID] = true
		in.add(end{host: grants[i].Value.Host, place: k.Place, port: k.GUID, owner: proof.Owner{Kind: proof.Tenant, Name: tenants[k.GUID]}})
	}
	return nil
}

func (in *Intent) grant(k records.Key, g *records.Grant) {
	if g.Withdrawn {
		return
	}
	key := k.PKey.Full()
	if g.Limited {
		key = k.PKey.Limited()
	}
	at := seat{k.GUID, k.Place}
	i, there := slices.BinarySearch(in.granted[at], key)
	if !there {
		in.granted[at] = slices.Insert(in.granted[at], i, key)
	}
}

func (in *Intent) add(e end) {
	if !e.place.IsZero() {
		if _, taken := in.byPlace[e.place]; taken {
			in.byPlace[e.place] = -1
		} else {
			in.byPlace[e.place] = len(in.ends)
		}
	}
	in.ends = append(in.ends, e)
}

// topology adds what only the declared topology has.
func (in *Intent) topology(s *topospec.Spec, known map[ib.GUID]bool) {
	r := s.Revision()
	for i := range r.Devices {
		d := &r.Devices[i]
		switch {
		case d.Stock != topospec.InUse:
		case d.Kind == topospec.KindSwitch:
			in.switches[d.GUID] = cmp.Or(in.switches[d.GUID], d.Name)
		case !known[d.GUID]:
			in.device(s, topospec.DeviceID(i))
		}
	}
	for i := range r.Links {
		if l := &r.Links[i]; l.State == topospec.Reserved || l.State == topospec.Disabled {
			in.spares[l.A.Place()] = true
		}
	}
}

func (in *Intent) device(s *topospec.Spec, id topospec.DeviceID) {
	d := s.Device(id)
	owner := proof.Owner{Kind: proof.Tenant, Name: NoTenant}
	switch {
	case d.Kind == topospec.KindRouter, d.Kind == topospec.KindAN, d.Role == topospec.RoleSM:
		owner = infrastructure
	case d.Role == topospec.RoleService:
		owner = proof.Owner{Kind: proof.Shared, Name: cmp.Or(d.Host, d.Name)}
	}
	for num, slot := range s.PortsOf(id) {
		link, peer := s.LinkAt(slot)
		if link == nil || link.State != topospec.Active && link.State != topospec.Maintenance || peer.IsZero() {
			continue
		}
		e := end{host: cmp.Or(d.Host, d.Name), place: peer.Place(), node: d.GUID, owner: owner}
		if int(num) <= len(d.PortGUIDs) {
			e.port = d.PortGUIDs[num-1]
		}
		in.add(e)
	}
}

// Options returns how a fabric is read that is to be as intended.
func (in *Intent) Options(q v1.IsolationQuery) reader.Options {
	o := reader.Options{Owner: in.owner, Spare: func(at ib.Place) bool { return in.spares[at] }}
	if q.Membership {
		o.Inbound = proof.InboundMembership
	}
	return o
}

// owner returns the owner of a device by what it says and where it is. A device that is not where it is declared is
// undeclared, and so is a switch where a host is declared.
func (in *Intent) owner(at ib.Place, is reader.Identity) proof.Owner {
	i, declared := in.byPlace[at]
	switch {
	case at.IsZero() && is.Type != ib.NodeSwitch:
		return infrastructure // the own port
	case is.Type == ib.NodeSwitch:
		if _, ok := in.switches[is.Node]; !ok || declared || in.spares[at] {
			return proof.Owner{}
		}
		return infrastructure
	case !declared || i < 0 || !in.ends[i].is(is.Node, is.Port):
		return proof.Owner{}
	default:
		return in.ends[i].owner
	}
}

// is reports whether a device with these GUIDs is the declared one.
func (e *end) is(node, port ib.GUID) bool {
	return (e.node == 0 || e.node == node) && (e.port == 0 || e.port == port) && e.node|e.port != 0
}

// Tenants returns the names of the tenants that have a host, and of the party of hosts without one if there are any.
func (in *Intent) Tenants() []string {
	var out []string
	for i := range in.ends {
		if o := in.ends[i].owner; o.Kind == proof.Tenant {
			out = append(out, o.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nodeName returns the declared name of a device beside what the reader calls it.
func (in *Intent) nodeName(d *proof.Device) string {
	if name := in.switches[d.GUID]; name != "" && d.Type == ib.NodeSwitch {
		return fmt.Sprintf("%s (%s)", name, d.Name)
	}
	return d.Name
}
