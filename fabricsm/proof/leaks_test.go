package proof_test

import (
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

var (
	t0, t1     = tenant(0), tenant(1)
	undeclared = proof.Owner{}
	spare      = proof.Owner{Kind: proof.Spare}
	held       = proof.Verdict{proof.Isolated, proof.Isolated, proof.Isolated}
)

func prove(t testing.TB, f *proof.Fabric) *proof.Result {
	t.Helper()
	r, err := proof.Prove(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestACleanFabricIsIsolated(t *testing.T) {
	r := prove(t, small(t).Fabric)
	if got := r.Pair(t0, t1); got != held || got.Depth() != proof.HeldByEitherSide {
		t.Errorf("%v, held by %v", got, got.Depth())
	}
	if !r.Holds(proof.Both) || !r.Holds(proof.Switches) || len(r.Unread()) != 0 {
		t.Errorf("open %v, unread %v", r.Open(proof.Switches), r.Unread())
	}
	if got := len(r.Parties()); got != 2 {
		t.Errorf("parties %v", r.Parties())
	}
}

// holds sets the P_Key tables of a host: that of its adapter, and that of the switch port.
func (b *bed) holds(name string, adapter, front []ib.PKey) {
	dev := b.byName[name]
	b.Devices[dev].Ports[1].PKeys.Value = adapter
	b.front(dev).PKeys.Value = front
}

// stranger cables an adapter to a free port of leaf1.
func (b *bed) stranger(d proof.Device) proof.Place {
	leaf := b.byName["leaf1"]
	for num := range b.Devices[leaf].Ports {
		p := &b.Devices[leaf].Ports[num]
		if num == 0 || p.Cable.Port != 0 {
			continue
		}
		d.Ports = []proof.Port{{}, {
			Owner: d.Owner, State: proof.Known(ib.PortActive), Cable: at(leaf, num), PKeys: proof.Known([]ib.PKey{ib.DefaultPKeyLimited}),
		}}
		p.Cable, p.State = at(len(b.Devices), 1), proof.Known(ib.PortActive)
		b.Devices = append(b.Devices, d)
		for _, sw := range b.switches {
			row := &b.Devices[sw].LFT.Value
			*row = append(*row, b.Devices[sw].LFT.Value[b.lid(b.byName["h2"])])
		}
		b.Devices[leaf].LFT.Value[len(b.Devices)] = ib.PortNum(num)
		return at(leaf, num)
	}
	return proof.Place{}
}

var all = proof.Checks{Inbound: true, Outbound: true, RawInbound: true, RawOutbound: true}

func TestLeaksAreFound(t *testing.T) {
	const (
		yes  = proof.Isolated
		no   = proof.Leaks
		open = proof.Unproven
	)
	k0, k1, def := keyOf(0).Full(), keyOf(1).Full(), ib.DefaultPKeyLimited
	for _, tt := range []struct {
		name   string
		plant  func(b *bed)
		a, b   proof.Owner
		want   proof.Verdict
		change string // of the counter-example; empty where none is asked for
		hop    string // a part of the reason of some hop
	}{
		{
			"inbound enforcement missing at one port",
			func(b *bed) { b.front(b.byName["h2"]).Check.Value.Inbound = false },
			t0, t1,
			proof.Verdict{yes, no, yes},
			"set PartitionEnforcementInbound and FilterRawInbound of leaf1", "does not enforce P_Keys inbound",
		},
		{
			"outbound enforcement missing at one port does not matter to others that are enforced inbound",
			func(b *bed) { b.front(b.byName["h2"]).Check.Value.Outbound = false },
			t0, t1,
			proof.Verdict{yes, no, yes},
			"set PartitionEnforcementOutbound and FilterRawOutbound of leaf1", "does not enforce P_Keys outbound",
		},
		{
			"stray P_Key at the adapter",
			func(b *bed) { b.holds("h2", []ib.PKey{def, storage, k0, k1}, []ib.PKey{def, storage, k0}) },
			t0, t1,
			proof.Verdict{yes, yes, no},
			"remove entry 3 (0x8101) of the P_Key table of h2", "not counted on",
		},
		{
			"stray P_Key at the switch port",
			func(b *bed) { b.holds("h2", []ib.PKey{def, storage, k0}, []ib.PKey{def, storage, k0, k1}) },
			t0, t1,
			proof.Verdict{yes, no, yes},
			"remove entry 3 (0x8101) of the P_Key table of leaf1", "0x8101",
		},
		{
			"stray P_Key at both",
			func(b *bed) { b.holds("h2", []ib.PKey{def, storage, k0, k1}, []ib.PKey{def, storage, k0, k1}) },
			t0, t1,
			proof.Verdict{no, no, no},
			"remove entry 3 (0x8101) of the P_Key table of leaf1", "0x8101",
		},
		{
			"stray P_Key at the adapter of one and the switch port of another",
			func(b *bed) {
				b.holds("h2", []ib.PKey{def, storage, k0, k1}, []ib.PKey{def, storage, k0})
				b.holds("h4", []ib.PKey{def, storage, k0}, []ib.PKey{def, storage, k0, k1})
			},
			t0, t1,
			proof.Verdict{yes, no, no},
			"", "",
		},
		{
			"a tenant is a full member of the shared partition",
			func(b *bed) { b.holds("h2", []ib.PKey{def, storage.Full(), k0}, []ib.PKey{def, storage.Full(), k0}) },
			t0, t1,
			proof.Verdict{no, no, no},
			"make entry 1 (0x8010) of the P_Key table of leaf1", "0x0010",
		},
		{
			"the default partition is full at one port",
			func(b *bed) { b.holds("h2", []ib.PKey{ib.DefaultPKeyFull, k0}, []ib.PKey{ib.DefaultPKeyFull, k0}) },
			t0, t1,
			proof.Verdict{no, no, no},
			"make entry 0 (0xffff) of the P_Key table of leaf1", "0xffff",
		},
		{
			"switches that look at the base alone let limited members meet",
			func(b *bed) { b.Devices[b.byName["leaf1"]].Inbound = proof.InboundBaseOnly },
			t0, t1,
			proof.Verdict{yes, no, yes},
			"", "",
		},
		{
			"an inbound rule that is not known is no proof",
			func(b *bed) { b.Devices[b.byName["leaf1"]].Inbound = proof.InboundUnknown },
			t0, t1,
			proof.Verdict{yes, open, yes},
			"read leaf1", "",
		},
		{
			"raw packets are not filtered",
			func(b *bed) {
				b.front(b.byName["h2"]).Check.Value.RawInbound = false
				b.front(b.byName["h3"]).Check.Value.RawOutbound = false
			},
			t0, t1,
			proof.Verdict{no, no, yes},
			"set FilterRawInbound", "does not filter raw packets",
		},
		{
			"a stray P_Key that no route leads to",
			func(b *bed) {
				b.holds("h2", []ib.PKey{def, k0, k1}, []ib.PKey{def, k0, k1})
				b.cutOff()
			},
			t0, t1,
			proof.Verdict{yes, yes, yes},
			"", "",
		},
		{
			"a route of a LID that no port has, to a foreign port",
			func(b *bed) {
				b.holds("h2", []ib.PKey{def, k0, k1}, []ib.PKey{def, k0, k1})
				b.cutOff()
				row := &b.Devices[b.byName["leaf1"]].LFT.Value
				*row = append(*row, b.Devices[b.byName["h3"]].Ports[1].Cable.Port)
			},
			t0, t1,
			proof.Verdict{no, no, no},
			"remove entry 2 (0x8101)", "its LFT sends LID",
		},
		{
			"a multicast group leads to a foreign port",
			func(b *bed) {
				b.holds("h2", []ib.PKey{def, k0, k1}, []ib.PKey{def, k0, k1})
				b.cutOff()
				leaf := b.byName["leaf1"]
				b.Devices[leaf].MFT.Value[0xC123] = proof.PortSet(b.Devices[b.byName["h3"]].Ports[1].Cable.Port)
			},
			t0, t1,
			proof.Verdict{no, no, no},
			"remove entry 2 (0x8101)", "its MFT sends LID 0xc123",
		},
		{
			"the default multicast port is a foreign port",
			func(b *bed) {
				b.holds("h2", []ib.PKey{def, k0, k1}, []ib.PKey{def, k0, k1})
				b.cutOff()
				b.Devices[b.byName["leaf1"]].MulticastDefaults.Value.Primary = b.Devices[b.byName["h3"]].Ports[1].Cable.Port
			},
			t0, t1,
			proof.Verdict{no, no, no},
			"", "goes to the default port",
		},
		{
			"a port that nobody declared, with the enforcement of a limited member",
			func(b *bed) {
				p := b.port(b.stranger(proof.Device{Name: "x", Type: ib.NodeCA}))
				p.Check.Value, p.PKeys.Value = all, []ib.PKey{def}
			},
			t0, undeclared,
			proof.Verdict{yes, yes, no},
			"", "",
		},
		{
			"a port that nobody declared, with a tenant's P_Key",
			func(b *bed) {
				p := b.port(b.stranger(proof.Device{Name: "x", Type: ib.NodeCA}))
				p.Check.Value, p.PKeys.Value = all, []ib.PKey{def, k0}
			},
			t0, undeclared,
			proof.Verdict{no, no, no},
			"disable leaf1", "not counted on",
		},
		{
			"a spare port left open",
			func(b *bed) {
				b.port(b.stranger(proof.Device{Name: "x", Type: ib.NodeCA})).Owner = spare
			},
			t1, spare,
			proof.Verdict{no, no, no},
			"disable leaf1", "does not enforce",
		},
		{
			"a switch that nobody declared",
			func(b *bed) { b.stranger(proof.Device{Name: "x", Type: ib.NodeSwitch}) },
			t1, undeclared,
			proof.Verdict{no, no, no},
			"disable leaf1", "nothing is known",
		},
		{
			"a router that nobody declared",
			func(b *bed) { b.stranger(proof.Device{Name: "x", Type: ib.NodeRouter}) },
			t1, undeclared,
			proof.Verdict{no, no, no},
			"disable leaf1", "not counted on",
		},
		{
			"an alias GUID of another tenant",
			func(b *bed) {
				b.Devices[b.byName["h2"]].Ports[1].Aliases = []proof.Alias{{GUID: 7, Owner: t1}}
			},
			t0, t1,
			proof.Verdict{no, no, no},
			"remove alias GUID 0x0000000000000007 of h2 port 1", "issued to tenant t1",
		},
		{
			"adapters that are cabled to each other",
			func(b *bed) {
				x, y := b.Devices[b.byName["h2"]].Ports[:2], b.Devices[b.byName["h3"]].Ports[:2]
				b.Devices[b.byName["h2"]].Ports = append(x, proof.Port{Owner: t0, State: x[1].State, Cable: at(b.byName["h3"], 2), PKeys: proof.Known([]ib.PKey{k0})})
				b.Devices[b.byName["h3"]].Ports = append(y, proof.Port{Owner: t1, State: x[1].State, Cable: at(b.byName["h2"], 2), PKeys: proof.Known([]ib.PKey{k0})})
			},
			t0, t1,
			proof.Verdict{no, no, no},
			"disable h", "no switch is on this cable",
		},
		{
			"a P_Key table of a switch port that was not read",
			func(b *bed) { b.front(b.byName["h2"]).PKeys.How = proof.Inconsistent },
			t0, t1,
			proof.Verdict{yes, open, yes},
			"read leaf1", "was not read",
		},
		{
			"the tables of a host's adapter and switch port that were not read",
			func(b *bed) {
				b.front(b.byName["h2"]).PKeys.How = proof.NotRead
				b.Devices[b.byName["h2"]].Ports[1].PKeys.How = proof.NotRead
			},
			t0, t1,
			proof.Verdict{open, open, open},
			"read leaf1", "was not read",
		},
		{
			"enforcement that was not read, behind an adapter with a stray P_Key",
			func(b *bed) {
				b.holds("h2", []ib.PKey{def, k0, k1}, []ib.PKey{def, k0})
				b.front(b.byName["h2"]).Check.How = proof.NotRead
			},
			t0, t1,
			proof.Verdict{open, open, no},
			"read leaf1", "was not read",
		},
		{
			"a forwarding table that was not read, where only routes keep tenants apart",
			func(b *bed) {
				b.holds("h2", []ib.PKey{def, k0, k1}, []ib.PKey{def, k0, k1})
				b.cutOff()
				b.Devices[b.byName["spine1"]].LFT.How = proof.NotRead
			},
			t0, t1,
			proof.Verdict{open, open, open},
			"", "any way is possible",
		},
		{
			"a forwarding table that was not read, where P_Keys keep tenants apart",
			func(b *bed) { b.Devices[b.byName["spine1"]].LFT.How = proof.NotRead },
			t0, t1,
			proof.Verdict{yes, yes, yes},
			"", "",
		},
		{
			"an unread state of a port with an adapter that nobody declared",
			func(b *bed) {
				b.port(b.stranger(proof.Device{Name: "x", Type: ib.NodeCA})).State.How = proof.NotRead
			},
			t0, undeclared,
			proof.Verdict{open, open, open},
			"disable leaf1", "",
		},
		{
			"enforcement between switches stops a stray P_Key",
			func(b *bed) {
				b.holds("h6", []ib.PKey{def, k0, k1}, []ib.PKey{def, k0, k1})
				for _, sw := range b.switches {
					for num := range b.Devices[sw].Ports {
						if c := b.Devices[sw].Ports[num].Cable; c.Port != 0 && b.Devices[c.Device].Type == ib.NodeSwitch {
							b.Devices[sw].Ports[num].Check.Value = all
							b.Devices[sw].Ports[num].PKeys.Value = []ib.PKey{ib.DefaultPKeyFull, k0, storage.Full()}
						}
					}
				}
				b.front(b.byName["h7"]).State.Value = ib.PortDown // the neighbour of h6 on its leaf
				b.front(b.byName["h5"]).State.Value = ib.PortDown
			},
			t0, t1,
			proof.Verdict{yes, yes, no},
			"", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := small(t)
			tt.plant(b)
			r := prove(t, b.Fabric)
			got := r.Pair(tt.a, tt.b)
			if got != tt.want || got != r.Pair(tt.b, tt.a) {
				t.Errorf("got %v, want %v; open %v", got, tt.want, r.Open(proof.Switches))
			}
			checkExample(t, r, got, tt.change, tt.hop)
		})
	}
}

// cutOff removes all routes and groups.
func (b *bed) cutOff() {
	for _, sw := range b.switches {
		for i := range b.Devices[sw].LFT.Value {
			b.Devices[sw].LFT.Value[i] = ib.NoPort
		}
		clear(b.Devices[sw].MFT.Value)
	}
}

// checkExample examines the counter-examples of the first assumption under which there are any.
func checkExample(t *testing.T, r *proof.Result, v proof.Verdict, change, hop string) {
	t.Helper()
	for a, status := range v {
		if status == proof.Isolated {
			continue
		}
		changes, hops := "", ""
		for _, pair := range r.Open(proof.Assumption(a)) {
			c, err := r.Explain(proof.Assumption(a), pair)
			if err != nil {
				t.Fatal(err)
			}
			if c.Certain != (status == proof.Leaks) || len(c.Hops) == 0 {
				t.Errorf("%+v", c)
			}
			changes += c.Change.String() + "\n"
			for _, h := range c.Hops {
				hops += h.Device + ": " + strings.Join(h.Passed, "; ") + "\n"
			}
		}
		if !strings.Contains(changes, change) || !strings.Contains(hops, hop) {
			t.Errorf("under %v: want change %q and hop %q in\n%s%s", proof.Assumption(a), change, hop, changes, hops)
		}
		return
	}
}
