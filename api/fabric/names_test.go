package fabric

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/alias"
)

// TestNaming: places have the names of the hosts that inventory has cabled there,
// and hosts those of the tenants whose grants they have.
func TestNaming(t *testing.T) {
	b := newTestBook(false)
	b.grants[key] = grant{modified: 100, host: "h", tenant: "acme"}
	got := b.naming()
	if d := cmp.Diff(map[ib.Place]string{home: "h"}, got.cables); d != "" {
		t.Errorf("cables (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"h": "acme"}, got.tenants); d != "" {
		t.Errorf("tenants (-want +got):\n%s", d)
	}
	old := key
	old.PKey = 6
	b.grants[old] = grant{modified: 90, withdrawn: true, host: "h", tenant: "before"}
	if got := b.naming().tenants["h"]; got != "acme" {
		t.Errorf("tenant %q while access of the one before is taken away, want acme", got)
	}
	b.host("h", &inventory.Host{ID: "h", HCAs: []inventory.HCA{{NodeGUID: 0xa0, Ports: []inventory.Port{{Num: 1, GUID: 0xa1, Cable: away}}}}})
	if d := cmp.Diff(map[ib.Place]string{away: "h"}, b.naming().cables); d != "" {
		t.Errorf("cables after a move (-want +got):\n%s", d)
	}
	b.host("g", &inventory.Host{ID: "g", HCAs: []inventory.HCA{{NodeGUID: 0xb0, Ports: []inventory.Port{
		{Num: 1, GUID: 0xb1, Aliases: []ib.GUID{0xba, 0xbb}}, {Num: 2, GUID: 0xb2, Aliases: []ib.GUID{0xbc}}, {Num: 3, GUID: 0xb3},
	}}}})
	if d := cmp.Diff(alias.List{0xb1: {0xba, 0xbb}, 0xb2: {0xbc}}, b.owners.mayBe()); d != "" {
		t.Errorf("alias GUIDs (-want +got):\n%s", d)
	}
	b.host("g", nil)
	if l := b.owners.mayBe(); len(l) != 0 {
		t.Errorf("a host that is gone may have %v", l)
	}
	b.host("h", nil)
	if n := b.naming(); len(n.cables)+len(n.hosts) != 0 {
		t.Errorf("a host that is gone is named: %+v", n)
	}
}
