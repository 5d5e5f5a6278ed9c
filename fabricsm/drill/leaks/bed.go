package leaks

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
)

// bed is a site whose tables are read past its Subnet Manager, and written past it.
type bed struct {
	*drill.Site
	s       *drill.Scene
	station *sim.Station
	asker   *sim.Station // of h1, once it asked
	spare   ib.Place     // a port that is declared unused; zero: none
	ids     uint32
	cured   map[string]bool // changes that were made, in words
}

// newBed brings up tenants A (h1, h5) and B (h2, h6). Devices have no M_Keys: this is about what they hold, not about who may write it.
func newBed(s *drill.Scene, o drill.SiteOptions) *bed {
	if o.Tenants == nil {
		o.Tenants = drill.TwoTenants()
	}
	o.NoKeys = true
	b := &bed{Site: s.Site(o), s: s, cured: map[string]bool{}}
	var err error
	b.station, err = b.Fabric.Station("sm", false)
	s.Must(err)
	return b
}

// owner declares what the netlist has: hosts of tenants at their places, and switches.
func (b *bed) owner(at ib.Place, is reader.Identity) proof.Owner {
	infrastructure := proof.Owner{Kind: proof.Infrastructure}
	if at.IsZero() {
		return infrastructure
	}
	for i := range b.List.Nodes {
		n := &b.List.Nodes[i]
		switch {
		case n.GUID != is.Node:
		case n.Type == ib.NodeSwitch || n.Name == "sm":
			return infrastructure
		case b.Place(n.Name, 1) == at:
			return b.ownerOf(n.Name)
		}
	}
	return proof.Owner{}
}

// ownerOf returns the tenant of a host; a host without one is not declared.
func (b *bed) ownerOf(host string) proof.Owner {
	for _, t := range b.Options.Tenants {
		for _, h := range t.Hosts {
			if h == host {
				return proof.Owner{Kind: proof.Tenant, Name: t.Name}
			}
		}
	}
	return proof.Owner{}
}

// issued returns the owner of the port that a GUID was issued to.
func (b *bed) issued(guid ib.GUID, holder proof.Owner) proof.Owner {
	for i := range b.List.Nodes {
		if n := &b.List.Nodes[i]; n.Type == ib.NodeCA && b.GUID(n.Name, 1) == guid {
			return b.ownerOf(n.Name)
		}
	}
	return holder
}

// read reads all tables, and proves what follows.
func (b *bed) read() (*proof.Fabric, *proof.Result) {
	found := b.found()
	result, err := proof.Prove(found.Fabric)
	b.s.Must(err)
	return found.Fabric, result
}

// found reads all tables.
func (b *bed) found() *reader.Found {
	r, err := reader.New(reader.Options{
		Owner: b.owner, Alias: b.issued, Inbound: proof.InboundMembership, Draw: func() uint32 { b.ids++; return b.ids }, Window: 1, Attempts: 1,
		Spare: func(at ib.Place) bool { return !b.spare.IsZero() && at == b.spare },
	})
	b.s.Must(err)
	for !r.Done() {
		m, _ := r.Next()
		for _, p := range b.station.Exchange([]transport.Packet{{MAD: m, LID: ib.PermissiveLID}}, nil) {
			if !p.Undelivered && p.MAD.IsResponse() {
				r.Answer(&p.MAD)
			}
		}
		r.Expire(m.TID())
	}
	found, err := r.Found()
	b.s.Must(err)
	return found
}

// write reads an attribute of a node, changes it and writes it back, past the Subnet Manager.
func (b *bed) write(node string, attr mad.AttrID, mod uint32, change func(data []byte)) {
	route, ok := b.route(node)
	if !ok {
		b.s.Must(fmt.Errorf("no way leads to %s", node))
	}
	var data [mad.DataSize]byte
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		p := transport.Packet{LID: ib.PermissiveLID}
		mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: attr, Mod: mod, TID: 1}, &route, ib.MKey{})
		if method == mad.MethodSet {
			change(data[:])
			copy(p.MAD.Data(), data[:])
		}
		in := b.station.Exchange([]transport.Packet{p}, nil)
		if len(in) != 1 || in[0].Undelivered || in[0].MAD.Status() != mad.StatusOK {
			b.s.Must(fmt.Errorf("%v of %v at %s has no answer", method, attr, node))
		}
		copy(data[:], in[0].MAD.Data())
	}
}

