package isolation_test

import (
	"slices"
	"strings"
	"testing"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/isolation"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topospec"
)

// opened reads the fabric as things are declared, and returns what other declarations would open.
func (b *bed) opened(change func(*isolation.Records)) []v1.IsolationExample {
	b.t.Helper()
	proven := b.prove(v1.IsolationQuery{}, isolation.Span{})
	r := b.records
	contents := *r.Inventory
	contents.Hosts, contents.Switches = slices.Clone(contents.Hosts), slices.Clone(contents.Switches)
	r.Inventory, r.Grants = &contents, slices.Clone(r.Grants)
	change(&r)
	planned, err := isolation.NewIntent(r)
	if err != nil {
		b.t.Fatal(err)
	}
	examples, total, err := proven.Opened(planned)
	if err != nil || total != len(examples) {
		b.t.Fatalf("%d of %d examples, %v", len(examples), total, err)
	}
	return examples
}

func (b *bed) wantOpened(what string, change func(*isolation.Records), want ...[2]string) {
	b.t.Helper()
	var got [][2]string
	for _, e := range b.opened(change) {
		if len(e.Hops) == 0 || e.Cure == "" || !e.Certain {
			b.t.Errorf("%s: example %+v", what, e)
		}
		got = append(got, [2]string{e.From, e.To})
	}
	slices.SortFunc(got, func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
	if !slices.Equal(got, want) {
		b.t.Errorf("%s opens %v, want %v", what, got, want)
	}
}

func without(name string) func(*isolation.Records) {
	return func(r *isolation.Records) {
		r.Inventory.Hosts = slices.DeleteFunc(r.Inventory.Hosts, func(h inventory.Host) bool { return h.ID == name })
		r.Inventory.Switches = slices.DeleteFunc(r.Inventory.Switches, func(s inventory.Switch) bool { return s.ID == name })
	}
}

// strange is the party of devices that are not declared.
const strange = "(undeclared devices)"

// What another declaration opens is found before it is in force.
func TestOpened(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.wantOpened("nothing", func(*isolation.Records) {})
	b.wantOpened("a host of no tenant that is not declared any more", without("h5"))
	leaf, port := b.leaf("h1")
	// Hosts of blue and of no tenant are at other leaves, whose packets reach the leaf.
	b.wantOpened("a leaf that is not declared any more", without(leaf), [2]string{isolation.NoTenant, strange}, [2]string{strange, isolation.NoTenant},
		[2]string{strange, "blue"}, [2]string{"blue", strange})
	// A host's place that is another host's by then makes the adapter there an undeclared one, which holds the tenant's P_Key.
	b.wantOpened("another host at the place of h1", func(r *isolation.Records) {
		for i := range r.Inventory.Hosts {
			if h := &r.Inventory.Hosts[i]; h.ID == "h1" {
				h.HCAs = []inventory.HCA{{NodeGUID: 0x99, Ports: []inventory.Port{{Num: 1, GUID: 0x9A, Cable: h.HCAs[0].Ports[0].Cable}}}}
			}
		}
		r.Grants = slices.DeleteFunc(r.Grants, func(g grantRecord) bool { return g.Value.Host == "h1" })
	}, [2]string{strange, "red"}, [2]string{"red", strange})

	// What passes as things are is not opened once more.
	b.stray("h1", 0, blueKey)
	b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey)
	if got := b.report("").Verdict; got != v1.Leaks {
		t.Fatalf("verdict %q", got)
	}
	b.wantOpened("nothing, where a packet passes", func(*isolation.Records) {})
	// Its host of no tenant any more: the same packets pass to another party.
	b.wantOpened("h1 without its grant", func(r *isolation.Records) {
		r.Grants = slices.DeleteFunc(r.Grants, func(g grantRecord) bool { return g.Value.Host == "h1" })
	}, [2]string{isolation.NoTenant, "blue"}, [2]string{isolation.NoTenant, "red"}, [2]string{"blue", isolation.NoTenant}, [2]string{"red", isolation.NoTenant})
}

// A port that a topology declares to be unused makes what is behind it a party of its own, whatever the inventory has there.
func TestOpenedSpare(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	leaf, port := b.leaf("h1")
	b.wantOpened("h1 at a port that is declared disabled", func(r *isolation.Records) {
		r.Topology = b.disabled(leaf, port)
	}, [2]string{"(spare ports)", "red"}, [2]string{"red", "(spare ports)"})
}

// disabled is a topology that has one switch, and one port of it that is not to be used.
func (b *bed) disabled(leaf string, port ib.PortNum) *topospec.Spec {
	b.t.Helper()
	var guid ib.GUID
	for i := range b.records.Inventory.Switches {
		if s := &b.records.Inventory.Switches[i]; s.ID == leaf {
			guid = s.GUID
		}
	}
	spec, err := topospec.Compile("test", &topospec.Revision{
		Devices: []topospec.Device{{GUID: guid, Kind: topospec.KindSwitch, Name: leaf, Ports: 40}},
		Links:   []topospec.Link{{A: topospec.End{GUID: guid, Port: port}, State: topospec.Disabled, Reason: "not cabled"}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return spec
}

// What was not read opens nothing.
func TestUnreadOpensNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.change = func(_ int, m *mad.MAD) bool { return m.Attr() != mad.AttrPKeyTable && m.Attr() != mad.AttrPortInfo }
	leaf, _ := b.leaf("h1")
	b.wantOpened("a leaf that is not declared any more", without(leaf))
}

// Parties that forwarding tables alone keep apart are not proven to be: routes change by themselves.
func TestByRoutes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.change = func(_ int, m *mad.MAD) bool {
		switch m.Attr() {
		case mad.AttrLinearForwardingTable:
			for i := range m.Data() {
				m.Data()[i] = 0xFF
			}
		case mad.AttrMulticastForwardingTable:
			clear(m.Data())
		}
		return true
	}
	if got := b.report(""); got.Verdict != v1.Isolated || len(got.ByRoutes) > 0 {
		t.Fatalf("without a route: %s, %v", got.Verdict, got.ByRoutes)
	}
	leaf, port := b.leaf("h1")
	b.stray("h1", 0, blueKey)
	b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey)
	got := b.report("")
	want := []v1.IsolationByRoutes{{A: "blue", B: "red"}}
	if got.Verdict != v1.IsolationUnknown || !slices.Equal(got.ByRoutes, want) || got.Pairs != (v1.IsolationPairs{Isolated: 2, Unknown: 1}) ||
		!strings.Contains(got.Reason, "forwarding tables") {
		t.Errorf("verdict %s (%s), by routes %v, pairs %+v", got.Verdict, got.Reason, got.ByRoutes, got.Pairs)
	}
	if got := b.report("blue"); got.Verdict != v1.IsolationUnknown || !slices.Equal(got.ByRoutes, want) {
		t.Errorf("of blue: verdict %s, by routes %v", got.Verdict, got.ByRoutes)
	}
	b.change = nil
	if got := b.report(""); got.Verdict != v1.Leaks || len(got.ByRoutes) > 0 {
		t.Errorf("with routes: %s, %v", got.Verdict, got.ByRoutes)
	}
}

type grantRecord = store.Record[records.Grant]
