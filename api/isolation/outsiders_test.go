package isolation_test

import (
	"slices"
	"testing"

	"portcullis/api/fabric/records"
	"portcullis/api/isolation"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// outsiders reads the fabric, and returns the ports at which packets pass that no membership explains.
func (b *bed) outsiders() []outsiders.Outsider {
	b.t.Helper()
	return b.prove(v1.IsolationQuery{}, isolation.Span{}).Outsiders()
}

func (b *bed) wantOutsiders(what string, want ...outsiders.Outsider) {
	b.t.Helper()
	got := b.outsiders()
	same := slices.EqualFunc(got, want, func(g, w outsiders.Outsider) bool {
		return g.GUID == w.GUID && g.Place == w.Place && g.Party == w.Party && slices.Equal(g.PKeys, w.PKeys) && g.Name != ""
	})
	if !same {
		b.t.Errorf("%s: outsiders %+v, want %+v", what, got, want)
	}
}

// limited returns an outsider that only full members exchange packets with.
func limited(o outsiders.Outsider) outsiders.Outsider {
	o.PKeys = []ib.PKey{o.PKeys[0].Limited()}
	return o
}

// A port is an outsider of a partition if packets pass there, by both tables or in spite of them, and no membership explains it.
func TestOutsiders(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.wantOutsiders("clean")
	leaf, port := b.leaf("h1")
	mod := mad.PKeyTableMod(port, 0)
	is := outsiders.Outsider{
		Port:  outsiders.Port{Place: ib.Place{Switch: b.list.Find(leaf).GUID, Port: port}, GUID: b.hostOf("h1").HCAs[0].Ports[0].GUID, Party: "tenant red"},
		PKeys: []ib.PKey{blueKey},
	}
	b.stray("h1", 0, blueKey)
	b.wantOutsiders("in the adapter alone: the switch port stops its packets")
	b.stray(leaf, mod, blueKey)
	b.wantOutsiders("in both tables", is)
	b.stray("h1", 0, blueKey.Limited())
	b.wantOutsiders("limited in the adapter: the switch port lets packets of limited members pass, and the adapter takes none", limited(is))
	b.stray(leaf, mod, blueKey.Limited())
	b.wantOutsiders("limited in both tables", limited(is))
	b.stray("h1", 0, blueKey)
	b.wantOutsiders("limited in the switch port", limited(is))
	b.stray(leaf, mod, blueKey)
	b.stray("h1", 0, 0)
	b.wantOutsiders("in the switch port alone: the adapter stops its packets")

	b.stray("h1", 0, 0x8333)
	b.stray(leaf, mod, 0x8333)
	is.PKeys = []ib.PKey{0x8333}
	b.wantOutsiders("a P_Key of no cluster", is)
	name := records.Key{PKey: 0x333, GUID: is.GUID, Place: is.Place}.String()
	for what, g := range map[string]records.Grant{
		"a member":        {Host: "h1", Tenant: "red"},
		"being withdrawn": {Host: "h1", Tenant: "red", Withdrawn: true},
		"adopted":         {Adopted: "adoption-0001"},
	} {
		b.records.Grants = append(b.records.Grants, store.Record[records.Grant]{Key: name, Value: g})
		b.wantOutsiders(what)
		b.records.Grants = b.records.Grants[:len(b.records.Grants)-1]
	}
	// A grant of the adapter at another port explains nothing here.
	other, num := b.leaf("h3")
	name = records.Key{PKey: 0x333, GUID: is.GUID, Place: ib.Place{Switch: b.list.Find(other).GUID, Port: num}}.String()
	b.records.Grants = append(b.records.Grants, store.Record[records.Grant]{Key: name, Value: records.Grant{Host: "h1", Tenant: "red"}})
	b.wantOutsiders("a member elsewhere", is)
}

// Another adapter at the place of a member is an outsider of its partition.
func TestOutsiderInPlaceOfMember(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if err := b.fabric.SetPortGUID("h1", 1, 0x77); err != nil {
		t.Fatal(err)
	}
	leaf, port := b.leaf("h1")
	b.wantOutsiders("another adapter", outsiders.Outsider{
		Port:  outsiders.Port{Place: ib.Place{Switch: b.list.Find(leaf).GUID, Port: port}, GUID: 0x77, Party: "undeclared"},
		PKeys: []ib.PKey{redKey},
	})
}

// What was not read makes no port an outsider.
func TestUnreadIsNoOutsider(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.stray("h1", 0, blueKey)
	b.change = func(_ int, m *mad.MAD) bool { return m.Attr() != mad.AttrPKeyTable }
	b.wantOutsiders("no table was read")
	if got := b.report("").Verdict; got != v1.IsolationUnknown {
		t.Errorf("verdict %q", got)
	}
}
