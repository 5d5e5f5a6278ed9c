package proof

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
)

// Action is the kind of a change.
type Action uint8

// Actions, the least intrusive first.
const (
	ReadAgain       Action = iota // read what was not read
	FilterRaw                     // set FilterRawInbound and FilterRawOutbound of a switch port
	EnforceInbound                // set PartitionEnforcementInbound and FilterRawInbound
	EnforceOutbound               // set PartitionEnforcementOutbound and FilterRawOutbound
	LimitEntry                    // make an entry of a P_Key table a limited member
	RemoveEntry                   // remove an entry of a P_Key table
	RemoveAlias                   // remove an alias GUID
	Disable                       // disable a port
)

// Change is a change of one setting of one port. After it no packet passes from the one port of the counter-example to the
// other, by any route; after a change of an entry, none passes back either.
type Change struct {
	Action Action
	Port   string // device and number
	Index  int    // of the entry
	Key    ib.PKey
	GUID   ib.GUID // of the alias
}

// String returns an instruction for an operator.
func (c Change) String() string {
	switch c.Action {
	case ReadAgain:
		return "read " + c.Port + " again"
	case EnforceInbound:
		return "set PartitionEnforcementInbound and FilterRawInbound of " + c.Port
	case EnforceOutbound:
		return "set PartitionEnforcementOutbound and FilterRawOutbound of " + c.Port
	case FilterRaw:
		return "set FilterRawInbound and FilterRawOutbound of " + c.Port
	case LimitEntry:
		return fmt.Sprintf("make entry %d (%v) of the P_Key table of %s limited", c.Index, c.Key, c.Port)
	case RemoveEntry:
		return fmt.Sprintf("remove entry %d (%v) of the P_Key table of %s", c.Index, c.Key, c.Port)
	case RemoveAlias:
		return fmt.Sprintf("remove alias GUID %v of %s", c.GUID, c.Port)
	default:
		return "disable " + c.Port
	}
}

// trial is a change that may close a way.
type trial struct {
	Change
	at     Place
	holder int // ports of the same party that hold the partition: the party with fewer of them has a stray entry
}

// change returns the smallest change that closes the way of a packet.
func (p *pass) change(w witness) Change {
	switch m := w.meeting; {
	case m == nil:
	case m.alias != nil:
		return Change{Action: RemoveAlias, Port: p.f.name(m.at), GUID: m.alias.GUID}
	default:
		return Change{Action: Disable, Port: p.f.name(m.at)}
	}
	from, to := &p.edges[w.from], &p.edges[w.to]
	for _, e := range []*edge{from, to} {
		if e.party != routers && p.owners[e.party].Kind != Tenant {
			return Change{Action: Disable, Port: p.f.name(e.at)}
		}
	}
	var list []trial
	list = append(list, p.trials(from, EnforceInbound, w)...)
	list = append(list, p.trials(to, EnforceOutbound, w)...)
	slices.SortStableFunc(list, func(a, b trial) int {
		return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.holder, b.holder))
	})
	changed := *p.f
	changed.Devices = slices.Clone(p.f.Devices)
	for _, t := range list {
		if p.closes(&changed, t, w) {
			return t.Change
		}
	}
	return Change{Action: Disable, Port: p.f.name(to.at)}
}

// trials returns the changes at one end of a packet's way. Switch ports come first: a tenant cannot undo what is there.
func (p *pass) trials(e *edge, enforce Action, w witness) []trial {
	holder := p.holders(e.party, w.key)
	add := func(list []trial, a Action, at Place, i int, k ib.PKey) []trial {
		return append(list, trial{Change{Action: a, Port: p.f.name(at), Index: i, Key: k}, at, holder})
	}
	var list []trial
	places := []Place{e.at}
	if p.honest(e) {
		places = append(places, e.adapter)
	}
	if p.assume == Adapters {
		places = places[1:]
	}
	for _, at := range places {
		port := p.f.port(at)
		if at == e.at {
			if !port.Check.known() || p.f.Devices[at.Device].Inbound == InboundUnknown {
				list = add(list, ReadAgain, at, 0, 0)
			}
			list = add(list, enforce, at, 0, 0)
			list = add(list, FilterRaw, at, 0, 0)
		}
		if !port.PKeys.known() {
			list = add(list, ReadAgain, at, 0, 0)
		}
		for i, k := range port.PKeys.Value {
			if k.Base() == w.key.Base() && !w.raw {
				list = add(list, LimitEntry, at, i, k)
				list = add(list, RemoveEntry, at, i, k)
			}
		}
	}
	return list
}

// holders counts the ports of a party with a partition in the table of the switch port, or of the adapter.
func (p *pass) holders(of party, key ib.PKey) (n int) {
	for i := range p.edges {
		e := &p.edges[i]
		if e.party != of {
			continue
		}
		at := e.at
		if p.assume == Adapters && e.adapter.Port != 0 {
			at = e.adapter
		}
		if slices.ContainsFunc(p.f.port(at).PKeys.Value, func(k ib.PKey) bool { return k.Base() == key.Base() }) {
			n++
		}
	}
	return n
}

// closes reports whether no packet passes between the two ends after a change, by any route. It tries it in a copy of the fabric.
func (p *pass) closes(changed *Fabric, t trial, w witness) bool {
	d := &changed.Devices[t.at.Device]
	defer func(was []Port) { d.Ports = was }(d.Ports)
	d.Ports = slices.Clone(d.Ports)
	port := &d.Ports[t.at.Port]
	port.PKeys.Value = slices.Clone(port.PKeys.Value)
	after := *p
	w2 := *p.wiring
	w2.f = changed
	after.wiring = &w2
	switch t.Action {
	case ReadAgain: // it closes if the answer is the strictest possible
		w2.upper = false
	case EnforceInbound:
		port.Check.Value.Inbound, port.Check.Value.RawInbound = true, true
	case EnforceOutbound:
		port.Check.Value.Outbound, port.Check.Value.RawOutbound = true, true
	case FilterRaw:
		port.Check.Value.RawInbound, port.Check.Value.RawOutbound = true, true
	case LimitEntry:
		port.PKeys.Value[t.Index] = t.Key.Limited()
	default:
		port.PKeys.Value[t.Index] = 0
	}
	from, to := &p.edges[w.from], &p.edges[w.to]
	back := t.Action >= LimitEntry && !after.sends(to).and(after.receives(from)).empty()
	return !back && after.sends(from).and(after.receives(to)).empty()
}
