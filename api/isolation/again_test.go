package isolation_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/isolation"
	"portcullis/api/isolation/outsiders"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// variants are what may be declared, and what may be read before anything changes.
var variants = []struct {
	name    string
	declare func(b *bed)
	found   func(random *rand.Rand, f *reader.Found)
}{
	{name: "as it is"},
	{name: "a service", declare: func(b *bed) { b.hostOf("h5").Role = inventory.RoleService }},
	{name: "another Subnet Manager", declare: func(b *bed) { b.hostOf("h5").Role = inventory.RoleSM }},
	{name: "an undeclared host", declare: func(b *bed) {
		b.records.Inventory.Hosts = slices.DeleteFunc(b.records.Inventory.Hosts, func(h inventory.Host) bool { return h.ID == "h5" })
	}},
	{name: "a host elsewhere", declare: func(b *bed) { b.hostOf("h1").HCAs[0].Ports[0].Cable.Port += 7 }},
	{name: "two hosts at one place", declare: func(b *bed) { b.hostOf("h5").HCAs[0].Ports[0].Cable = b.hostOf("h1").HCAs[0].Ports[0].Cable }},
	{name: "a host that leaves", declare: func(b *bed) { b.setGrant("h3", func(g *grantRecord) { g.Value.Withdrawn = true }) }},
	{name: "an adopted host", declare: func(b *bed) { b.setGrant("h4", func(g *grantRecord) { g.Value.Adopted = "x" }) }},
	{name: "a table that was not read", found: func(random *rand.Rand, f *reader.Found) {
		e := f.Ends[random.IntN(len(f.Ends))]
		f.Fabric.Devices[e.Port.Device].Ports[e.Port.Port].PKeys.How = proof.NotRead
		f.Unknown = append(f.Unknown, reader.Unknown{Port: e.Port, Where: "adapter", What: "P_Key table", Cause: reader.Silent})
	}},
	{name: "a grant of a GUID that is an alias", declare: func(b *bed) {
		b.hostOf("h5").HCAs[0].Ports[0].Aliases = []ib.GUID{0xB5}
		key := records.Key{PKey: blueKey.Base(), GUID: 0xB5, Place: ib.Place{Switch: 0xB6, Port: 1}}
		b.records.Grants = append(b.records.Grants, grantRecord{Key: key.String(), Value: records.Grant{Host: "h9", Tenant: "blue"}})
	}},
	{name: "a cable that was seen once", found: func(random *rand.Rand, f *reader.Found) {
		e := f.Ends[random.IntN(len(f.Ends))]
		port := &f.Fabric.Devices[e.Port.Device].Ports[e.Port.Port]
		f.Fabric.Devices[port.Cable.Device].Ports[port.Cable.Port].Cable = proof.Place{}
		f.Unknown = append(f.Unknown, reader.Unknown{Port: port.Cable, Where: "switch", What: "the device behind", Cause: reader.Silent})
		port.Cable = proof.Place{}
	}},
	{name: "routes that were not read", found: func(random *rand.Rand, f *reader.Found) { pick(random, f).LFT.How = proof.NotRead }},
	{name: "no routes", found: func(random *rand.Rand, f *reader.Found) {
		d := pick(random, f)
		d.LFT.Value = slices.Repeat([]ib.PortNum{ib.NoPort}, len(d.LFT.Value))
	}},
	{name: "checks that are off", found: func(random *rand.Rand, f *reader.Found) {
		d := pick(random, f)
		for num := range d.Ports {
			d.Ports[num].Check.Value.Inbound = random.IntN(2) == 0
			d.Ports[num].Check.Value.Outbound = random.IntN(2) == 0
		}
	}},
}

// pick returns a switch.
func pick(random *rand.Rand, f *reader.Found) *proof.Device {
	var all []*proof.Device
	for i := range f.Fabric.Devices {
		if f.Fabric.Devices[i].Type == ib.NodeSwitch {
			all = append(all, &f.Fabric.Devices[i])
		}
	}
	return all[random.IntN(len(all))]
}

