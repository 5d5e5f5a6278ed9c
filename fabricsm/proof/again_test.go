package proof_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/sim/netlist"
)

var every = []proof.Assumption{proof.Both, proof.Switches, proof.Adapters}

// withTable returns a fabric that shares everything but the P_Key table of a port.
func withTable(f *proof.Fabric, at proof.Place, table []ib.PKey) *proof.Fabric {
	out := &proof.Fabric{Devices: slices.Clone(f.Devices)}
	d := &out.Devices[at.Device]
	d.Ports = slices.Clone(d.Ports)
	d.Ports[at.Port].PKeys.Value = table
	return out
}

// withOwner returns a fabric that shares everything but the owner of a port.
func withOwner(f *proof.Fabric, at proof.Place, o proof.Owner) *proof.Fabric {
	out := withTable(f, at, f.Devices[at.Device].Ports[at.Port].PKeys.Value)
	out.Devices[at.Device].Ports[at.Port].Owner = o
	return out
}

// copied returns a fabric that shares nothing.
func copied(f *proof.Fabric) *proof.Fabric {
	out := &proof.Fabric{Devices: slices.Clone(f.Devices)}
	for i := range out.Devices {
		d := &out.Devices[i]
		d.Ports = slices.Clone(d.Ports)
		d.LFT.Value, d.MFT.Value = slices.Clone(d.LFT.Value), maps.Clone(d.MFT.Value)
		for num := range d.Ports {
			p := &d.Ports[num]
			p.PKeys.Value, p.Aliases = slices.Clone(p.PKeys.Value), slices.Clone(p.Aliases)
		}
	}
	return out
}

// disagreements returns in what two results differ: all pairs and their depth, all ports, what was not read, what only routes keep apart,
// and whether there are counter-examples.
func disagreements(f *proof.Fabric, a, b *proof.Result) (list []string) {
	note := func(what string, x, y any) {
		if !reflect.DeepEqual(x, y) {
			list = append(list, fmt.Sprintf("%s: %v, and %v of everything", what, x, y))
		}
	}
	note("parties", a.Parties(), b.Parties())
	note("unread", a.Unread(), b.Unread())
	for _, assume := range every {
		note(fmt.Sprintf("open under %v", assume), a.Open(assume), b.Open(assume))
		note(fmt.Sprintf("holds under %v", assume), a.Holds(assume), b.Holds(assume))
		note(fmt.Sprintf("by routes under %v", assume), a.ByRoutes(assume), b.ByRoutes(assume))
		note(fmt.Sprintf("edges under %v", assume), a.Edges(assume), b.Edges(assume))
		for _, pair := range b.Open(assume) {
			x, err := a.Explain(assume, pair)
			y, other := b.Explain(assume, pair)
			note(fmt.Sprintf("explained %v under %v", pair, assume), err, other)
			note(fmt.Sprintf("certain %v under %v", pair, assume), x.Certain, y.Certain)
			note(fmt.Sprintf("passes %v under %v", pair, assume), a.Passes(assume, pair), y.Certain)
		}
	}
	for _, x := range b.Parties() {
		for _, y := range b.Parties() {
			note(fmt.Sprintf("%v and %v", x, y), a.Pair(x, y), b.Pair(x, y))
		}
	}
	for i := range 6 { // also of tenants that have no port
		note(fmt.Sprint("tenant ", i), a.Pair(tenant(i), tenant(0)), b.Pair(tenant(i), tenant(0)))
	}
	for dev := range f.Devices {
		for num := range f.Devices[dev].Ports {
			x, y := a.Port(at(dev, num)), b.Port(at(dev, num))
			if x.Other != y.Other && b.Pair(f.Devices[dev].Ports[num].Owner, x.Other)[proof.Both] != proof.Isolated {
				x.Other = y.Other // of several, one
			}
			note(fmt.Sprint("port ", at(dev, num)), x, y)
		}
	}
	return list
}

