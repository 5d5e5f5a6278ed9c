package proof

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof/bitset"
)

// source is a class that sends at a switch, with one of its edges there.
type source struct {
	class int32
	group
}

// station is the open classes that send at a switch, one edge for each.
type station struct {
	sw   int
	list []source
}

// sources returns the stations of all open classes, and those of parties that are looked at.
func (p *pass) sources() (all, few []station) {
	at := map[int]int{} // of all
	for i, rows := range p.open {
		if rows == nil {
			continue
		}
		for _, e := range p.send[i].edges {
			sw := p.edges[e].at.Device
			k, ok := at[sw]
			if !ok {
				k, all = len(all), append(all, station{sw: sw})
				at[sw] = k
			}
			if n := len(all[k].list); n == 0 || all[k].list[n-1].class != int32(i) {
				all[k].list = append(all[k].list, source{class: int32(i), group: group{edge: e}})
			}
		}
	}
	if p.only == nil {
		return all, all
	}
	for _, s := range all {
		mine := station{sw: s.sw}
		for _, x := range s.list {
			if p.only.Has(p.send[x.class].party) {
				mine.list = append(mine.list, x)
			}
		}
		if mine.list != nil {
			few = append(few, mine)
		}
	}
	return all, few
}

// lids is a set of LIDs, unicast and multicast; nil: all of them.
type lids struct{ set bitset.Set }

func (l *lids) has(lid ib.LID) bool { return l == nil || l.set.Has(int32(lid)) }

// mostLeads is from how many switches on all LIDs are followed, because they lead to too many ports.
const mostLeads = 64

// leads returns the LIDs by which a packet may leave the switches by one of the ports of classes that others may not send to: of all such
// classes, and of those of parties that are looked at. A packet with another LID is of no interest.
func (p *pass) leads() (open, mine *lids) {
	columns := make(bitset.Set, (len(p.recv)+63)/64)
	for _, row := range p.open {
		for i, w := range row {
			columns[i] |= w
		}
	}
	at, few, switches := make([]Ports, len(p.f.Devices)), make([]Ports, len(p.f.Devices)), 0
	for i := range p.edges {
		e, class := &p.edges[i], p.recvOf[i]
		if class < 0 || !columns.Has(class) {
			continue
		}
		if at[e.at.Device] == (Ports{}) {
			switches++
		}
		at[e.at.Device] = at[e.at.Device].with(e.at.Port)
		if p.only.Has(e.party) {
			few[e.at.Device] = few[e.at.Device].with(e.at.Port)
		}
	}
	if switches <= mostLeads {
		open = p.leadTo(at)
	}
	if p.only == nil {
		return open, open
	}
	return open, p.leadTo(few)
}

func (p *pass) leadTo(at []Ports) *lids {
	out := &lids{bitset.Of(int(ib.MaxMulticastLID) + 1)}
	for sw := range at {
		d, ports := &p.f.Devices[sw], &at[sw]
		if *ports == (Ports{}) {
			continue
		}
		for lid, num := range d.LFT.Value {
			if lid <= int(ib.MaxUnicastLID) && ports.Has(num) {
				out.set.Add(int32(lid))
			}
		}
		v := d.MulticastDefaults.Value
		for _, lid := range p.groups {
			mask := d.MFT.Value[lid]
			if mask.meets(ports) || mask == (Ports{}) && (ports.Has(v.Primary) || ports.Has(v.NotPrimary)) {
				out.set.Add(int32(lid))
			}
		}
	}
	return out
}

// findTransit finds the checks at ports between switches.
func (p *pass) findTransit() {
	if p.transit != nil {
		return
	}
	p.transit = map[Place][2]keys{}
	for dev, ports := range p.next {
		for num, far := range ports {
			if far.Port == 0 {
				continue
			}
			at := Place{dev, ib.PortNum(num)}
			if k := [2]keys{p.inbound(at), p.outbound(at)}; !k[0].same(everything) || !k[1].same(everything) {
				p.transit[at] = k
			}
		}
	}
}

// cross returns the packets of a set that pass a link between switches.
func (p *pass) cross(k keys, out, in Place) keys {
	if len(p.transit) == 0 {
		return k
	}
	if t, ok := p.transit[out]; ok {
		k = k.and(t[1])
	}
	if t, ok := p.transit[in]; ok {
		k = k.and(t[0])
	}
	return k
}

// unicast follows every unicast LID from every switch with an open class. A table has one egress port for a LID, so each
// switch has one end for it, and the ends are found together.
func (p *pass) unicast(all, few []station, open, mine *lids) {
	top := 0
	for i := range p.f.Devices {
		top = max(top, len(p.f.Devices[i].LFT.Value))
	}
	ends := ends{w: p.wiring, of: make([]int32, len(p.f.Devices)), when: make([]ib.LID, len(p.f.Devices))}
	for lid := ib.MinUnicastLID; int(lid) < top && lid <= ib.MaxUnicastLID; lid++ {
		from := few
		if mine.has(lid) {
			from = all
		} else if !open.has(lid) {
			continue
		}
		for _, s := range from {
			if to := ends.find(s.sw, lid); to >= 0 && p.recvOf[to] >= 0 {
				p.arrives(s.list, to, lid)
			}
		}
	}
}