// owned returns a reading whose ports may be changed.
func owned(was *reader.Found) *reader.Found {
	f := *was
	f.Fabric = &proof.Fabric{Devices: slices.Clone(was.Fabric.Devices)}
	for i := range f.Fabric.Devices {
		f.Fabric.Devices[i].Ports = slices.Clone(f.Fabric.Devices[i].Ports)
	}
	f.Unknown = slices.Clip(f.Unknown)
	return &f
}

// changed returns a reading in which a few P_Key tables are others.
func changed(random *rand.Rand, was *reader.Found) *reader.Found {
	f := *was
	f.Fabric = &proof.Fabric{Devices: slices.Clone(was.Fabric.Devices)}
	for range 1 + random.IntN(3) {
		at := f.Ends[random.IntN(len(f.Ends))].Port
		if random.IntN(2) == 0 {
			at = f.Fabric.Devices[at.Device].Ports[at.Port].Cable
		}
		if random.IntN(20) == 0 {
			at = proof.Place{Device: random.IntN(len(f.Fabric.Devices)), Port: 1}
		}
		d := &f.Fabric.Devices[at.Device]
		d.Ports = slices.Clone(d.Ports)
		table := slices.Clone(d.Ports[at.Port].PKeys.Value)
		keys := []ib.PKey{redKey, blueKey, redKey.Limited(), blueKey.Limited(), ib.DefaultPKeyFull, ib.DefaultPKeyLimited, 0x8777, 0, 0, 0}
		if len(table) > 0 {
			table[random.IntN(min(len(table), 5))] = keys[random.IntN(len(keys))]
		}
		d.Ports[at.Port].PKeys.Value = table
	}
	return &f
}

// disagree returns in what two proofs differ.
func disagree(a, b *isolation.Proven, q v1.IsolationQuery) (list []string) {
	note := func(what string, x, y any) {
		if !reflect.DeepEqual(x, y) {
			list = append(list, fmt.Sprintf("%s:\n%+v, of everything\n%+v", what, x, y))
		}
	}
	x, y := a.Report(q), b.Report(q)
	shown := func(r *v1.Isolation) (out []string) {
		for i := range r.Examples {
			e := &r.Examples[i]
			out = append(out, fmt.Sprint(e.From, e.To, e.Certain, len(e.Hops) > 0))
		}
		return out
	}
	note("examples", shown(x), shown(y))
	x.Examples, y.Examples = nil, nil
	note("report", x, y)
	ports := slices.Clone(a.Ports())
	for i, p := range b.Ports() {
		if ports[i].Other != p.Other && ports[i].Other != "" && p.Other != "" {
			ports[i].Other = p.Other // of several, one
		}
	}
	note("ports", ports, b.Ports())
	note("drift", append([]v1.Drift{}, a.Drift()...), append([]v1.Drift{}, b.Drift()...))
	note("outsiders", append([]outsiders.Outsider{}, a.Outsiders()...), append([]outsiders.Outsider{}, b.Outsiders()...))
	q.Tenant = "red"
	s, t := a.Examine(q), b.Examine(q)
	note("examples of red", shown(s.Report), shown(t.Report))
	s.Report.Examples, t.Report.Examples = nil, nil
	note("red", s, t)
	return list
}

// said returns what is said of a proof, and works it out.
func said(p *isolation.Proven, q v1.IsolationQuery) string {
	r := *p.Report(q)
	r.Bounds.Again = nil
	return fmt.Sprintf("%+v", []any{r, p.Ports(), p.Drift(), p.Outsiders()})
}