// route returns a directed route to a node.
func (b *bed) route(node string) (mad.Route, bool) {
	routes := map[string]mad.Route{"sm": {}}
	for queue := []string{"sm"}; len(queue) > 0; queue = queue[1:] {
		for num, p := range b.List.Find(queue[0]).Ports {
			if _, seen := routes[p.Peer]; p.Peer != "" && !seen {
				routes[p.Peer], _ = routes[queue[0]].Append(ib.PortNum(num))
				queue = append(queue, p.Peer)
			}
		}
	}
	r, ok := routes[node]
	return r, ok
}

// place finds a port by the name that the proof has for it.
func (b *bed) place(f *proof.Fabric, name string) (node string, num ib.PortNum) {
	device, port, _ := strings.Cut(name, " port ")
	for i := range f.Devices {
		if f.Devices[i].Name != device {
			continue
		}
		for j := range b.List.Nodes {
			if b.List.Nodes[j].GUID == f.Devices[i].GUID {
				_, err := fmt.Sscan(port, &num)
				b.s.Must(err)
				return b.List.Nodes[j].Name, num
			}
		}
	}
	b.s.Must(fmt.Errorf("the proof names %q, which is no port here", name))
	return "", 0
}

// portInfo changes PortInfo of a switch port.
func (b *bed) portInfo(node string, num ib.PortNum, change func(*mad.PortInfo)) {
	b.write(node, mad.AttrPortInfo, mad.PortInfoMod(num, 0), func(data []byte) {
		var p mad.PortInfo
		b.s.Must(mad.Decode(data, &p))
		p.PortState, p.PortPhysicalState, p.LinkDownDefaultState = 0, 0, 0 // as they are
		change(&p)
		mad.MustEncode(data, &p)
	})
}

// entry writes an entry of a P_Key table: of a switch port, or of port 1 of a host.
func (b *bed) entry(at sim.Endpoint, index int, key ib.PKey) {
	block, mod := uint16(index/mad.PKeysPerBlock), uint32(0)
	if n := b.List.Find(at.Node); n.Type == ib.NodeSwitch {
		mod = mad.PKeyTableMod(at.Port, block)
	} else {
		mod = mad.PKeyTableMod(0, block)
	}
	b.write(at.Node, mad.AttrPKeyTable, mod, func(data []byte) {
		i := index % mad.PKeysPerBlock * 2
		data[i], data[i+1] = byte(key>>8), byte(key)
	})
}

// stray has a host and the switch port in front of it hold a P_Key, where no entry is used.
func (b *bed) stray(host string, key ib.PKey) {
	const unused = 9
	b.entry(drill.Port(host), unused, key)
	b.entry(b.SwitchPort(host, 1), unused, key)
}

// cure makes the change that the proof says closes the way.
func (b *bed) cure(f *proof.Fabric, c proof.Change) {
	node, num := b.place(f, c.Port)
	at := sim.Endpoint{Node: node, Port: num}
	switch c.Action {
	case proof.EnforceInbound:
		b.portInfo(node, num, func(p *mad.PortInfo) { p.PartitionEnforcementInbound, p.FilterRawInbound = true, true })
	case proof.EnforceOutbound:
		b.portInfo(node, num, func(p *mad.PortInfo) { p.PartitionEnforcementOutbound, p.FilterRawOutbound = true, true })
	case proof.FilterRaw:
		b.portInfo(node, num, func(p *mad.PortInfo) { p.FilterRawInbound, p.FilterRawOutbound = true, true })
	case proof.LimitEntry:
		b.entry(at, c.Index, c.Key.Limited())
	case proof.RemoveEntry:
		b.entry(at, c.Index, 0)
	case proof.RemoveAlias:
		for block := range uint32(4) {
			b.write(node, mad.AttrGUIDInfo, block, func(data []byte) {
				var g mad.GUIDInfo
				b.s.Must(mad.Decode(data, &g))
				for i := range g.GUID {
					if g.GUID[i] == c.GUID {
						g.GUID[i] = 0
					}
				}
				mad.MustEncode(data, &g)
			})
		}
	case proof.Disable:
		if b.List.Find(node).Type != ib.NodeSwitch {
			at = b.SwitchPort(node, num)
		}
		b.portInfo(at.Node, at.Port, func(p *mad.PortInfo) { p.PortPhysicalState = ib.PhysDisabled })
	default:
		b.s.Must(fmt.Errorf("the change %q is none that can be made", c))
	}
	b.cured[c.String()] = true
}
