package proof

import (
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof/bitset"
)

// party is the index of an owner that the statement covers. Shared services and infrastructure have no party.
type party = int32

const (
	noParty party = -1
	// routers is the party of declared routers, which pass packets on. It is no owner.
	routers party = 0

	noEdge, nextSwitch int32 = -1, -2
)

// edge is a port of a trusted switch behind which no trusted switch is.
type edge struct {
	at      Place // the switch port
	adapter Place // Port 0: no end port is known behind it
	party   party
}

// wiring is the part of a fabric that does not depend on P_Keys: who is where, and which links carry packets.
type wiring struct {
	f       *Fabric
	upper   bool // what was not read lets everything pass; otherwise it lets nothing pass
	owners  []Owner
	parties map[Owner]party
	uses    []int // by party: how many ports and aliases are of it; 0: it is no party any more
	edges   []edge
	edgeAt  [][]int32      // by device and port: index of the edge, noEdge: none, or nextSwitch minus the index of the trusted switch at the other end
	next    [][]Place      // by device and port: the port of the trusted switch at the other end; Port 0: none
	lfts    [][]ib.PortNum // by device: the LFT; nil: it was not read
	fresh   ib.PKey        // full membership of a partition that is in no table
	unread  []string       // what was not read, and counts
	tables  *memo

	beside  []Place  // ports with aliases, and those that are cabled to another adapter
	groups  []ib.LID // see mlids
	routed  bool     // all forwarding tables were read
	routers bool     // an edge leads to a declared router
}

func newWiring(f *Fabric, upper bool) *wiring {
	w := &wiring{f: f, upper: upper, owners: []Owner{{Kind: Infrastructure, Name: "routers"}}, uses: []int{0}, parties: map[Owner]party{}, tables: &memo{by: map[string]keys{}}, routed: true}
	w.edgeAt, w.next, w.lfts = make([][]int32, len(f.Devices)), make([][]Place, len(f.Devices)), make([][]ib.PortNum, len(f.Devices))
	ports := 0
	for i := range f.Devices {
		ports += len(f.Devices[i].Ports)
	}
	edgeAt, next := slices.Repeat([]int32{noEdge}, ports), make([]Place, ports)
	for i := range f.Devices {
		d := &f.Devices[i]
		n := len(d.Ports)
		if d.LFT.known() {
			w.lfts[i] = d.LFT.Value
		}
		w.edgeAt[i], edgeAt = edgeAt[:n:n], edgeAt[n:]
		w.next[i], next = next[:n:n], next[n:]
		for num := range d.Ports {
			p := &d.Ports[num]
			if d.Type != ib.NodeSwitch && num > 0 && (p.Owner.Kind == Tenant || p.Cable.Port != 0) {
				w.party(p.Owner)
			}
			for _, a := range p.Aliases {
				w.party(a.Owner)
			}
			at := Place{i, ib.PortNum(num)}
			if d.trusted() && num > 0 {
				w.cable(at)
			}
			if far, agreed := f.far(at); len(p.Aliases) > 0 || num > 0 && agreed && d.Type != ib.NodeSwitch && f.Devices[far.Device].Type != ib.NodeSwitch {
				w.beside = append(w.beside, at)
			}
		}
		w.routed = w.routed && (!d.trusted() || d.LFT.known() && d.MFT.known() && d.MulticastDefaults.known())
	}
	w.groups = w.mlids()
	w.findUnread()
	w.fresh = w.unused()
	return w
}

// party returns the party of the owner of a port or an alias, and adds it if it is new.
func (w *wiring) party(o Owner) party {
	if !o.hostile() {
		return noParty
	}
	o = o.canonical()
	at, ok := w.parties[o]
	if !ok {
		at = party(len(w.owners))
		w.parties[o] = at
		w.owners, w.uses = append(w.owners, o), append(w.uses, 0)
	}
	w.uses[at]++
	return at
}

// cable records what is behind a port of a trusted switch that carries packets. Only trusted devices are believed that
// their port is down.
func (w *wiring) cable(at Place) {
	if !w.carries(at) {
		return
	}
	far, agreed := w.f.far(at)
	if agreed && w.f.Devices[far.Device].trusted() {
		if w.carries(far) {
			w.next[at.Device][at.Port], w.edgeAt[at.Device][at.Port] = far, nextSwitch-int32(far.Device)
		}
		return
	}
	e, owner := edge{at: at}, Owner{}
	switch {
	case w.f.port(at).Owner.Kind == Spare:
		owner.Kind = Spare
	case agreed && w.f.Devices[far.Device].Type != ib.NodeSwitch:
		e.adapter, owner = far, w.f.port(far).Owner
	}
	e.party = w.party(owner)
	if e.party == noParty && w.f.Devices[far.Device].Type == ib.NodeRouter {
		e.party, w.routers = routers, true
	}
	w.edgeAt[at.Device][at.Port] = int32(len(w.edges))
	w.edges = append(w.edges, e)
}

// carries reports whether a port may carry data packets: it is neither down nor initializing.
func (w *wiring) carries(at Place) bool {
	s := w.f.port(at).State
	if !s.known() {
		return w.upper
	}
	return s.Value != ib.PortDown && s.Value != ib.PortInit
}

