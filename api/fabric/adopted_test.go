package fabric

import (
	"slices"
	"testing"

	"portcullis/api/fabric/records"
	"portcullis/api/review"
	"portcullis/fabricsm/sm"
)

// An order that takes a host off the fabric takes what its ports have by adoption, too: of its port GUIDs, and of its places.
func TestAdoptedIsRemovedWithoutTheStore(t *testing.T) {
	t.Parallel()
	b := newTestBook(false)
	own, there, other := key, key, key
	own.PKey, there.GUID, there.PKey = key.PKey+1, 0xdd, key.PKey+2
	other.GUID, other.Place.Port = 0xdd, key.Place.Port+1
	for _, k := range []records.Key{own, there, other} {
		b.grants[k] = grant{modified: 100, adopted: true}
	}
	b.mark = nil
	for _, reviewed := range []bool{false, true} {
		if reviewed {
			b.mark = &review.Mark{}
		}
		w := b.wanted()
		in := w.without(map[string]bool{"h": true})
		left := append(slices.Clone(in.Grants), in.Held...)
		for _, k := range []records.Key{own, there, other} {
			g := sm.Grant{GUID: k.GUID, PKey: k.PKey.Full(), Place: k.Place}
			if gone := k != other; slices.Contains(in.Absent, g) != gone || slices.Contains(left, g) == gone {
				t.Errorf("in review %v: %v is to be absent: %v, want %v; the intent is %+v", reviewed, k, !gone, gone, in)
			}
		}
	}
	b.host("h", nil)
	if in := b.wanted(); slices.ContainsFunc(in.held, func(h holder) bool { return h.adopted && h.host != "" }) {
		t.Errorf("a port that left inventory is still that of a host: %+v", in.held)
	}
}

// An adopted membership is wanted at its place in the form that it had, and is of no host, cluster or tenant.
func TestAdopted(t *testing.T) {
	t.Parallel()
	b := newTestBook(false)
	was := b.grants[key]
	was.host, was.cluster, was.tenant = "h", "blue", "acme"
	b.grants[key] = was
	adopted := key
	adopted.GUID, adopted.Place.Port = 0xdd, key.Place.Port+1
	b.grants[adopted] = grant{modified: 100, adopted: true, limited: true}
	want := sm.Grant{GUID: 0xdd, PKey: key.PKey.Limited(), Place: adopted.Place}
	if in := b.intent(); !slices.Contains(in.Grants, want) || len(in.Absent) != 0 {
		t.Errorf("the intent is %+v", in)
	}
	if p := b.partitions()[key.PKey.Base()]; p != (Partition{Cluster: "blue"}) {
		t.Errorf("the partition is %+v, want one of no tenant: it is not known whose the adopted port is", p)
	}
	n := b.naming()
	if _, named := n.clusters[""]; named || len(n.clusters) != 1 {
		t.Errorf("clusters are %v", n.clusters)
	}
	b.mark = &review.Mark{}
	if in := b.intent(); !slices.Contains(in.Held, want) || len(in.Grants) != 0 {
		t.Errorf("in review the intent is %+v: an adopted membership is given only where the switch port has it", in)
	}
	b.mark = nil
	gone := b.grants[adopted]
	gone.withdrawn = true
	b.grants[adopted] = gone
	if in := b.intent(); !slices.Contains(in.Absent, want) {
		t.Errorf("the intent is %+v", in)
	}
	other := b.partitions()
	delete(b.grants, key)
	if p, there := b.partitions()[key.PKey.Base()]; !there || p != (Partition{}) || len(other) != 1 {
		t.Errorf("the partition is %+v", p)
	}
}
