package isolation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/isolation"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

const (
	redKey  = ib.PKey(0x8101)
	blueKey = ib.PKey(0x8202)
)

// bed is a fabric that the Subnet Manager set, and the records that it is compared with: red has h1 and h3, blue has h2 and
// h4, h5 belongs to no tenant.
type bed struct {
	t       *testing.T
	list    *netlist.Netlist
	fabric  *sim.Fabric
	station *sim.Station
	records isolation.Records
	// cautious: it is not assumed that switches compare membership.
	cautious bool
	rounds   map[asked]int
	// change sees each answer before the reader does, and which time it is given; false loses it.
	change func(time int, m *mad.MAD) bool
}

// asked identifies a request.
type asked struct {
	route mad.Route
	attr  mad.AttrID
	mod   uint32
}

func newBed(t *testing.T) *bed {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	stage, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, list: l, fabric: stage.Fabric}
	b.records.Inventory = &inventory.Contents{}
	var grants []sm.Grant
	for i := range l.Nodes {
		n := &l.Nodes[i]
		switch {
		case n.Type == ib.NodeSwitch:
			b.records.Inventory.Switches = append(b.records.Inventory.Switches, inventory.Switch{ID: n.Name, GUID: n.GUID})
		case n.Name != "sm":
			g := stage.GrantOf(n.Name, 1, 0)
			b.records.Inventory.Hosts = append(b.records.Inventory.Hosts, inventory.Host{ID: n.Name, HCAs: []inventory.HCA{{
				NodeGUID: n.GUID, Ports: []inventory.Port{{Num: 1, GUID: g.GUID, Cable: g.Place}},
			}}})
		}
	}
	for host, tenant := range map[string]string{"h1": "red", "h2": "blue", "h3": "red", "h4": "blue"} {
		key := map[string]ib.PKey{"red": redKey, "blue": blueKey}[tenant]
		g := stage.GrantOf(host, 1, key)
		grants = append(grants, g)
		name := records.Key{PKey: key.Base(), GUID: g.GUID, Place: g.Place}
		b.records.Grants = append(b.records.Grants, store.Record[records.Grant]{Key: name.String(), Value: records.Grant{Host: host, Tenant: tenant}})
	}
	stage.Start()
	stage.Want(sm.Intent{Revision: 1, Grants: grants})
	if err := stage.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	stage.Crash()
	if b.station, err = b.fabric.Station("sm", false); err != nil {
		t.Fatal(err)
	}
	return b
}

// prove reads the fabric as things are declared, and proves what it can.
func (b *bed) prove(q v1.IsolationQuery, when isolation.Span) *isolation.Proven {
	b.t.Helper()
	in := b.intent()
	proven, err := isolation.Prove(in, b.read(in, q), when)
	if err != nil {
		b.t.Fatal(err)
	}
	return proven
}

// report reads the fabric and reports on it.
func (b *bed) report(tenant string) *v1.Isolation {
	b.t.Helper()
	q := v1.IsolationQuery{Tenant: tenant, Membership: !b.cautious}
	out := b.prove(q, isolation.Span{}).Report(q)
	if n := out.Pairs.Isolated; n != out.Held.Each+out.Held.Switches+out.Held.Adapters+out.Held.Together {
		b.t.Errorf("%d pairs are isolated, of which is said: %+v", n, out.Held)
	}
	return out
}