// crosses reports whether no packet may pass from one party to another.
func (w *wiring) crosses(a, b party) bool {
	return a != b && a >= 0 && b >= 0 && (a == routers || b == routers || w.owners[a].Kind == Tenant || w.owners[b].Kind == Tenant)
}

// unused returns a P_Key that no table has, or the highest one.
func (w *wiring) unused() ib.PKey {
	used := make(bitset.Set, 1<<15/64)
	for i := range w.f.Devices {
		for num := range w.f.Devices[i].Ports {
			for _, k := range w.f.Devices[i].Ports[num].PKeys.Value {
				used.Add(int32(k.Base()))
			}
		}
	}
	k := ib.PKey(1)
	for used.Has(int32(k)) && k < ib.DefaultPKeyLimited {
		k++
	}
	return k.Full()
}

// findUnread lists what trusted switches and end ports did not answer.
func (w *wiring) findUnread() {
	note := func(known bool, what string, at Place) {
		if !known {
			w.unread = append(w.unread, what+" of "+w.f.name(at))
		}
	}
	noteTable := func(known bool, what string, d *Device) {
		if !known {
			w.unread = append(w.unread, what+" of "+d.Name)
		}
	}
	for i := range w.f.Devices {
		d := &w.f.Devices[i]
		if !d.trusted() {
			for num := range d.Ports {
				at := Place{i, ib.PortNum(num)}
				far, agreed := w.f.far(at)
				note(!agreed || d.Ports[num].PKeys.known(), "P_Key table", at)
				note(!agreed || w.f.Devices[far.Device].trusted() || d.Ports[num].State.known(), "state", at)
			}
			continue
		}
		noteTable(d.LFT.known(), "LFT", d)
		noteTable(d.MFT.known(), "MFT", d)
		noteTable(d.MulticastDefaults.known(), "default multicast ports", d)
		for num := 1; num < len(d.Ports); num++ {
			at, p := Place{i, ib.PortNum(num)}, &d.Ports[num]
			note(p.State.known(), "state", at)
			if !w.carries(at) {
				continue
			}
			note(p.Check.known(), "enforcement", at)
			checks := !p.Check.known() || p.Check.Value.Inbound || p.Check.Value.Outbound
			note(p.PKeys.known() || !checks, "P_Key table", at)
			note(d.Inbound != InboundUnknown || p.Check.known() && !p.Check.Value.Inbound, "inbound rule", at)
		}
	}
}

// mlids returns the multicast LIDs that trusted switches forward, and one that no table has if there are default ports.
func (w *wiring) mlids() []ib.LID {
	seen, defaults := map[ib.LID]bool{}, false
	for i := range w.f.Devices {
		d := &w.f.Devices[i]
		if !d.trusted() {
			continue
		}
		for lid, ports := range d.MFT.Value {
			seen[lid] = seen[lid] || d.MFT.known() && ports != Ports{} && lid.IsMulticast()
		}
		v := d.MulticastDefaults
		defaults = defaults || v.known() && (v.Value.Primary != ib.NoPort || v.Value.NotPrimary != ib.NoPort)
	}
	maps.DeleteFunc(seen, func(_ ib.LID, forwarded bool) bool { return !forwarded })
	list := slices.Sorted(maps.Keys(seen))
	if !defaults {
		return list
	}
	for lid := ib.MinMulticastLID; lid <= ib.MaxMulticastLID; lid++ {
		if !seen[lid] {
			return append(list, lid)
		}
	}
	return list
}

// egress returns the port by which a switch sends a unicast LID; ib.NoPort drops it.
func (w *wiring) egress(sw int, lid ib.LID) ib.PortNum {
	if t := w.lfts[sw]; int(lid) < len(t) && int(t[lid]) < len(w.next[sw]) {
		return t[lid]
	}
	return ib.NoPort
}

// step returns what is behind the port by which a switch sends a unicast LID, as edgeAt has it.
func (w *wiring) step(sw int, lid ib.LID) int32 {
	if out := w.egress(sw, lid); out != ib.NoPort {
		return w.edgeAt[sw][out]
	}
	return noEdge
}

// fan returns the ports by which a switch sends a multicast LID that came in by a port.
func (w *wiring) fan(sw int, in ib.PortNum, lid ib.LID) []ib.PortNum {
	d := &w.f.Devices[sw]
	if !d.MFT.known() {
		return nil
	}
	mask := d.MFT.Value[lid]
	if mask == (Ports{}) {
		return w.unknownMulticast(sw, in)
	}
	var out []ib.PortNum
	for num := 1; num < len(d.Ports); num++ {
		if p := ib.PortNum(num); p != in && mask.Has(p) {
			out = append(out, p)
		}
	}
	return out
}

func (w *wiring) unknownMulticast(sw int, in ib.PortNum) []ib.PortNum {
	v := w.f.Devices[sw].MulticastDefaults
	if !v.known() {
		return nil
	}
	out := v.Value.Primary
	if in == out {
		out = v.Value.NotPrimary
	}
	if out == 0 || out == in || int(out) >= len(w.next[sw]) {
		return nil
	}
	return []ib.PortNum{out}
}