// unsaid returns in what two results differ that the difference does not name.
func unsaid(f *proof.Fabric, was, is *proof.Result, d proof.Difference, changed []proof.Place) (list []string) {
	for _, at := range slices.Concat(d.Tables, d.Owners) {
		if !slices.Contains(changed, at) {
			list = append(list, fmt.Sprintf("table %v is said to differ", at))
		}
	}
	before := was.Parties()
	for _, x := range is.Parties() {
		for _, y := range is.Parties() {
			if !slices.Contains(before, x) || !slices.Contains(before, y) {
				continue
			}
			if named := slices.Contains(d.Pairs, proof.Pair{From: x, To: y}) || slices.Contains(d.Pairs, proof.Pair{From: y, To: x}); !named && was.Pair(x, y) != is.Pair(x, y) {
				list = append(list, fmt.Sprintf("%v and %v differ", x, y))
			}
		}
	}
	for dev := range f.Devices {
		for num := range f.Devices[dev].Ports {
			if p := at(dev, num); !slices.Contains(d.Ports, p) && was.Port(p) != is.Port(p) {
				list = append(list, fmt.Sprintf("port %v differs", p))
			}
		}
	}
	return list
}

// assign has a host be of another tenant, one that has no host so far among them; mostly with the P_Key tables that belong to it.
func (g *gardener) assign(h int) (places []proof.Place) {
	place := at(h, 1)
	to := g.IntN(g.tenants + 1)
	g.b.Fabric = withOwner(g.b.Fabric, place, tenant(to))
	for _, p := range []proof.Place{place, g.b.port(place).Cable} {
		if p.Port > 0 && g.IntN(4) > 0 {
			g.b.Fabric = withTable(g.b.Fabric, p, []ib.PKey{ib.DefaultPKeyLimited, keyOf(to).Full(), 0})
			places = append(places, p)
		}
	}
	return append(places, place)
}

// step changes the P_Key tables of one to three ports, and sometimes back to what they were, or has hosts be of other tenants.
func (g *gardener) step(first *proof.Fabric) []proof.Place {
	var places []proof.Place
	for range 1 + g.IntN(3) {
		_, a, s, k := g.host()
		if g.coin() {
			k = k.Full()
		}
		h := g.b.hosts[2+g.IntN(len(g.b.hosts)-2)]
		place, table := at(h, 1), append(slices.Clone(a.PKeys.Value), k)
		switch g.IntN(10) {
		case 0:
			table = g.table()
		case 1:
			place = g.b.Devices[h].Ports[1].Cable
			table = append(slices.Clone(s.PKeys.Value), k)
		case 2:
			dev := g.IntN(len(g.b.Devices)) // also a port between switches, of a router, or of a device that is not declared
			if len(g.b.Devices[dev].Ports) == 0 {
				continue
			}
			place, table = at(dev, g.IntN(len(g.b.Devices[dev].Ports))), g.table()
		case 3, 4:
			table = nil
			if place.Device < len(first.Devices) && int(place.Port) < len(first.Devices[place.Device].Ports) {
				table = first.Devices[place.Device].Ports[place.Port].PKeys.Value
			}
		case 6, 7:
			places = append(places, g.assign(h)...)
			continue
		case 5: // both, as a mistake of the Subnet Manager would
			front := g.b.Devices[h].Ports[1].Cable
			g.b.Fabric = withTable(g.b.Fabric, front, append(slices.Clone(g.b.port(front).PKeys.Value), k))
			places = append(places, front)
		}
		g.b.Fabric = withTable(g.b.Fabric, place, table)
		places = append(places, place)
	}
	return places
}

// againFabrics is how many random fabrics change step by step.
const againFabrics = 2000