func (b *bed) read(in *isolation.Intent, q v1.IsolationQuery) *reader.Found {
	b.t.Helper()
	o := in.Options(q)
	next := uint32(0)
	o.Draw, o.Window, o.Attempts = func() uint32 { next++; return next }, 4, 2
	r, err := reader.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.rounds = map[asked]int{}
	for !r.Done() {
		m, ok := r.Next()
		if !ok {
			b.t.Fatal("the reader waits for nothing")
		}
		name := asked{m.Route(), m.Attr(), m.Mod()}
		b.rounds[name]++
		for _, p := range b.station.Exchange([]transport.Packet{{MAD: m, LID: ib.PermissiveLID}}, nil) {
			if !p.Undelivered && p.MAD.IsResponse() && (b.change == nil || b.change(b.rounds[name], &p.MAD)) {
				r.Answer(&p.MAD)
			}
		}
		r.Expire(m.TID())
	}
	found, err := r.Found()
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// route returns the directed route to a node.
func (b *bed) route(node string) mad.Route {
	routes := map[string]mad.Route{"sm": {}}
	for queue := []string{"sm"}; len(queue) > 0; queue = queue[1:] {
		for num, p := range b.list.Find(queue[0]).Ports {
			if _, seen := routes[p.Peer]; p.Peer != "" && !seen {
				routes[p.Peer], _ = routes[queue[0]].Append(ib.PortNum(num))
				queue = append(queue, p.Peer)
			}
		}
	}
	return routes[node]
}

// leaf returns the switch port of a host, and the name of the switch.
func (b *bed) leaf(host string) (string, ib.PortNum) {
	p := b.list.Find(host).Ports[1]
	return p.Peer, p.PeerPort
}

// stray writes a P_Key into entry 5 of a table.
func (b *bed) stray(node string, mod uint32, key ib.PKey) {
	b.t.Helper()
	b.write(node, mad.AttrPKeyTable, mod, func(data []byte) { data[10], data[11] = byte(key>>8), byte(key) })
}

// write reads an attribute of a node, changes it, and writes it back.
func (b *bed) write(node string, attr mad.AttrID, mod uint32, change func(data []byte)) {
	b.t.Helper()
	var data [mad.DataSize]byte
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		p, r := transport.Packet{LID: ib.PermissiveLID}, b.route(node)
		mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: attr, Mod: mod, TID: 1}, &r, ib.MKey{})
		if method == mad.MethodSet {
			change(data[:])
			copy(p.MAD.Data(), data[:])
		}
		in := b.station.Exchange([]transport.Packet{p}, nil)
		if len(in) != 1 || in[0].Undelivered || in[0].MAD.Status() != mad.StatusOK {
			b.t.Fatalf("%v of %s: %+v", method, node, in)
		}
		copy(data[:], in[0].MAD.Data())
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	got := b.report("")
	// red and blue, and each of them and hosts of no tenant.
	if got.Verdict != v1.Isolated || got.Reason != "" || got.Pairs != (v1.IsolationPairs{Isolated: 3}) || got.Held != (v1.IsolationDepth{Each: 3}) {
		t.Errorf("verdict %v (%v), pairs %+v, held %+v", got.Verdict, got.Reason, got.Pairs, got.Held)
	}
	if len(got.Examples)+len(got.Missing)+len(got.Undeclared)+len(got.Unread) > 0 {
		t.Errorf("of a clean fabric is said: %+v", got)
	}
	want := v1.IsolationParty{Name: "blue", Tenant: true, Verdict: v1.Isolated, Declared: 2, Found: 2, Pairs: v1.IsolationPairs{Isolated: 2}}
	if i := slices.Index(got.Parties, want); i < 0 {
		t.Errorf("parties %+v, want one to be %+v", got.Parties, want)
	}
	if c := got.Bounds; c.Devices != len(b.list.Nodes) || c.Requests == 0 || c.Ends != 6 || len(c.Assumptions) == 0 {
		t.Errorf("bounds: %+v", c)
	}
	if n := len(got.Bounds.Assumptions); !strings.Contains(got.Bounds.Assumptions[n-1], "as was asked to assume") {
		t.Errorf("assumptions: %q", got.Bounds.Assumptions)
	}
	// Without that a changed adapter may claim to be a full member of the default partition.
	b.cautious = true
	if got := b.report(""); got.Verdict != v1.Isolated || got.Held != (v1.IsolationDepth{Adapters: 3}) {
		t.Errorf("if switches may ignore membership: %v, held %+v", got.Verdict, got.Held)
	}
	b.cautious = false
	if got := b.report("red"); got.Verdict != v1.Isolated || got.Pairs != (v1.IsolationPairs{Isolated: 2}) {
		t.Errorf("of red alone: %v, pairs %+v", got.Verdict, got.Pairs)
	}
}

