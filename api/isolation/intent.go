package isolation

import (
	"cmp"
	"fmt"
	"maps"
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
	issued   map[ib.GUID]proof.Owner // of ports and their aliases
	byPort   map[ib.GUID]int         // of ends of hosts in the inventory; several: more have the GUID; alias: it is one, of one of them
	holdings
	line *line // of the Intent that it was made of by With
	step int   // how many steps that took
}

// What byPort has of a GUID that is no port of one end.
const (
	several = -1 - iota
	alias
)

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
	idle  proof.Owner // without a grant
	alias []ib.GUID
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
		issued: map[ib.GUID]proof.Owner{}, byPort: map[ib.GUID]int{}, line: &line{},
	}
	var err error
	if in.holdings, err = newHoldings(r.Grants); err != nil {
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
			in.host(&c.Hosts[i], known)
		}
	}
	in.others(known)
	if r.Topology != nil {
		in.topology(r.Topology, known)
	}
	return in, nil
}

func (in *Intent) host(h *inventory.Host, known map[ib.GUID]bool) {
	idle := proof.Owner{Kind: proof.Tenant, Name: NoTenant}
	if h.Role == inventory.RoleSM {
		idle = infrastructure
	}
	if h.Role == inventory.RoleService {
		idle = proof.Owner{Kind: proof.Shared, Name: h.ID}
	}
	for i := range h.HCAs {
		known[h.HCAs[i].NodeGUID] = true
		if h.Spare {
			continue
		}
		for _, p := range h.HCAs[i].Ports {
			known[p.GUID] = true
			owner := in.ownerOf(p.GUID, idle)
			in.index(p.GUID, len(in.ends))
			in.add(end{host: h.ID, place: p.Cable, node: h.HCAs[i].NodeGUID, port: p.GUID, owner: owner, idle: idle, alias: p.Aliases})
			for _, g := range p.Aliases {
				in.issued[g] = owner
				in.index(g, alias)
			}
		}
	}
}

// index notes which end has a GUID.
func (in *Intent) index(guid ib.GUID, at int) {
	if _, twice := in.byPort[guid]; twice {
		at = several
	}
	in.byPort[guid] = at
}

// others adds ports that have a grant and that the inventory no longer has.
func (in *Intent) others(known map[ib.GUID]bool) {
	for _, guid := range slices.Sorted(maps.Keys(in.tenants)) {
		if known[guid] {
			continue
		}
		known[guid] = true
		h := in.of[guid][slices.IndexFunc(in.of[guid], func(h holding) bool { return h.Adopted == "" })]
		in.add(end{host: h.Host, place: h.key.Place, port: guid, owner: in.ownerOf(guid, proof.Owner{})})
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
	if e.port != 0 {
		in.issued[e.port] = e.owner
	}
	if at, ok := in.byPort[e.port]; ok && at != len(in.ends) {
		in.byPort[e.port] = several
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

// declaredAt returns where a port is declared, the last place if there are several.
func (in *Intent) declaredAt(guid ib.GUID) (ib.Place, bool) {
	for i := len(in.ends) - 1; i >= 0 && guid != 0; i-- {
		if in.ends[i].port == guid {
			return in.ends[i].place, true
		}
	}
	return ib.Place{}, false
}

// Options returns how a fabric is read that is to be as intended.
func (in *Intent) Options(q v1.IsolationQuery) reader.Options {
	o := reader.Options{Owner: in.owner, Alias: in.issuedTo, Spare: func(at ib.Place) bool { return in.spares[at] }}
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

// issuedTo returns the owner of the port that a GUID was issued to, of the holder if it was issued to none.
func (in *Intent) issuedTo(guid ib.GUID, holder proof.Owner) proof.Owner {
	if owner, ok := in.issued[guid]; ok {
		return owner
	}
	return holder
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
