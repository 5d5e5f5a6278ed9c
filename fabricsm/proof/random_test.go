package proof_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/sim/netlist"
)

// gardener plants leaks, and mistakes that may be none, in random small fabrics.
type gardener struct {
	*rand.Rand
	b       *bed
	tenants int
	unread  bool // a forwarding table was not read: the prover then knows less than the judge
}

func newGardener(tb testing.TB, seed uint64) *gardener {
	g := &gardener{Rand: rand.New(rand.NewPCG(seed, 0))}
	g.tenants = 2 + g.IntN(3)
	hosts := 4 + g.IntN(5)
	var l *netlist.Netlist
	var err error
	switch g.IntN(3) {
	case 0:
		l, err = netlist.Single(netlist.Shape{Hosts: hosts, Radix: 12})
	case 1:
		l, err = netlist.Chain(netlist.Shape{Hosts: hosts, Radix: 12, Switches: 3})
	default:
		l, err = netlist.FatTree2(netlist.Shape{Hosts: hosts, Radix: 12, Leaves: 2, Spines: 1 + g.IntN(2)})
	}
	g.b = grow(tb, l, err, func(h int) int { return h % g.tenants })
	return g
}

// host picks a tenant's host; foreign is the P_Key of a tenant that is not its own.
func (g *gardener) host() (dev int, adapter, front *proof.Port, foreign ib.PKey) {
	h := 2 + g.IntN(len(g.b.hosts)-2)
	dev = g.b.hosts[h]
	return dev, &g.b.Devices[dev].Ports[1], g.b.front(dev), keyOf((h%g.tenants + 1 + g.IntN(g.tenants-1)) % g.tenants)
}

func (g *gardener) coin() bool { return g.IntN(2) == 0 }

func (g *gardener) sw() *proof.Device { return &g.b.Devices[g.b.switches[g.IntN(len(g.b.switches))]] }

// num picks a port of a switch, more often one with a cable.
func (g *gardener) num(d *proof.Device) ib.PortNum {
	for range 3 {
		if n := 1 + g.IntN(len(d.Ports)-1); d.Ports[n].Cable.Port != 0 {
			return ib.PortNum(n)
		}
	}
	return ib.PortNum(1 + g.IntN(len(d.Ports)-1))
}

// key picks a P_Key that is in use somewhere.
func (g *gardener) key() ib.PKey {
	k := []ib.PKey{ib.DefaultPKeyLimited, storage, keyOf(g.IntN(g.tenants)), keyOf(g.IntN(g.tenants)), 0}[g.IntN(5)]
	if g.coin() {
		k |= 0x8000
	}
	return k
}

func (g *gardener) table() (t []ib.PKey) {
	for range g.IntN(4) {
		t = append(t, g.key())
	}
	return t
}

func (g *gardener) how() proof.Reading {
	return []proof.Reading{proof.NotRead, proof.Inconsistent}[g.IntN(2)]
}

