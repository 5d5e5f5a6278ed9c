package proof

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
)

// CounterExample is a packet that passes, and the smallest change that closes its way.
type CounterExample struct {
	Pair
	Certain bool // it passes; otherwise it may pass, depending on what was not read
	Key     ib.PKey
	Raw     bool   // it is raw, without a P_Key
	DLID    ib.LID // 0: forwarding tables were not read, or no switch is on the way
	Hops    []Hop
	Change  Change
}

// Hop is a device on the way of a packet.
type Hop struct {
	Device  string
	In, Out ib.PortNum // 0: the way begins or ends here
	Passed  []string   // why the device lets it pass: an entry, a setting, or what is missing
}

func (p *pass) explain(pair Pair, w witness, certain bool) CounterExample {
	c := CounterExample{Pair: pair, Certain: certain, Key: w.key, Raw: w.raw, DLID: w.lid, Change: p.change(w)}
	switch m := w.meeting; {
	case m != nil && m.alias != nil:
		c.Hops = []Hop{{Device: p.f.Devices[m.at.Device].Name, Out: m.at.Port, Passed: []string{
			fmt.Sprintf("the port of %v has GUID %v, which was issued to %v", p.f.port(m.at).Owner, m.alias.GUID, m.alias.Owner),
		}}}
	case m != nil:
		far, _ := p.f.far(m.at)
		c.Hops = []Hop{
			{Device: p.f.Devices[m.at.Device].Name, Out: m.at.Port, Passed: []string{"no switch is on this cable"}},
			{Device: p.f.Devices[far.Device].Name, In: far.Port, Passed: []string{p.end(far, w)}},
		}
	default:
		c.Hops = p.hops(w)
		if w.on != nil {
			on := p.hops(*w.on)
			at := &c.Hops[len(c.Hops)-1]
			at.Out = on[0].Out
			at.Passed = append(at.Passed, on[0].Passed...)
			c.Hops = append(c.Hops, on[1:]...)
		}
	}
	return c
}

// hops returns the way of a packet between two edges.
func (p *pass) hops(w witness) []Hop {
	from, to := &p.edges[w.from], &p.edges[w.to]
	hops := []Hop{p.outside(from, w)}
	hops[0].Out = from.adapter.Port
	in := from.at
	for _, out := range p.way(w) {
		h := Hop{Device: p.f.Devices[in.Device].Name, In: in.Port, Out: out.Port}
		h.Passed = []string{p.check(in, "inbound", w), p.forwards(out, w), p.check(out, "outbound", w)}
		hops = append(hops, h)
		in = p.next[out.Device][out.Port]
	}
	if w.lid == 0 {
		for i, at := range []Place{from.at, to.at} {
			h := Hop{Device: p.f.Devices[at.Device].Name, Passed: []string{p.check(at, []string{"inbound", "outbound"}[i], w)}}
			h.In, h.Out = at.Port*ib.PortNum(1-i), at.Port*ib.PortNum(i)
			h.Passed = append(h.Passed, "a forwarding table was not read, so any way is possible")
			hops = append(hops, h)
		}
	}
	last := p.outside(to, w)
	last.In = to.adapter.Port
	return append(hops, last)
}

// outside returns the hop of the device behind an edge.
func (p *pass) outside(e *edge, w witness) Hop {
	if e.adapter.Port == 0 {
		return Hop{Device: "device behind " + p.f.name(e.at), Passed: []string{"nothing is known of it"}}
	}
	why := "its adapter is not counted on"
	if p.honest(e) {
		why = p.end(e.adapter, w)
	}
	return Hop{Device: p.f.Devices[e.adapter.Device].Name, Passed: []string{why}}
}

// end says why the table of an end port lets a packet pass.
func (p *pass) end(at Place, w witness) string {
	if w.raw {
		return "raw packets carry no P_Key"
	}
	return p.entry(at, w.key)
}

// entry names the entry of a table that has the base of a P_Key, full membership first.
func (p *pass) entry(at Place, key ib.PKey) string {
	t := p.f.port(at).PKeys
	if !t.known() {
		return "the P_Key table of " + p.f.name(at) + " was not read"
	}
	i := slices.Index(t.Value, key.Full())
	if i < 0 {
		i = slices.Index(t.Value, key.Limited())
	}
	if i < 0 {
		return "no entry of " + p.f.name(at) + " is needed"
	}
	return fmt.Sprintf("entry %d of the P_Key table of %s is %v", i, p.f.name(at), t.Value[i])
}

// check says why the check of a switch port lets a packet pass.
func (p *pass) check(at Place, way string, w witness) string {
	c := p.f.port(at).Check
	enforced, filtered := c.Value.Inbound, c.Value.RawInbound
	if way == "outbound" {
		enforced, filtered = c.Value.Outbound, c.Value.RawOutbound
	}
	switch {
	case p.assume == Adapters:
		return "checks of switches are not counted on"
	case !c.known():
		return "enforcement of " + p.f.name(at) + " was not read"
	case w.raw && !filtered:
		return fmt.Sprintf("%s does not filter raw packets %s", p.f.name(at), way)
	case !enforced:
		return fmt.Sprintf("%s does not enforce P_Keys %s", p.f.name(at), way)
	default:
		return way + ", " + p.entry(at, w.key)
	}
}

func (p *pass) forwards(out Place, w witness) string {
	d := &p.f.Devices[out.Device]
	switch {
	case !w.lid.IsMulticast():
		return fmt.Sprintf("its LFT sends LID %v to port %d", w.lid, out.Port)
	case d.MFT.Value[w.lid] == Ports{}:
		return fmt.Sprintf("multicast LID 0x%04x has no entry, so it goes to the default port %d", uint16(w.lid), out.Port)
	default:
		return fmt.Sprintf("its MFT sends LID 0x%04x to port %d", uint16(w.lid), out.Port)
	}
}

// way returns the egress ports of a packet, switch by switch.
func (p *pass) way(w witness) []Place {
	to := p.edges[w.to].at
	if w.lid == 0 {
		return nil
	}
	if w.lid.IsUnicast() {
		var out []Place
		for sw := p.edges[w.from].at.Device; ; {
			at := Place{sw, p.egress(sw, w.lid)}
			out = append(out, at)
			if at == to {
				return out
			}
			sw = p.next[sw][at.Port].Device
		}
	}
	packet := keys{raw: w.raw}
	if !w.raw {
		packet.list = []ib.PKey{w.key}
	}
	from, last := p.edges[w.from].at, Place{}
	came := p.copies(from, w.lid, packet, func(in Place, edge int32, _ keys) {
		if edge == w.to && last.Port == 0 {
			last = in
		}
	})
	out := []Place{to}
	for at := last; at != from && at.Port != 0; at = came[at] {
		out = append(out, p.f.port(at).Cable)
	}
	slices.Reverse(out)
	return out
}