// arrives examines the classes that send at one switch packets to a LID that ends at an edge.
func (p *pass) arrives(list []source, to int32, lid ib.LID) {
	j := p.recvOf[to]
	for _, s := range list {
		if !p.open[s.class].Has(j) || p.exhausted(s, group{to, alone}) {
			continue
		}
		if a, b := p.edges[s.edge].party, p.edges[to].party; len(p.transit) == 0 && p.settled(a, b) { // a packet that they have in common passes
			p.ends[0].mark(s.group, b)
			p.ends[1].mark(group{to, alone}, a)
			continue
		}
		k := p.send[s.class].keys.and(p.recv[j].keys)
		if len(p.transit) > 0 {
			k = p.along(p.edges[s.edge].at.Device, lid, k)
		}
		p.hit(s.group, group{to, alone}, k, lid)
	}
}

// along returns the packets of a set that pass every link on the way of a LID, which ends at an edge.
func (p *pass) along(sw int, lid ib.LID, k keys) keys {
	for !k.empty() {
		out := Place{sw, p.egress(sw, lid)}
		in := p.next[sw][out.Port]
		if in.Port == 0 {
			break
		}
		k = p.cross(k, out, in)
		sw = in.Device
	}
	return k
}

// ends finds the edge where a LID leaves the switches.
type ends struct {
	w    *wiring
	of   []int32  // by switch: the edge, -1: none
	when []ib.LID // the LID that it is for
	path []int
}

// find returns the edge that a LID reaches from a switch; -1: it is dropped, goes in circles, or ends in a switch.
func (e *ends) find(sw int, lid ib.LID) int32 {
	e.path = e.path[:0]
	end := int32(-1)
	for {
		if e.when[sw] == lid {
			end = e.of[sw]
			break
		}
		e.when[sw], e.of[sw] = lid, -1 // which stays where the way comes back here
		e.path = append(e.path, sw)
		if end = e.w.step(sw, lid); end >= noEdge {
			break
		}
		sw = int(nextSwitch - end)
	}
	for _, s := range e.path {
		e.of[s] = end
	}
	return end
}

// multicast follows every multicast LID from every switch with an open class. The port that packets come in by matters only
// if it is the default multicast port: otherwise a sender at most gets its own packet.
func (p *pass) multicast(all, few []station, open, mine *lids) {
	for _, lid := range p.groups {
		from := few
		if mine.has(lid) {
			from = all
		} else if !open.has(lid) {
			continue
		}
		for _, s := range from {
			if len(p.fan(s.sw, 0, lid)) == 0 {
				continue
			}
			p.spread(Place{s.sw, 0}, lid, s.list)
			d := p.f.Devices[s.sw].MulticastDefaults
			if !d.known() || int(d.Value.Primary) >= len(p.edgeAt[s.sw]) {
				continue
			}
			if e := p.edgeAt[s.sw][d.Value.Primary]; e >= 0 && p.sendOf[e] >= 0 {
				p.spread(p.edges[e].at, lid, []source{{p.sendOf[e], group{e, alone}}})
			}
		}
	}
}

// spread examines the copies of packets that classes send to a multicast LID from one switch.
func (p *pass) spread(from Place, lid ib.LID, list []source) {
	if len(p.transit) == 0 {
		p.copies(from, lid, everything, func(_ Place, to int32, k keys) { p.arrivesCopy(list, to, lid, k) })
		return
	}
	for _, s := range list {
		p.copies(from, lid, p.send[s.class].keys, func(_ Place, to int32, k keys) { p.arrivesCopy([]source{s}, to, lid, k) })
	}
}

func (p *pass) arrivesCopy(list []source, to int32, lid ib.LID, k keys) {
	j := p.recvOf[to]
	if j < 0 {
		return
	}
	for _, s := range list {
		if p.open[s.class].Has(j) && !p.exhausted(s, group{to, alone}) {
			p.hit(s.group, group{to, alone}, p.send[s.class].keys.and(p.recv[j].keys).and(k), lid)
		}
	}
}

// copies follows the copies of packets that entered a switch by a port. It calls reached for each edge, with the ingress
// port of the last switch and the packets that get there, and returns the link by which each ingress port was reached first:
// from the ingress port of the switch before. A port is followed again only for packets that are new there.
func (p *pass) copies(from Place, lid ib.LID, k keys, reached func(in Place, to int32, k keys)) map[Place]Place {
	seen, came := map[Place]keys{from: k}, map[Place]Place{}
	for queue := []Place{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, num := range p.fan(at.Device, at.Port, lid) {
			out := Place{at.Device, num}
			if to := p.edgeAt[out.Device][num]; to >= 0 {
				reached(at, to, seen[at])
				continue
			}
			in := p.next[out.Device][num]
			on := p.cross(seen[at], out, in)
			if before, known := seen[in]; in.Port != 0 && !on.empty() && !(known && before.or(on).same(before)) {
				if seen[in] = before.or(on); !known {
					came[in] = at
				}
				queue = append(queue, in)
			}
		}
	}
	return came
}