// TestAgainAgrees changes P_Key tables of random fabrics with random mistakes, and compares what is proven again with what is proven of
// everything. What is proven again is where the next step begins.
func TestAgainAgrees(t *testing.T) {
	t.Parallel()
	var again, whole, lost, regained, sold int
	for seed := range uint64(againFabrics) {
		g := newGardener(t, seed+1_000_000)
		for range g.IntN(3) {
			plants[g.IntN(len(plants))].plant(g)
		}
		if seed%4 == 0 { // routers join packets by P_Key
			g.bridge()
		}
		first := copied(g.b.Fabric)
		r, err := proof.Prove(g.b.Fabric)
		if err != nil {
			t.Fatal(err)
		}
		for step := range 6 {
			held := r.Holds(proof.Both)
			places := g.step(first)
			want, err := proof.Prove(g.b.Fabric)
			if err != nil {
				t.Fatal(err)
			}
			got, diff, ok := r.Again(g.b.Fabric)
			if !ok {
				whole++
				r = want
				continue
			}
			again++
			sold += len(diff.Owners)
			for _, line := range unsaid(g.b.Fabric, r, got, diff, places) {
				t.Errorf("seed %d, step %d, changed %v: %s", seed, step, places, line)
			}
			for _, line := range disagreements(g.b.Fabric, got, want) {
				t.Errorf("seed %d, step %d, changed %v: %s", seed, step, places, line)
			}
			for _, assume := range every {
				g.examine(t, seed, nil, got, assume)
			}
			if t.Failed() {
				t.FailNow()
			}
			if now := got.Holds(proof.Both); held && !now {
				lost++
			} else if !held && now {
				regained++
			}
			r = got
		}
	}
	t.Logf("proven again %d times, everything %d times; a first leak arose %d times, and the last one went %d times", again, whole, lost, regained)
	if sold < againFabrics {
		t.Errorf("%d ports were of another tenant: too few", sold)
	}
	if again < againFabrics*3 || lost < againFabrics/20 || regained < againFabrics/20 {
		t.Errorf("proven again %d times, of which a leak arose in %d and went in %d: too seldom", again, lost, regained)
	}
}

// TestAgainOfOtherChanges makes any change. What is not only a P_Key table is proven as a whole, or as if it was.
func TestAgainOfOtherChanges(t *testing.T) {
	t.Parallel()
	refused := map[string]int{}
	for seed := range uint64(3000) {
		g := newGardener(t, seed+2_000_000)
		for range g.IntN(2) {
			plants[g.IntN(len(plants))].plant(g)
		}
		r, err := proof.Prove(g.b.Fabric)
		if err != nil {
			t.Fatal(err)
		}
		g.b.Fabric = copied(g.b.Fabric)
		p := &plants[g.IntN(len(plants))]
		p.plant(g)
		got, _, ok := r.Again(g.b.Fabric)
		if !ok {
			refused[p.name]++
			continue
		}
		want, err := proof.Prove(g.b.Fabric)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range disagreements(g.b.Fabric, got, want) {
			t.Fatalf("seed %d, %s: %s", seed, p.name, line)
		}
	}
	for _, name := range []string{
		"inbound enforcement off", "raw filters off", "wrong route", "wrong multicast entry", "default multicast ports", "undeclared adapter", "alias GUID",
		"membership ignored inbound", "port down", "cable seen at one end only", "P_Key table not read", "checks not read", "state not read", "LFT not read", "MFT not read",
		"default multicast ports not read",
	} {
		if refused[name] == 0 {
			t.Errorf("%q was never left to the proof of everything", name)
		}
	}
}