// A stray P_Key in one of two tables is held by the other; in both of them it leaks, and is shown with names and the cure.
func TestLeak(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	leaf, port := b.leaf("h1")
	b.stray("h1", 0, blueKey)
	if got := b.report(""); got.Verdict != v1.Isolated || got.Held != (v1.IsolationDepth{Each: 2, Switches: 1}) {
		t.Errorf("with a stray P_Key in the adapter alone: %v, held %+v", got.Verdict, got.Held)
	}
	b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey)
	got := b.report("")
	if got.Verdict != v1.Leaks || got.Pairs != (v1.IsolationPairs{Isolated: 2, Leaks: 1}) || len(got.Examples) != 1 {
		t.Fatalf("verdict %v, pairs %+v, examples %+v", got.Verdict, got.Pairs, got.Examples)
	}
	e := got.Examples[0]
	if !e.Certain || e.PKey != blueKey && e.PKey != blueKey.Limited() || len(e.Hops) < 3 || !strings.Contains(e.Cure, leaf) || !strings.Contains(e.Cure, "0x8202") {
		t.Errorf("example: %+v", e)
	}
	if !slices.ContainsFunc(e.Hops, func(h v1.IsolationHop) bool { return strings.HasPrefix(h.Device, "h1 (") }) {
		t.Errorf("no hop is h1: %+v", e.Hops)
	}
	if first := got.Parties[0]; first.Verdict != v1.Leaks {
		t.Errorf("the first party is %+v", first)
	}
	if one := b.report("red"); one.Verdict != v1.Leaks || len(one.Examples) != 1 {
		t.Errorf("of red alone: %v", one.Verdict)
	}
}

// An adopted membership explains nothing: a host that shares a tenant's partition by it is a leak. It assigns no host to a tenant, and
// takes none from one.
func TestAdoptedExplainsNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	leaf, port := b.leaf("h5")
	adopt := func(host string, k ib.PKey) {
		p := b.hostOf(host).HCAs[0].Ports[0]
		b.records.Grants = append(b.records.Grants, store.Record[records.Grant]{
			Key: records.Key{PKey: k.Base(), GUID: p.GUID, Place: p.Cable}.String(), Value: records.Grant{Adopted: "adoption-0001", Since: time.Unix(1e9, 0)},
		})
	}
	adopt("h1", 0x8303)
	red := v1.IsolationParty{Name: "red", Tenant: true, Verdict: v1.Isolated, Declared: 2, Found: 2, Pairs: v1.IsolationPairs{Isolated: 2}}
	if got := b.report(""); got.Verdict != v1.Isolated || !slices.Contains(got.Parties, red) {
		t.Errorf("with an adopted grant of a P_Key that no port has: %v, parties %+v", got.Verdict, got.Parties)
	}
	adopt("h5", blueKey)
	b.stray("h5", 0, blueKey)
	b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey)
	got := b.report("")
	if got.Verdict != v1.Leaks || got.Pairs.Leaks != 1 {
		t.Errorf("with an adopted port in the partition of blue: %v, pairs %+v", got.Verdict, got.Pairs)
	}
	if i := slices.IndexFunc(got.Parties, func(p v1.IsolationParty) bool { return p.Name == "blue" }); i < 0 || got.Parties[i].Verdict != v1.Leaks || got.Parties[i].Declared != 2 {
		t.Errorf("the parties are %+v", got.Parties)
	}
}

