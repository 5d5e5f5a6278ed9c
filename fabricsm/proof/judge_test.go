package proof_test

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

// judge decides what the prover decides, slowly: it sends every packet from every port, and follows each copy through the
// tables one hop after another. It shares only the types of the input with the prover.
type judge struct {
	f     *proof.Fabric
	worst bool // what was not read lets everything pass
	keys  []ib.PKey
	lids  []ib.LID
	leaks map[[2]proof.Owner]mask
	from  map[proof.Place]mask // ports whose packets cross
	to    map[proof.Place]mask // ports that get such packets

	origin proof.Place // of the packet that is under way
}

// mask has one bit for each assumption under which a packet is still on its way.
type mask uint8

const (
	both mask = 1 << iota
	switchesOnly
	adaptersOnly

	always = both | switchesOnly | adaptersOnly
)

// rawPacket stands for a packet without a P_Key. No other packet has this value, because its base is 0.
const rawPacket ib.PKey = 0x8000

func sentence(f *proof.Fabric, worst bool) *judge {
	j := &judge{f: f, worst: worst, leaks: map[[2]proof.Owner]mask{}, from: map[proof.Place]mask{}, to: map[proof.Place]mask{}}
	j.choose()
	j.neighbours()
	for dev := range f.Devices {
		for num := range f.Devices[dev].Ports {
			if from := at(dev, num); j.isEdge(from) {
				j.sendAll(from)
			}
		}
	}
	return j
}

// choose lists the P_Keys and LIDs that differ for any table: those that are in some, and one that is in none.
func (j *judge) choose() {
	bases, lids := map[ib.PKey]bool{}, map[ib.LID]bool{0xFFFE: true}
	for _, d := range j.f.Devices {
		for _, p := range d.Ports {
			for _, k := range p.PKeys.Value {
				bases[k.Base()] = true
			}
		}
		for lid := range d.MFT.Value {
			lids[lid] = true
		}
		for lid := range d.LFT.Value {
			lids[ib.LID(lid)] = lid > 0
		}
	}
	delete(bases, 0)
	for k := ib.PKey(1); ; k++ {
		if !bases[k] {
			bases[k] = true
			break
		}
	}
	j.keys = []ib.PKey{rawPacket}
	for k := range bases {
		j.keys = append(j.keys, k, k.Full())
	}
	for lid, used := range lids {
		if used {
			j.lids = append(j.lids, lid)
		}
	}
	slices.SortFunc(j.lids, cmp.Compare[ib.LID])
}

func (j *judge) isSwitch(dev int) bool {
	return j.f.Devices[dev].Type == ib.NodeSwitch && j.f.Devices[dev].Owner.Kind == proof.Infrastructure
}

// peer is the port at the other end of a cable, if both ends say so.
func (j *judge) peer(p proof.Place) (proof.Place, bool) {
	c := j.f.Devices[p.Device].Ports[p.Port].Cable
	if c.Port == 0 || c == p || j.f.Devices[c.Device].Ports[c.Port].Cable != p {
		return proof.Place{}, false
	}
	return c, true
}

func (j *judge) live(p proof.Place) bool {
	s := j.f.Devices[p.Device].Ports[p.Port].State
	if s.How != proof.WasRead {
		return j.worst
	}
	return s.Value > ib.PortInit || s.Value == ib.PortNop
}

func (j *judge) isEdge(p proof.Place) bool {
	if p.Port == 0 || !j.isSwitch(p.Device) || !j.live(p) {
		return false
	}
	c, ok := j.peer(p)
	return !ok || !j.isSwitch(c.Device)
}

// behind is the owner of what is behind an edge, and its port if one is known.
func (j *judge) behind(p proof.Place) (o proof.Owner, adapter *proof.Port, router bool) {
	if j.f.Devices[p.Device].Ports[p.Port].Owner.Kind == proof.Spare {
		return proof.Owner{Kind: proof.Spare}, nil, false
	}
	c, ok := j.peer(p)
	if !ok || j.f.Devices[c.Device].Type == ib.NodeSwitch {
		return proof.Owner{}, nil, false
	}
	adapter = &j.f.Devices[c.Device].Ports[c.Port]
	o = adapter.Owner
	if o.Kind < proof.Tenant {
		o.Name = ""
	}
	return o, adapter, j.f.Devices[c.Device].Type == ib.NodeRouter && o.Kind > proof.Tenant
}