// TestAgainInALargeFabric changes tables where a packet may leave at more switches than LIDs are looked for, and where most pairs of tenants are
// open to adapters that are not honest.
func TestAgainInALargeFabric(t *testing.T) {
	t.Parallel()
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 432, Radix: 12})
	b := grow(t, l, err, func(h int) int { return h / 9 })
	for _, sw := range b.switches {
		b.Devices[sw].Inbound = proof.InboundUnknown
	}
	r := prove(t, b.Fabric)
	if n := len(r.Open(proof.Switches)); n < 2000 || !r.Holds(proof.Both) {
		t.Fatalf("%d pairs are open, and all is isolated: %t", n, r.Holds(proof.Both))
	}
	random := rand.New(rand.NewPCG(1, 1))
	again, leaks := 0, 0
	for step := range 30 {
		host := b.hosts[2+random.IntN(len(b.hosts)-2)]
		front := b.Devices[host].Ports[1].Cable
		table := slices.Clone(b.port(at(host, 1)).PKeys.Value)
		if random.IntN(3) > 0 {
			table = append(table, keyOf(random.IntN(48)).Full())
		} else {
			table = table[:2]
		}
		b.Fabric = withTable(withTable(b.Fabric, at(host, 1), table), front, table)
		want := prove(t, b.Fabric)
		got, _, ok := r.Again(b.Fabric)
		if r = want; !ok {
			continue
		}
		again++
		for _, assume := range every {
			if x, y := got.Open(assume), want.Open(assume); !slices.Equal(x, y) {
				t.Fatalf("step %d: under %v %d pairs are open, of everything %d", step, assume, len(x), len(y))
			}
			if x, y := got.ByRoutes(assume), want.ByRoutes(assume); !slices.Equal(x, y) {
				t.Fatalf("step %d: under %v only routes keep %v apart, of everything %v", step, assume, x, y)
			}
		}
		for _, dev := range b.hosts {
			x, y := got.Port(at(dev, 1)), want.Port(at(dev, 1))
			if x.Other = y.Other; x != y {
				t.Fatalf("step %d: port of %s: %v, of everything %v", step, b.Devices[dev].Name, x, y)
			}
		}
		if !got.Holds(proof.Both) {
			leaks++
			for _, pair := range got.Open(proof.Both) {
				if c, err := got.Explain(proof.Both, pair); err != nil || len(c.Hops) < 3 {
					t.Fatalf("step %d: %v is explained by %+v, %v", step, pair, c, err)
				}
			}
		}
		r = got
	}
	if again < 25 || leaks < 5 {
		t.Errorf("proven again %d times, of which %d had leaks", again, leaks)
	}
}

// TestManyPackets explains pairs of which no packet was kept.
func TestManyPackets(t *testing.T) {
	t.Parallel()
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 432, Radix: 12})
	b := grow(t, l, err, func(h int) int { return h / 5 })
	for _, dev := range b.hosts {
		b.front(dev).Check.Value = proof.Checks{}
	}
	r := prove(t, b.Fabric)
	open := r.Open(proof.Switches)
	if len(open) < 5000 {
		t.Fatalf("%d pairs are open", len(open))
	}
	for i := 0; i < len(open); i += 97 {
		c, err := r.Explain(proof.Switches, open[i])
		if err != nil || c.Pair != open[i] || len(c.Hops) < 3 {
			t.Fatalf("%v is explained by %+v, %v", open[i], c, err)
		}
		first := c.Hops[1]
		if replay(b.Fabric, at(b.byName[first.Device], int(first.In)), &c)&switchesOnly == 0 {
			t.Fatalf("this packet does not pass: %+v", c)
		}
	}
}