// plants are what gardeners plant. certain ones let a packet pass even where both switches and adapters are counted on.
var plants = []struct {
	name    string
	certain bool
	plant   func(g *gardener)
}{
	{"inbound enforcement off", false, func(g *gardener) { _, _, s, _ := g.host(); s.Check.Value.Inbound = false }},
	{"outbound enforcement off", false, func(g *gardener) { _, _, s, _ := g.host(); s.Check.Value.Outbound = false }},
	{"all checks off", false, func(g *gardener) { _, _, s, _ := g.host(); s.Check.Value = proof.Checks{} }},
	{"raw filters off", false, func(g *gardener) {
		_, _, s, _ := g.host()
		s.Check.Value.RawInbound, s.Check.Value.RawOutbound = g.coin(), g.coin()
	}},
	{"stray P_Key at an adapter", false, func(g *gardener) { _, a, _, k := g.host(); a.PKeys.Value = append(a.PKeys.Value, k.Full()) }},
	{"stray P_Key at a switch port", false, func(g *gardener) { _, _, s, k := g.host(); s.PKeys.Value = append(s.PKeys.Value, k.Full()) }},
	{"stray limited P_Key at both", false, func(g *gardener) {
		_, a, s, k := g.host()
		a.PKeys.Value, s.PKeys.Value = append(a.PKeys.Value, k), append(s.PKeys.Value, k)
	}},
	{"full member of the shared partition", true, func(g *gardener) {
		_, a, s, _ := g.host()
		a.PKeys.Value, s.PKeys.Value = append(a.PKeys.Value, storage.Full()), append(s.PKeys.Value, storage.Full())
	}},
	{"full member of the default partition", true, func(g *gardener) {
		_, a, s, _ := g.host()
		a.PKeys.Value[0], s.PKeys.Value[0] = ib.DefaultPKeyFull, ib.DefaultPKeyFull
	}},
	{"route of a LID that is not in use", false, func(g *gardener) {
		d := g.sw()
		d.LFT.Value = append(d.LFT.Value, g.num(d))
	}},
	{"wrong route", false, func(g *gardener) { d := g.sw(); d.LFT.Value[g.IntN(len(d.LFT.Value))] = g.num(d) }},
	{"no route", false, func(g *gardener) { d := g.sw(); d.LFT.Value = d.LFT.Value[:1+g.IntN(max(1, len(d.LFT.Value)-1))] }},
	{"wrong multicast entry", false, func(g *gardener) {
		d := g.sw()
		lid := group(g.IntN(6))
		d.MFT.Value[lid] = add(d.MFT.Value[lid], g.num(d))
	}},
	{"default multicast ports", false, func(g *gardener) {
		d := g.sw()
		d.MulticastDefaults.Value = proof.Defaults{Primary: g.num(d), NotPrimary: g.num(d)}
	}},
	{"no routes to a switch's hosts, but groups", false, func(g *gardener) {
		d := g.sw()
		for i := range d.LFT.Value {
			d.LFT.Value[i] = ib.NoPort
		}
	}},
	{"undeclared adapter", false, func(g *gardener) { g.stranger(ib.NodeCA, proof.Owner{Name: "ignored"}) }},
	{"adapter at a spare port", false, func(g *gardener) { g.stranger(ib.NodeCA, proof.Owner{}).Owner = spare }},
	{"undeclared switch", false, func(g *gardener) { g.stranger(ib.NodeSwitch, proof.Owner{}) }},
	{"undeclared router", false, func(g *gardener) { g.stranger(ib.NodeRouter, proof.Owner{}) }},
	{"declared router", false, func(g *gardener) { g.stranger(ib.NodeRouter, proof.Owner{Kind: proof.Infrastructure}) }},
	{"router between islands", false, (*gardener).bridge},
	{"only default multicast", false, (*gardener).bare},
	{"alias GUID", false, func(g *gardener) {
		_, a, _, _ := g.host()
		a.Aliases = append(a.Aliases, proof.Alias{GUID: 1, Owner: tenant(g.IntN(g.tenants))})
	}},
	{"cable between adapters", false, (*gardener).shortcut},
	{"membership ignored inbound", false, func(g *gardener) { g.sw().Inbound = proof.InboundBaseOnly }},
	{"inbound rule unknown", false, func(g *gardener) { g.sw().Inbound = proof.InboundUnknown }},
	{"port down", false, func(g *gardener) { d := g.sw(); d.Ports[g.num(d)].State.Value = ib.PortState(g.IntN(6)) }},
	{"cable seen at one end only", false, func(g *gardener) { d := g.sw(); d.Ports[g.num(d)].Cable = proof.Place{} }},
	{"checks between switches", false, (*gardener).checkBetween},
	{"P_Key table not read", false, func(g *gardener) {
		if _, a, s, _ := g.host(); g.coin() {
			a.PKeys.How = g.how()
		} else {
			s.PKeys.How = g.how()
		}
	}},
	{"checks not read", false, func(g *gardener) { d := g.sw(); d.Ports[g.num(d)].Check.How = g.how() }},
	{"state not read", false, func(g *gardener) { d := g.sw(); d.Ports[g.num(d)].State.How = g.how() }},
	{"LFT not read", false, func(g *gardener) { g.unread, g.sw().LFT.How = true, g.how() }},
	{"MFT not read", false, func(g *gardener) { g.unread, g.sw().MFT.How = true, g.how() }},
	{"default multicast ports not read", false, func(g *gardener) { g.unread, g.sw().MulticastDefaults.How = true, g.how() }},
}

