package reader

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
)

// way is how a device is asked.
type way struct {
	route mad.Route
	at    ib.Place
}

// amend asks for the tables that Earlier.Only names, by the ways of the earlier reading, and for nothing else. It reports false if that would
// not do: the tables have to be P_Key tables that were read, of ports that were found.
func (r *Reader) amend() bool {
	e := r.o.Earlier
	if e == nil || e.Only == nil || !r.move() {
		return false
	}
	var asks []ask
	for _, v := range e.Only {
		at, ok := e.Found.place(v)
		if !ok {
			return false
		}
		d := &e.Found.Fabric.Devices[at.Device]
		from, port := at, ib.PortNum(0)
		if d.Type == ib.NodeSwitch {
			from.Port, port = 0, at.Port
		}
		w, ok := e.Found.ways[from]
		if !ok {
			return false
		}
		for block := range blocks(len(d.Ports[at.Port].PKeys.Value), mad.PKeysPerBlock) {
			asks = append(asks, ask{name: name{at.Device, at.Port, mad.AttrPKeyTable, mad.PKeyTableMod(port, uint16(block))}, route: w.route, at: w.at})
		}
	}
	r.amends, r.second = true, len(asks) == 0
	for i := range asks {
		r.add(asks[i])
	}
	return true
}

// move finds the adapters at the places of Earlier.Moved, and their owners now. It reports false if a GUID is of another owner now that a port
// of an adapter has as an alias, or may have.
func (r *Reader) move() bool {
	e := r.o.Earlier
	if len(e.Moved) == 0 {
		return true
	}
	devices, places := e.Found.Fabric.Devices, make(map[ib.Place]bool, len(e.Moved))
	for _, at := range e.Moved {
		places[at] = true
	}
	r.owners = map[proof.Place]proof.Owner{}
	for i := range e.Found.Ends {
		end := &e.Found.Ends[i]
		d := &devices[end.Port.Device]
		port := &d.Ports[end.Port.Port]
		owner := port.Owner
		if places[end.At] {
			owner = r.o.Owner(end.At, Identity{Type: d.Type, Node: d.GUID, Port: end.GUID})
		}
		if owner != port.Owner {
			r.owners[end.Port] = owner
		}
		for _, a := range port.Aliases {
			if r.o.Alias == nil || r.o.Alias(a.GUID, owner) != a.Owner {
				return false
			}
		}
	}
	return true
}

// place returns the port whose P_Key table a value is, if that was read.
func (f *Found) place(v Value) (proof.Place, bool) {
	i, ok := f.index[v.Node]
	if !ok || v.Attr != mad.AttrPKeyTable || v.Port == 0 || int(v.Port) >= len(f.Fabric.Devices[i].Ports) {
		return proof.Place{}, false
	}
	t := &f.Fabric.Devices[i].Ports[v.Port].PKeys
	return proof.Place{Device: i, Port: v.Port}, t.How == proof.WasRead && len(t.Value) > 0
}

// amended returns the earlier reading with the tables that were asked for, and the owners of now. It shares everything else with that.
func (r *Reader) amended() *Found {
	was := r.o.Earlier.Found
	f := *was
	f.Sent, f.Strays, f.Unknown = r.sent, r.unasked, slices.Clip(was.Unknown)
	f.Fabric = &proof.Fabric{Devices: slices.Clone(was.Fabric.Devices)}
	tables := map[proof.Place]proof.Read[[]ib.PKey]{}
	var order []proof.Place
	for i := range r.asks {
		q := &r.asks[i]
		at := proof.Place{Device: q.device, Port: q.port}
		t, known := tables[at]
		if !known {
			order, t.How = append(order, at), proof.WasRead
		}
		switch {
		case q.how == proof.WasRead:
			table := decode[mad.PKeyTable](q.data[:])
			t.Value = append(t.Value, table.PKey[:]...)
		case t.How == proof.WasRead:
			t.How = q.how
			d := &f.Fabric.Devices[at.Device]
			f.Unknown = append(f.Unknown, Unknown{at, fmt.Sprintf("%s port %d", d.Name, at.Port), "P_Key table", q.cause})
		}
		tables[at] = t
	}
	change := func(at proof.Place) *proof.Port {
		d := &f.Fabric.Devices[at.Device]
		if &d.Ports[0] == &was.Fabric.Devices[at.Device].Ports[0] {
			d.Ports = slices.Clone(d.Ports)
		}
		return &d.Ports[at.Port]
	}
	for _, at := range order {
		change(at).PKeys = tables[at]
	}
	for at, owner := range r.owners {
		change(at).Owner = owner
	}
	return &f
}

// ways returns how the devices are asked that were believed: switches, and adapters by each port.
func (r *Reader) ways() map[proof.Place]way {
	all := make(map[proof.Place]way, len(r.devices))
	for d := range r.devices {
		dev := &r.devices[d]
		switch {
		case dev.conflict:
		case dev.info.NodeType == ib.NodeSwitch:
			all[proof.Place{Device: d}] = way{dev.route, dev.at}
		default:
			for num := range dev.ports {
				if p := &dev.ports[num]; p.found {
					q := &r.asks[p.node]
					all[proof.Place{Device: d, Port: ib.PortNum(num)}] = way{q.route, q.at}
				}
			}
		}
	}
	return all
}