// TestAgainLeaves changes one thing that is no P_Key table, or whose P_Key table matters to others, and requires that everything is proven.
func TestAgainLeaves(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bed){
		"owner of a switch": func(b *bed) { b.Devices[b.switches[0]].Owner = proof.Owner{} },
		"type":              func(b *bed) { b.Devices[b.hosts[2]].Type = ib.NodeRouter },
		"GUID":              func(b *bed) { b.Devices[b.hosts[2]].GUID++ },
		"inbound rule":      func(b *bed) { b.Devices[b.switches[0]].Inbound = proof.InboundBaseOnly },
		"one device less":   func(b *bed) { b.Devices = b.Devices[:len(b.Devices)-1] },
		"one port more":     func(b *bed) { d := &b.Devices[b.hosts[2]]; d.Ports = append(d.Ports, proof.Port{}) },
		"shared port":       func(b *bed) { b.port(at(b.hosts[2], 1)).Owner = proof.Owner{Kind: proof.Shared, Name: "s"} },
		"undeclared port":   func(b *bed) { b.port(at(b.hosts[2], 1)).Owner = proof.Owner{} },
		"tenant, no name":   func(b *bed) { b.port(at(b.hosts[2], 1)).Owner = proof.Owner{Kind: proof.Tenant} },
		"owner of a router": func(b *bed) { b.port(at(len(b.Devices)-1, 1)).Owner = tenant(1) },
		"alias":             func(b *bed) { b.port(at(b.hosts[2], 1)).Aliases = []proof.Alias{{GUID: 1, Owner: tenant(1)}} },
		"cable":             func(b *bed) { b.port(at(b.hosts[2], 1)).Cable = proof.Place{} },
		"state":             func(b *bed) { b.front(b.hosts[2]).State = proof.Known(ib.PortDown) },
		"check":             func(b *bed) { b.front(b.hosts[2]).Check.Value.RawOutbound = false },
		"route":             func(b *bed) { b.Devices[b.switches[0]].LFT.Value[3]++ },
		"routes not read":   func(b *bed) { b.Devices[b.switches[0]].LFT.How = proof.NotRead },
		"group":             func(b *bed) { b.Devices[b.switches[0]].MFT.Value[group(9)] = proof.PortSet(1, 2) },
		"groups not read":   func(b *bed) { b.Devices[b.switches[0]].MFT.How = proof.NotRead },
		"default ports": func(b *bed) {
			b.Devices[b.switches[0]].MulticastDefaults = proof.Known(proof.Defaults{Primary: 1, NotPrimary: 2})
		},
		"table not read":      func(b *bed) { b.port(at(b.hosts[2], 1)).PKeys.How = proof.NotRead },
		"table of the links":  func(b *bed) { p := b.trunk(); p.PKeys.Value = []ib.PKey{keyOf(0).Full()} },
		"the unused P_Key":    func(b *bed) { p := b.port(at(b.hosts[2], 1)); p.PKeys.Value = append(p.PKeys.Value, 0x8001) },
		"table of the router": func(b *bed) { p := b.port(at(len(b.Devices)-1, 1)); p.PKeys.Value = []ib.PKey{keyOf(1)} },
		"too many parties": func(b *bed) {
			for _, dev := range b.hosts[2:] {
				p := b.front(dev)
				p.PKeys.Value = append(slices.Clone(p.PKeys.Value), storage.Full())
			}
		},
	} {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 42, Radix: 60, Leaves: 2, Spines: 2})
		b := grow(t, l, err, func(h int) int { return h })
		g := &gardener{Rand: rand.New(rand.NewPCG(1, 1)), b: b, tenants: 40}
		g.stranger(ib.NodeRouter, proof.Owner{Kind: proof.Infrastructure})
		r := prove(t, b.Fabric)
		same := copied(b.Fabric)
		if _, d, ok := r.Again(same); !ok || len(d.Tables)+len(d.Pairs)+len(d.Ports) > 0 {
			t.Fatalf("a copy of the fabric differs: %t, %+v", ok, d)
		}
		b.Fabric = same
		change(b)
		if _, d, ok := r.Again(b.Fabric); ok {
			t.Errorf("%s: proven again, with the difference %+v", name, d)
		}
	}
}

// trunk returns a port that leads to another switch.
func (b *bed) trunk() *proof.Port {
	for _, sw := range b.switches {
		for num := range b.Devices[sw].Ports {
			if c := b.Devices[sw].Ports[num].Cable; c.Port != 0 && b.Devices[c.Device].Type == ib.NodeSwitch {
				return &b.Devices[sw].Ports[num]
			}
		}
	}
	return &proof.Port{}
}