// stranger cables a device to a free port of a switch, and returns the switch port.
func (g *gardener) stranger(kind ib.NodeType, o proof.Owner) *proof.Port {
	d := g.sw()
	for num := 1; num < len(d.Ports); num++ {
		p := &d.Ports[num]
		if p.Cable.Port != 0 {
			continue
		}
		self := g.b.byName[d.Name]
		p.Cable, p.State = at(len(g.b.Devices), 1), proof.Known(ib.PortActive)
		p.PKeys.Value = g.table()
		p.Check.Value = proof.Checks{Inbound: g.coin(), Outbound: g.coin(), RawInbound: g.coin(), RawOutbound: g.coin()}
		for _, sw := range g.b.switches {
			row := &g.b.Devices[sw].LFT
			next := ib.NoPort
			if lid := g.b.lid(self); int(lid) < len(row.Value) {
				next = row.Value[lid]
			}
			if sw == self {
				next = ib.PortNum(num)
			}
			row.Value = append(row.Value, next)
		}
		g.b.Devices = append(g.b.Devices, proof.Device{Name: fmt.Sprintf("x%d", len(g.b.Devices)), Type: kind, Ports: []proof.Port{{}, {
			Owner: o, State: proof.Known(ib.PortActive), Cable: at(self, num), PKeys: proof.Known(g.table()),
		}}})
		return &g.b.Devices[self].Ports[num]
	}
	return &proof.Port{} // all ports are in use
}

// free returns a port of a switch without a cable; 0: none.
func (g *gardener) free(sw int) int {
	for num := range g.b.Devices[sw].Ports {
		if num > 0 && g.b.Devices[sw].Ports[num].Cable.Port == 0 {
			return num
		}
	}
	return 0
}

// bridge puts a router with two ports in the place of a link between switches, and adds strange P_Keys.
func (g *gardener) bridge() {
	x := g.b.switches[g.IntN(len(g.b.switches))]
	for num := range g.b.Devices[x].Ports {
		c := g.b.Devices[x].Ports[num].Cable
		if c.Port == 0 || g.b.Devices[c.Device].Type != ib.NodeSwitch || g.free(x) == 0 || g.free(c.Device) == 0 {
			continue
		}
		g.b.Devices[x].Ports[num].State.Value = ib.PortDown
		router := proof.Device{Name: "r", Type: ib.NodeRouter, Ports: make([]proof.Port, 3)}
		id := len(g.b.Devices)
		for i, sw := range []int{x, c.Device} {
			at1 := at(sw, g.free(sw))
			router.Ports[i+1] = proof.Port{
				Owner: proof.Owner{Kind: proof.Infrastructure}, Cable: at1, State: proof.Known(ib.PortActive), PKeys: proof.Known(append(g.table(), g.key(), g.key())),
			}
			if g.IntN(4) == 0 {
				router.Ports[i+1].PKeys.How = g.how()
			}
			p := g.b.port(at1)
			p.Cable, p.State = at(id, i+1), proof.Known(ib.PortActive)
			g.b.Devices[sw].LFT.Value = append(g.b.Devices[sw].LFT.Value, at1.Port)
		}
		g.b.Devices = append(g.b.Devices, router)
		for range 3 {
			_, a, s, k := g.host()
			if g.coin() {
				k = k.Full()
			}
			a.PKeys.Value, s.PKeys.Value = append(a.PKeys.Value, k), append(s.PKeys.Value, k)
		}
		return
	}
}

// bare leaves no way for packets but default multicast ports, and makes hosts full members of the default partition.
func (g *gardener) bare() {
	for _, sw := range g.b.switches {
		d := &g.b.Devices[sw]
		clear(d.MFT.Value)
		for i := range d.LFT.Value {
			d.LFT.Value[i] = ib.NoPort
		}
		d.MulticastDefaults.Value = proof.Defaults{Primary: g.num(d), NotPrimary: g.num(d)}
	}
	for range 1 + g.IntN(3) {
		_, a, s, _ := g.host()
		a.PKeys.Value[0], s.PKeys.Value[0] = ib.DefaultPKeyFull, ib.DefaultPKeyFull
	}
}

// shortcut cables two hosts to each other, by their second ports.
func (g *gardener) shortcut() {
	x, a, _, _ := g.host()
	y, b, _, _ := g.host()
	if x == y {
		return
	}
	i, j := len(g.b.Devices[x].Ports), len(g.b.Devices[y].Ports)
	port := func(o *proof.Port, to proof.Place) proof.Port {
		p := proof.Port{Owner: o.Owner, Cable: to, State: proof.Known(ib.PortActive), PKeys: proof.Known(g.table())}
		if g.IntN(4) == 0 {
			p.PKeys.How = proof.NotRead
		}
		return p
	}
	one, two := port(a, at(y, j)), port(b, at(x, i))
	g.b.Devices[x].Ports = append(g.b.Devices[x].Ports, one)
	g.b.Devices[y].Ports = append(g.b.Devices[y].Ports, two)
}

