package isolation_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

func (b *bed) wantGhosts(what, tenant string, want ...v1.GhostMember) {
	b.t.Helper()
	got := b.report(tenant)
	same := slices.EqualFunc(got.Ghosts, want, func(a, b v1.GhostMember) bool {
		return a.GUID == b.GUID && a.Place == b.Place && a.Held == b.Held && slices.Equal(a.PKeys, b.PKeys)
	})
	if !same || got.Bounds.Ghosts != len(want) {
		b.t.Errorf("%s: ghost members %+v (%d), want %+v", what, got.Ghosts, got.Bounds.Ghosts, want)
	}
}

// A port that holds a tenant's P_Key without a membership is counted, whichever table has it.
func TestGhostMembers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.wantGhosts("clean", "")
	leaf, port := b.leaf("h1")
	at, guid := ib.Place{Switch: b.list.Find(leaf).GUID, Port: port}, b.hostOf("h1").HCAs[0].Ports[0].GUID
	b.stray("h1", 0, 0x8333)
	b.wantGhosts("a P_Key of no tenant", "")
	b.stray("h1", 0, blueKey)
	b.wantGhosts("in the adapter", "", v1.GhostMember{GUID: guid, Place: at, PKeys: []ib.PKey{blueKey}, Held: v1.GhostInAdapter})
	b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey.Limited())
	both := v1.GhostMember{GUID: guid, Place: at, PKeys: []ib.PKey{blueKey.Limited(), blueKey}, Held: v1.GhostInBoth}
	b.wantGhosts("in both tables", "", both)
	b.wantGhosts("of blue", "blue", both)
	b.wantGhosts("of red", "red")
	name := records.Key{PKey: blueKey.Base(), GUID: guid, Place: at}.String()
	for what, g := range map[string]records.Grant{
		"being withdrawn": {Host: "h1", Tenant: "blue", Withdrawn: true, Since: time.Unix(1, 0)},
		"adopted":         {Adopted: "adoption-0001", Since: time.Unix(1, 0)},
		"shared":          {Host: "h1", Tenant: "blue", Limited: true, Since: time.Unix(1, 0)},
	} {
		b.records.Grants = append(b.records.Grants, store.Record[records.Grant]{Key: name, Value: g})
		b.wantGhosts(what, "")
		b.records.Grants = b.records.Grants[:len(b.records.Grants)-1]
	}
	other, num := b.leaf("h3")
	b.stray(other, mad.PKeyTableMod(num, 0), blueKey)
	b.wantGhosts("in another switch port alone", "", both, v1.GhostMember{
		Place: ib.Place{Switch: b.list.Find(other).GUID, Port: num}, PKeys: []ib.PKey{blueKey}, Held: v1.GhostInSwitch,
	})
}

// Another adapter at the place of a membership does not have it.
func TestGhostAtAnothersPlace(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	leaf, port := b.leaf("h1")
	at := ib.Place{Switch: b.list.Find(leaf).GUID, Port: port}
	for i := range b.records.Grants {
		if k, err := records.ParseKey(b.records.Grants[i].Key); err == nil && k.Place == at {
			k.GUID = 0x77
			b.records.Grants[i].Key = k.String()
		}
	}
	b.wantGhosts("the membership is another port's", "", v1.GhostMember{
		GUID: b.hostOf("h1").HCAs[0].Ports[0].GUID, Place: at, PKeys: []ib.PKey{redKey}, Held: v1.GhostInAdapter,
	})
}
