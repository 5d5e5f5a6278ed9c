package isolation_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/isolation"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// intent returns what is declared.
func (b *bed) intent() *isolation.Intent {
	b.t.Helper()
	in, err := isolation.NewIntent(b.records)
	if err != nil {
		b.t.Fatal(err)
	}
	return in
}

// regrant changes one to three grants. It returns them, and all grants.
func regrant(random *rand.Rand, b *bed, all []store.Record[records.Grant]) (changes []isolation.Change, after []store.Record[records.Grant]) {
	after = slices.Clone(all)
	hosts := b.records.Inventory.Hosts
	tenants := []string{"red", "blue", "green", ""}
	for range 1 + random.IntN(3) {
		h := &hosts[random.IntN(len(hosts))]
		p := h.HCAs[0].Ports[0]
		who := random.IntN(len(tenants))
		key := records.Key{PKey: []ib.PKey{redKey, blueKey, 0x8303, 0x8777}[random.IntN(4)].Base(), GUID: p.GUID, Place: p.Cable}
		if random.IntN(10) == 0 {
			key.Place = hosts[random.IntN(len(hosts))].HCAs[0].Ports[0].Cable
		}
		if random.IntN(30) == 0 {
			key.GUID++ // the inventory has no such port
		}
		at := slices.IndexFunc(after, func(r store.Record[records.Grant]) bool { return r.Key == key.String() })
		if random.IntN(3) == 0 && len(after) > 0 { // another one is removed, or withdrawn
			if at = random.IntN(len(after)); random.IntN(2) == 0 {
				changes = append(changes, isolation.Change{Key: after[at].Key})
				after = slices.Delete(after, at, at+1)
				continue
			}
			g := after[at].Value
			g.Withdrawn = true
			changes, after[at].Value = append(changes, isolation.Change{Key: after[at].Key, Grant: &g}), g
			continue
		}
		g := records.Grant{Host: h.ID, Cluster: "c", Tenant: tenants[who], Limited: random.IntN(6) == 0, Withdrawn: random.IntN(6) == 0, Since: time.Unix(random.Int64N(100), 0)}
		if random.IntN(10) == 0 {
			g.Adopted = "x"
		}
		changes = append(changes, isolation.Change{Key: key.String(), Grant: &g})
		if at >= 0 {
			after[at].Value = g
		} else {
			after = append(after, store.Record[records.Grant]{Key: key.String(), Value: g})
		}
	}
	return changes, after
}

// own returns a reading in which adapters are of the owners that are declared.
func (b *bed) own(in *isolation.Intent, q v1.IsolationQuery, was *reader.Found) *reader.Found {
	o := in.Options(q)
	f := *was
	f.Fabric = &proof.Fabric{Devices: slices.Clone(was.Fabric.Devices)}
	for i := range f.Ends {
		e := &f.Ends[i]
		d := &f.Fabric.Devices[e.Port.Device]
		if owner := o.Owner(e.At, reader.Identity{Type: d.Type, Node: d.GUID, Port: e.GUID}); d.Ports[e.Port.Port].Owner != owner {
			d.Ports = slices.Clone(d.Ports)
			d.Ports[e.Port.Port].Owner = owner
		}
	}
	return &f
}

// TestWithLeaves has grants written that take more than owners and P_Keys of ports of the inventory.
func TestWithLeaves(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.hostOf("h5").Role = inventory.RoleService
	b.hostOf("h2").HCAs[0].Ports[0].Aliases = []ib.GUID{0xB2}
	b.hostOf("h4").HCAs[0].Ports[0].Aliases = []ib.GUID{b.hostOf("h3").HCAs[0].Ports[0].GUID}
	key := func(host string) records.Key {
		p := b.hostOf(host).HCAs[0].Ports[0]
		return records.Key{PKey: redKey.Base(), GUID: p.GUID, Place: p.Cable}
	}
	strange := key("h1")
	strange.GUID = 1
	red := &records.Grant{Tenant: "red"}
	for name, c := range map[string]struct {
		change isolation.Change
		ok     bool
	}{
		"a host of another tenant":          {isolation.Change{Key: key("h1").String(), Grant: &records.Grant{Tenant: "green"}}, true},
		"a host with aliases":               {isolation.Change{Key: key("h2").String(), Grant: red}, true},
		"a port with a GUID of another one": {isolation.Change{Key: key("h3").String()}, false},
		"no record of a host":               {isolation.Change{Key: key("h2").String()}, true},
		"a service":                         {isolation.Change{Key: key("h5").String(), Grant: red}, false},
		"a service, limited":                {isolation.Change{Key: key("h5").String(), Grant: &records.Grant{Tenant: "red", Limited: true}}, true},
		"a GUID that is an alias":           {isolation.Change{Key: key("h3").String(), Grant: red}, false},
		"no port of the inventory":          {isolation.Change{Key: strange.String(), Grant: red}, false},
		"no key":                            {isolation.Change{Key: "x", Grant: red}, false},
	} {
		in := b.intent()
		next, ok := in.With([]isolation.Change{c.change})
		if ok != c.ok {
			t.Errorf("%s: %t", name, ok)
		}
		if !ok {
			continue
		}
		if _, known := next.Moved(in); !known {
			t.Errorf("%s: it is not known what moved", name)
		}
		if _, known := in.Moved(next); known && in != next {
			t.Errorf("%s: an earlier Intent says what moved since a later one", name)
		}
		if again, err := isolation.NewIntent(b.records); err != nil || !again.Equal(in) {
			t.Errorf("%s: the Intent that was there has changed, %v", name, err)
		}
	}
}

// TestSteps has one Intent be made of another many times, and asks what moved since some of them.
func TestSteps(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	in := b.intent()
	p := b.hostOf("h5").HCAs[0].Ports[0]
	key := records.Key{PKey: redKey.Base(), GUID: p.GUID, Place: p.Cable}.String()
	all := []*isolation.Intent{in}
	for i := range 1100 {
		c := isolation.Change{Key: key, Grant: &records.Grant{Tenant: "red"}}
		if i%2 == 1 {
			c.Grant = nil
		}
		next, ok := all[i].With([]isolation.Change{c})
		if !ok {
			t.Fatal("a grant is not taken in")
		}
		all = append(all, next)
	}
	if !all[0].Equal(all[2]) || all[0].Equal(all[1]) || all[0].Equal(nil) {
		t.Error("what two Intents declare is not compared")
	}
	other, _ := all[10].With([]isolation.Change{{Key: key, Grant: &records.Grant{Tenant: "blue"}}})
	if same, ok := all[10].With([]isolation.Change{{Key: key}}); !ok || same != all[10] {
		t.Error("what is declared already makes another Intent")
	}
	for name, c := range map[string]struct {
		is, was *isolation.Intent
		known   bool
		places  int
	}{
		"one":              {all[1], all[0], true, 1},
		"itself":           {all[7], all[7], true, 0},
		"many":             {all[1000], all[10], true, 990},
		"a new line":       {all[1050], all[10], false, 0},
		"of the new line":  {all[1050], all[1030], true, 20},
		"of nothing":       {all[1], nil, false, 0},
		"of the same one":  {other, all[10], false, 0},
		"beside the other": {all[12], other, false, 0},
	} {
		places, known := c.is.Moved(c.was)
		if known != c.known || len(places) != c.places || len(places) > 0 && places[0] != p.Cable {
			t.Errorf("%s: %v, %t", name, places, known)
		}
	}
}