// TestNeverIsolated: what is not read, not there, or not as declared, never leads to "isolated".
func TestNeverIsolated(t *testing.T) {
	t.Parallel()
	pkeys := func(spoil func(time int, m *mad.MAD) bool) func(b *bed) {
		return func(b *bed) {
			b.change = func(time int, m *mad.MAD) bool { return m.Attr() != mad.AttrPKeyTable || spoil(time, m) }
		}
	}
	for name, test := range map[string]struct {
		set  func(b *bed)
		want string // in the report
	}{
		"P_Key tables silent":   {pkeys(func(int, *mad.MAD) bool { return false }), "the device did not answer"},
		"P_Key tables refused":  {pkeys(func(_ int, m *mad.MAD) bool { m.SetStatus(mad.StatusInvalidField); return true }), "the device answered with an error"},
		"P_Key tables nonsense": {pkeys(func(_ int, m *mad.MAD) bool { m.SetMod(m.Mod() + 7); return true }), "nonsense"},
		"P_Key tables changed":  {pkeys(func(time int, m *mad.MAD) bool { m.Data()[21] += byte(time); return true }), "it changed"},
		"host silent": {func(b *bed) {
			if err := b.fabric.SetFault("h1", sim.Fault{Silent: true}); err != nil {
				b.t.Fatal(err)
			}
		}, "nothing answers at the switch port"},
		"host off": {func(b *bed) {
			if err := b.fabric.PowerOff("h1"); err != nil {
				b.t.Fatal(err)
			}
		}, "the switch port is down"},
		"hosts swapped": {func(b *bed) {
			if err := b.fabric.Swap(sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "h2", Port: 1}); err != nil {
				b.t.Fatal(err)
			}
		}, "another device is at the switch port"},
		"host not cabled": {func(b *bed) { b.hostOf("h1").HCAs[0].Ports[0].Cable = ib.Place{} }, "no cable of it is declared"},
		"two hosts at one place": {func(b *bed) {
			b.hostOf("h1").HCAs[0].Ports[0].Cable = b.hostOf("h2").HCAs[0].Ports[0].Cable
		}, "several ports are declared"},
		"grant without a place": {func(b *bed) {
			b.records.Inventory.Hosts = nil
			b.records.Grants[0].Key = records.Key{PKey: 0x101, GUID: 0x77, Place: ib.Place{Switch: 0x99, Port: 1}}.String()
		}, "its switch was not found"},
		"switch not declared": {func(b *bed) {
			b.records.Inventory.Switches = slices.DeleteFunc(b.records.Inventory.Switches, func(s inventory.Switch) bool { return s.ID == "leaf1" })
		}, "its switch was not found"},
		"nothing declared": {func(b *bed) { b.records = isolation.Records{} }, "no host belongs to a tenant"},
		"cut off":          {func(b *bed) { b.change = func(_ int, m *mad.MAD) bool { r := m.Route(); return r.Len() == 0 } }, "its switch was not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			test.set(b)
			got := b.report("")
			said := []string{got.Reason}
			for _, m := range got.Missing {
				said = append(said, m.Cause)
			}
			for _, u := range got.Undeclared {
				said = append(said, u.Cause)
			}
			for _, u := range got.Unread {
				said = append(said, u.Cause)
			}
			if got.Verdict == v1.Isolated {
				t.Errorf("the verdict is %v, held %+v", got.Verdict, got.Held)
			}
			if !strings.Contains(strings.Join(said, "\n"), test.want) {
				t.Errorf("the report says %q, want %q", said, test.want)
			}
		})
	}
}

func (b *bed) hostOf(id string) *inventory.Host {
	i := slices.IndexFunc(b.records.Inventory.Hosts, func(h inventory.Host) bool { return h.ID == id })
	return &b.records.Inventory.Hosts[i]
}

// A port that is not declared is named, and is a party of its own; a port with a grant is declared by that.
func TestUndeclaredHost(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.records.Inventory.Hosts = slices.DeleteFunc(b.records.Inventory.Hosts, func(h inventory.Host) bool { return h.ID == "h4" || h.ID == "h5" })
	got := b.report("")
	if len(got.Undeclared) != 1 || got.Undeclared[0].Cause != "no such port is declared" || got.Bounds.Undeclared != 1 {
		t.Errorf("undeclared: %+v", got.Undeclared)
	}
	if leaf, port := b.leaf("h5"); len(got.Undeclared) == 1 && got.Undeclared[0].Place != (ib.Place{Switch: b.list.Find(leaf).GUID, Port: port}) {
		t.Errorf("undeclared: %+v", got.Undeclared)
	}
	if got.Verdict != v1.Isolated || got.Pairs.Isolated != 3 || got.Held.Switches != 2 {
		t.Errorf("verdict %v, pairs %+v, held %+v", got.Verdict, got.Pairs, got.Held)
	}
	blue := func(p v1.IsolationParty) bool { return p.Name == "blue" && p.Declared == 2 && p.Found == 2 }
	if !slices.ContainsFunc(got.Parties, blue) {
		t.Errorf("parties: %+v", got.Parties)
	}
}