// holds reports whether a table has an entry that lets a packet pass.
func (j *judge) holds(t proof.Read[[]ib.PKey], k ib.PKey, pass func(entry ib.PKey) bool) bool {
	if t.How != proof.WasRead {
		return j.worst
	}
	return slices.ContainsFunc(t.Value, func(e ib.PKey) bool {
		return e&0x7FFF != 0 && e&0x7FFF == k&0x7FFF && pass(e)
	})
}

// gate reports whether the check of a switch port lets a packet pass.
func (j *judge) gate(p proof.Place, k ib.PKey, inbound bool) bool {
	d := &j.f.Devices[p.Device]
	port := &d.Ports[p.Port]
	checks, rule := port.Check.Value, d.Inbound
	if port.Check.How != proof.WasRead {
		checks = proof.Checks{Inbound: !j.worst, Outbound: !j.worst, RawInbound: !j.worst, RawOutbound: !j.worst}
	}
	if k == rawPacket {
		return inbound && !checks.RawInbound || !inbound && !checks.RawOutbound
	}
	if inbound {
		if rule == proof.InboundUnknown && j.worst {
			rule = proof.InboundBaseOnly
		}
		return !checks.Inbound || j.holds(port.PKeys, k, func(e ib.PKey) bool {
			return rule == proof.InboundBaseOnly || e >= 0x8000 || k < 0x8000
		})
	}
	return !checks.Outbound || j.holds(port.PKeys, k, func(e ib.PKey) bool { return e >= 0x8000 || k >= 0x8000 })
}

// through removes the assumptions under which a switch port stops a packet.
func (j *judge) through(m mask, p proof.Place, k ib.PKey, inbound bool) mask {
	if m != 0 && !j.gate(p, k, inbound) {
		m &= adaptersOnly
	}
	return m
}

func (j *judge) sendAll(from proof.Place) {
	o, adapter, router := j.behind(from)
	if router || o.Kind > proof.Tenant {
		return
	}
	j.origin, _ = j.peer(from)
	for _, k := range j.keys {
		forwarded := mask(0)
		for _, lid := range j.lids {
			forwarded |= j.send(o, from, k, lid, j.start(o, adapter, k))
		}
		if forwarded != 0 {
			j.forward(o, k, forwarded)
		}
	}
}

// start returns the assumptions under which a sender sends a packet.
func (j *judge) start(o proof.Owner, adapter *proof.Port, k ib.PKey) mask {
	switch {
	case k == rawPacket:
		return always &^ adaptersOnly
	case o.Kind == proof.Tenant && !j.holds(adapter.PKeys, k, func(e ib.PKey) bool { return e == k }):
		return switchesOnly
	default:
		return always
	}
}

// replay sends the packet of a counter-example from its first switch port, and returns the assumptions under which it passes.
func replay(f *proof.Fabric, from proof.Place, c *proof.CounterExample) mask {
	j := &judge{f: f, worst: !c.Certain, leaks: map[[2]proof.Owner]mask{}, from: map[proof.Place]mask{}, to: map[proof.Place]mask{}}
	j.choose()
	k := c.Key
	if c.Raw {
		k = rawPacket
	}
	o, adapter, _ := j.behind(from)
	if forwarded := j.send(o, from, k, c.DLID, j.start(o, adapter, k)); forwarded != 0 {
		j.forward(o, k, forwarded)
	}
	return j.leaks[[2]proof.Owner{c.From, c.To}]
}

// forward sends a packet on from every router that may.
func (j *judge) forward(o proof.Owner, k ib.PKey, m mask) {
	for dev := range j.f.Devices {
		for num := range j.f.Devices[dev].Ports {
			from := at(dev, num)
			if !j.isEdge(from) {
				continue
			}
			if _, adapter, router := j.behind(from); router && j.holds(adapter.PKeys, k, k.Matches) {
				for _, lid := range j.lids {
					j.send(o, from, k, lid, m)
				}
			}
		}
	}
}