// TestAgainAgrees changes P_Key tables and grants step by step, and compares all that is said of them with what a proof of everything says.
func TestAgainAgrees(t *testing.T) {
	t.Parallel()
	verdicts, again, whole, granted := map[string]int{}, 0, 0, 0
	for i, variant := range variants {
		b := newBed(t)
		if variant.declare != nil {
			variant.declare(b)
		}
		first, err := isolation.NewIntent(b.records)
		if err != nil {
			t.Fatal(err)
		}
		in := first
		readings := [2]*reader.Found{b.read(in, v1.IsolationQuery{}), b.read(in, v1.IsolationQuery{Membership: true})}
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			assume := random.IntN(2)
			q, found := v1.IsolationQuery{Membership: assume == 1}, owned(readings[assume])
			in := first
			grants := slices.Clone(b.records.Grants)
			if variant.found != nil {
				variant.found(random, found)
			}
			r, err := isolation.Prove(in, found, isolation.Span{})
			if err != nil {
				t.Fatal(err)
			}
			for step := range 8 {
				found = changed(random, found)
				if random.IntN(2) == 0 {
					var changes []isolation.Change
					changes, grants = regrant(random, b, grants)
					want, err := isolation.NewIntent(isolation.Records{Inventory: b.records.Inventory, Grants: grants})
					if err != nil {
						t.Fatal(err)
					}
					next, ok := in.With(changes)
					if in = want; ok {
						if !next.Equal(want) || !want.Equal(next) {
							t.Fatalf("%s, seed %d, step %d: after %+v another thing is declared than by all records", variant.name, seed, step, changes)
						}
						in = next
						granted++
					}
					found = b.own(in, q, found)
				}
				when := isolation.Span{Begun: time.Unix(0, 0), Again: time.Unix(int64(step), 0)}
				want, err := isolation.Prove(in, found, when)
				if err != nil {
					t.Fatal(err)
				}
				old, before := r, ""
				if random.IntN(4) > 0 { // else nothing was worked out of it
					before = said(r, q)
				}
				got, ok := r.Again(in, found, when)
				if r = want; !ok {
					whole++
					continue
				}
				again++
				if before != "" && said(old, q) != before {
					t.Fatalf("%s, seed %d, step %d: what was said before has changed", variant.name, seed, step)
				}
				for _, line := range disagree(got, want, q) {
					t.Fatalf("%s, seed %d, step %d: %s", variant.name, seed, step, line)
				}
				verdicts[got.Report(q).Verdict]++
				r = got
			}
		}
	}
	t.Logf("proven again %d times, %d of them by other grants, everything %d times, verdicts %v", again, granted, whole, verdicts)
	if granted < 500 {
		t.Errorf("only %d changes of grants were taken in", granted)
	}
	if again < 1500 || verdicts[v1.Leaks] < 200 || verdicts[v1.IsolationUnknown] < 100 || verdicts[v1.Isolated] < 200 {
		t.Errorf("proven again %d times, with verdicts %v: too seldom", again, verdicts)
	}
}

// TestAgainOfOther leaves to a proof of everything what differs in more than tables.
func TestAgainOfOther(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	in := b.intent()
	found := b.read(in, v1.IsolationQuery{})
	r, err := isolation.Prove(in, found, isolation.Span{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Again(in, b.read(in, v1.IsolationQuery{}), isolation.Span{}); !ok {
		t.Error("a reading of everything that found the same is proven as a whole")
	}
	other := b.intent()
	for name, change := range map[string]func(f *reader.Found) *isolation.Intent{
		"declared":       func(*reader.Found) *isolation.Intent { return other },
		"an end":         func(f *reader.Found) *isolation.Intent { f.Ends = f.Ends[1:]; return in },
		"a place":        func(f *reader.Found) *isolation.Intent { f.Ends[2].At.Port++; return in },
		"unread":         func(f *reader.Found) *isolation.Intent { f.Unknown = append(f.Unknown, reader.Unknown{}); return in },
		"fewer devices":  func(f *reader.Found) *isolation.Intent { f.Fabric.Devices = f.Fabric.Devices[:1]; return in },
		"another device": func(f *reader.Found) *isolation.Intent { f.Fabric.Devices[1].GUID++; return in },
		"an owner": func(f *reader.Found) *isolation.Intent {
			pick(rand.New(rand.NewPCG(1, 1)), f).Owner = proof.Owner{}
			return in
		},
		"a state": func(f *reader.Found) *isolation.Intent {
			f.Fabric.Devices[f.Ends[1].Port.Device].Ports[1].State = proof.Known(ib.PortDown)
			return in
		},
	} {
		f := b.read(in, v1.IsolationQuery{})
		if _, ok := r.Again(change(f), f, isolation.Span{}); ok {
			t.Errorf("%s: proven again", name)
		}
	}
}
