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
	"portcullis/fabricsm/sim"
)

// ports reads the fabric and returns the verdict of each host, which has one port.
func (b *bed) ports() map[string]v1.IsolationPortVerdict {
	b.t.Helper()
	proven := b.prove(v1.IsolationQuery{Membership: !b.cautious}, isolation.Span{})
	out, before := map[string]v1.IsolationPortVerdict{}, ""
	for _, p := range proven.Ports() {
		if key := isolation.PortKey(&p); key <= before {
			b.t.Errorf("%q is after %q", key, before)
		} else {
			before = key
		}
		out[p.Host] = p
	}
	return out
}

// Each declared port has a verdict of its own, with what holds it apart, and the end of a packet that it is.
func TestPortVerdicts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	want := func(when string, hosts map[string]string) {
		t.Helper()
		for host, got := range b.ports() {
			text := strings.TrimSpace(strings.Join([]string{got.Verdict, got.Held, got.End, got.Other, got.Cause}, " "))
			text = strings.Join(strings.Fields(text), " ")
			wanted, ok := hosts[host]
			if !ok {
				wanted = "isolated each"
			}
			if text != wanted {
				t.Errorf("%s: %s is %q, want %q", when, host, text, wanted)
			}
		}
	}
	want("clean", nil)
	if p := b.ports()["h5"]; p.Tenant != "" || p.GUID == 0 || p.Place.IsZero() {
		t.Errorf("h5, of no tenant: %+v", p)
	}
	if p := b.ports()["h1"]; p.Tenant != "red" {
		t.Errorf("h1: %+v", p)
	}
	if all := b.ports(); len(all) != 5 {
		t.Errorf("verdicts of %d hosts, want 5: %+v", len(all), all)
	}
	b.hostOf("h5").Role = inventory.RoleService
	if all := b.ports(); len(all) != 4 || all["h5"].Host != "" {
		t.Errorf("with h5 as a service: %+v", all)
	}
	b.hostOf("h5").Role = ""
	b.cautious = true
	adapters := map[string]string{}
	for _, h := range []string{"h1", "h2", "h3", "h4", "h5"} {
		adapters[h] = "isolated adapters"
	}
	want("if switches may ignore membership", adapters)
	b.cautious = false
	leaf, port := b.leaf("h1")
	b.stray("h1", 0, blueKey)
	// Adapters alone would let the packets of h1 and of both hosts of blue pass.
	want("a stray P_Key in one adapter", map[string]string{"h1": "isolated switches", "h2": "isolated switches", "h4": "isolated switches"})
	b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey)
	want("and in its switch port", map[string]string{"h1": "leaks both blue", "h2": "leaks both red", "h4": "leaks both red"})
}

// A port of which nothing follows says why.
func TestPortUnproven(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set           func(b *bed)
		cause, detail string
		isolated      bool // the other tenant's
	}{
		"P_Key tables silent": {func(b *bed) {
			b.change = func(_ int, m *mad.MAD) bool { return m.Attr() != mad.AttrPKeyTable }
		}, v1.PortNotRead, "P_Key table of h1 (", false},
		"host silent": {func(b *bed) {
			if err := b.fabric.SetFault("h1", sim.Fault{Silent: true}); err != nil {
				b.t.Fatal(err)
			}
		}, v1.PortNotFound, "nothing answers at the switch port", true},
		"table of the switch port silent": {func(b *bed) {
			b.stray("h1", 0, blueKey)
			b.change = func(_ int, m *mad.MAD) bool { return m.Attr() != mad.AttrPKeyTable || m.Mod()>>16 == 0 }
		}, v1.PortNotRead, "P_Key table of leaf", false},
		"the own port, without a cable": {func(b *bed) {
			p := &b.hostOf("h1").HCAs[0]
			p.NodeGUID, p.Ports[0].GUID, p.Ports[0].Cable = 0, b.list.Find("sm").PortGUID(1), ib.Place{}
			b.records.Grants = slices.DeleteFunc(b.records.Grants, func(g store.Record[records.Grant]) bool { return g.Value.Host == "h1" })
		}, v1.PortNotFound, "no cable of it is declared", true},
		"host not cabled": {func(b *bed) { b.hostOf("h1").HCAs[0].Ports[0].Cable = ib.Place{} }, v1.PortNotFound, "no cable of it is declared", true},
		"forwarding tables silent": {func(b *bed) {
			leaf, port := b.leaf("h1")
			b.stray("h1", 0, blueKey)
			b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey)
			b.change = func(_ int, m *mad.MAD) bool { return m.Attr() != mad.AttrLinearForwardingTable }
		}, v1.PortNotRead, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			test.set(b)
			got := b.ports()
			if p := got["h1"]; p.Verdict != v1.Unproven || p.Cause != test.cause || !strings.Contains(p.Detail, test.detail) || p.Detail == "" || p.Held != "" {
				t.Errorf("h1: %+v", p)
			}
			if p := got["h2"]; (p.Verdict == v1.Isolated) != test.isolated {
				t.Errorf("h2: %+v", p)
			}
		})
	}
}