// checkBetween makes one switch port check that faces another switch.
func (g *gardener) checkBetween() {
	d := g.sw()
	for num := range d.Ports {
		if c := d.Ports[num].Cable; c.Port != 0 && g.b.Devices[c.Device].Type == ib.NodeSwitch {
			d.Ports[num].PKeys.Value = append(g.table(), g.key())
			d.Ports[num].Check.Value = proof.Checks{Inbound: g.coin(), Outbound: g.coin(), RawInbound: g.coin(), RawOutbound: g.coin()}
		}
	}
}

// fabrics is how many random fabrics are judged.
const fabrics = 10_000

func TestProverAndJudgeAgree(t *testing.T) {
	counts := map[proof.Status]int{}
	kinds := make([]int, len(plants))
	for seed := range uint64(fabrics) {
		g := newGardener(t, seed)
		var planted []string
		certain := false
		for range []int{0, 1, 1, 1, 2, 3, 5}[g.IntN(7)] {
			i := g.IntN(len(plants))
			plants[i].plant(g)
			planted = append(planted, plants[i].name)
			certain = certain || plants[i].certain
			kinds[i]++
		}
		r, err := proof.Prove(g.b.Fabric)
		if err != nil {
			t.Fatal(err)
		}
		if len(planted) == 0 && !(r.Holds(proof.Both) && r.Holds(proof.Switches) && r.Holds(proof.Adapters)) {
			t.Errorf("seed %d: a clean fabric is accused: %v", seed, r.Open(proof.Switches))
		}
		if len(planted) == 1 && certain && r.Holds(proof.Both) {
			t.Errorf("seed %d: %v not found", seed, planted)
		}
		g.compare(t, seed, planted, r, counts)
		if t.Failed() {
			t.FailNow()
		}
	}
	for i, n := range kinds {
		if n < fabrics/100 {
			t.Errorf("%q was planted in %d of %d fabrics", plants[i].name, n, fabrics)
		}
	}
	for _, s := range []proof.Status{proof.Unproven, proof.Leaks, proof.Isolated} {
		if counts[s] < fabrics/4 {
			t.Errorf("%v is the verdict on %d pairs only", s, counts[s])
		}
	}
}

// compare compares all pairs and assumptions with the judge, and examines counter-examples.
func (g *gardener) compare(t *testing.T, seed uint64, planted []string, r *proof.Result, counts map[proof.Status]int) {
	t.Helper()
	best, worst := sentence(g.b.Fabric, false), sentence(g.b.Fabric, true)
	lower, upper := best.leaks, worst.leaks
	g.comparePorts(t, seed, planted, r, best, worst)
	for _, assume := range []proof.Assumption{proof.Both, proof.Switches, proof.Adapters} {
		g.examine(t, seed, planted, r, assume)
	}
	parties := r.Parties()
	for pair := range upper {
		if v := r.Pair(pair[0], pair[1]); v == held {
			t.Errorf("seed %d %v: the judge sees packets from %v to %v", seed, planted, pair[0], pair[1])
		}
	}
	for i, a := range parties {
		for _, b := range parties[:i] {
			v := r.Pair(a, b)
			there, back := [2]proof.Owner{a, b}, [2]proof.Owner{b, a}
			for assume, got := range v {
				bit := mask(1) << assume
				want := proof.Isolated
				switch {
				case (lower[there]|lower[back])&bit != 0:
					want = proof.Leaks
				case (upper[there]|upper[back])&bit != 0:
					want = proof.Unproven
				}
				counts[got]++
				cautious := g.unread && want == proof.Isolated && got == proof.Unproven
				if got != want && !cautious {
					t.Errorf("seed %d %v: %v and %v under %v: prover %v, judge %v", seed, planted, a, b, proof.Assumption(assume), got, want)
				}
			}
		}
	}
}

// examine sends the packets of all counter-examples, and fails for those that do not pass.
func (g *gardener) examine(t *testing.T, seed uint64, planted []string, r *proof.Result, assume proof.Assumption) {
	t.Helper()
	for _, pair := range r.Open(assume) {
		c, err := r.Explain(assume, pair)
		if err != nil {
			t.Fatal(err)
		}
		if c.DLID == 0 { // no switch is on the way, or a forwarding table was not read
			continue
		}
		first := c.Hops[1]
		from := at(g.b.byName[first.Device], int(first.In))
		if replay(g.b.Fabric, from, &c)&(1<<assume) == 0 {
			t.Errorf("seed %d %v: this packet does not pass under %v: %+v", seed, planted, assume, c)
		}
	}
}