// send follows one packet, and returns the assumptions under which a router gets it.
func (j *judge) send(o proof.Owner, from proof.Place, k ib.PKey, lid ib.LID, m mask) (router mask) {
	if m = j.through(m, from, k, true); m == 0 {
		return 0
	}
	type copied struct {
		in proof.Place
		m  mask
	}
	seen := map[proof.Place]mask{}
	for queue := []copied{{from, m}}; len(queue) > 0; queue = queue[1:] {
		c := queue[0]
		if c.m &^= seen[c.in]; c.m == 0 {
			continue
		}
		seen[c.in] |= c.m
		for _, num := range j.egress(c.in, lid) {
			out := proof.Place{Device: c.in.Device, Port: num}
			if !j.live(out) {
				continue
			}
			m := j.through(c.m, out, k, false)
			if j.isEdge(out) {
				router |= j.arrive(o, out, k, m)
				continue
			}
			if in, _ := j.peer(out); j.live(in) {
				queue = append(queue, copied{in, j.through(m, in, k, true)})
			}
		}
	}
	return router
}

// arrive ends a packet behind an edge.
func (j *judge) arrive(o proof.Owner, out proof.Place, k ib.PKey, m mask) (router mask) {
	to, adapter, isRouter := j.behind(out)
	switch {
	case isRouter && k != rawPacket && j.holds(adapter.PKeys, k, k.Matches):
		return m
	case isRouter:
		return 0
	case to.Kind == proof.Tenant && k != rawPacket && !j.holds(adapter.PKeys, k, k.Matches):
		m &= switchesOnly
	}
	end, _ := j.peer(out)
	j.accuse(o, to, j.origin, end, m)
	return 0
}

func (j *judge) accuse(a, b proof.Owner, from, to proof.Place, m mask) {
	if a != b && m != 0 && a.Kind <= proof.Tenant && b.Kind <= proof.Tenant && (a.Kind == proof.Tenant || b.Kind == proof.Tenant) {
		j.leaks[[2]proof.Owner{a, b}] |= m
		j.from[from] |= m
		j.to[to] |= m
	}
}

// egress lists the ports by which a switch sends a packet.
func (j *judge) egress(in proof.Place, lid ib.LID) (out []ib.PortNum) {
	d := &j.f.Devices[in.Device]
	everywhere := func() {
		for num := 1; num < len(d.Ports) && j.worst; num++ {
			out = append(out, ib.PortNum(num))
		}
	}
	switch {
	case lid < 0xC000 && d.LFT.How != proof.WasRead, lid >= 0xC000 && d.MFT.How != proof.WasRead:
		everywhere()
	case lid < 0xC000:
		if int(lid) < len(d.LFT.Value) && d.LFT.Value[lid] != 0 && int(d.LFT.Value[lid]) < len(d.Ports) {
			out = append(out, d.LFT.Value[lid])
		}
	case d.MFT.Value[lid] != proof.Ports{}:
		set := d.MFT.Value[lid]
		for num := 1; num < len(d.Ports); num++ {
			if n := ib.PortNum(num); set.Has(n) && n != in.Port {
				out = append(out, n)
			}
		}
	case d.MulticastDefaults.How != proof.WasRead:
		everywhere()
	default:
		num := d.MulticastDefaults.Value.Primary
		if num == in.Port {
			num = d.MulticastDefaults.Value.NotPrimary
		}
		if num != 0 && num != in.Port && int(num) < len(d.Ports) {
			out = append(out, num)
		}
	}
	return out
}

// neighbours accuses parties that meet without a switch.
func (j *judge) neighbours() {
	for dev := range j.f.Devices {
		for num := range j.f.Devices[dev].Ports {
			here := at(dev, num)
			p := &j.f.Devices[dev].Ports[num]
			for _, a := range p.Aliases {
				j.accuse(p.Owner, a.Owner, here, here, always)
			}
			c, ok := j.peer(here)
			if num == 0 || !ok || j.f.Devices[dev].Type == ib.NodeSwitch || j.f.Devices[c.Device].Type == ib.NodeSwitch || !j.live(here) && !j.live(c) {
				continue
			}
			far := &j.f.Devices[c.Device].Ports[c.Port]
			for _, k := range j.keys {
				m := always
				if k == rawPacket {
					m &^= adaptersOnly
				}
				tenants := p.Owner.Kind == proof.Tenant && !j.holds(p.PKeys, k, func(e ib.PKey) bool { return e == k }) ||
					far.Owner.Kind == proof.Tenant && !j.holds(far.PKeys, k, k.Matches)
				if k != rawPacket && tenants {
					m &= switchesOnly
				}
				j.accuse(p.Owner, far.Owner, here, c, m)
			}
		}
	}
}
