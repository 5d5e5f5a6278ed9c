package members

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
)

var place = ib.Place{Switch: 0x10, Port: 3}

func member(guid ib.GUID, k ib.PKey) partition.Member {
	return partition.Member{GUID: guid, PKey: k, Place: place}
}

// replace takes an intent that replaces all, and returns how many memberships it changed.
func replace(r *Register, keep bool, granted, held, absent []partition.Member) int {
	x := r.Replace(keep)
	for _, g := range granted {
		x.Grant(g)
	}
	for _, g := range held {
		x.Hold(g)
	}
	for _, g := range absent {
		x.Deny(g)
	}
	x.End()
	changed, _ := r.Intended(1)
	return len(changed)
}

// TestReplace checks that an intent changes what differs from the one before, and nothing else.
func TestReplace(t *testing.T) {
	r := New()
	a, b := member(1, 0x8001), member(2, 0x8001)
	limited := member(1, 0x0001)
	type list = []partition.Member
	for _, tt := range []struct {
		name                  string
		granted, held, absent list
		changed               int
		want                  list
	}{
		{"first", list{a, b}, nil, nil, 2, list{a}},
		{"the same", list{a, b}, nil, nil, 0, list{a}},
		{"one less", list{b}, nil, nil, 1, nil},
		{"again", list{a, b}, nil, nil, 1, list{a}},
		{"both forms: the limited one counts", list{limited, a, b}, nil, nil, 1, list{limited}},
		{"absent and granted: the grant is named first, and is withdrawn no more", list{limited, b}, nil, list{limited}, 0, list{limited}},
		{"absent", list{b}, nil, list{limited}, 1, nil},
		{"held where it was withdrawn", list{b}, list{a}, nil, 1, nil},
		{"granted where it is held", list{a, b}, list{a}, nil, 1, list{a}},
	} {
		if got := replace(r, false, tt.granted, tt.held, tt.absent); got != tt.changed {
			t.Errorf("%s: %d changed, want %d", tt.name, got, tt.changed)
		}
		if d := cmp.Diff(tt.want, append(list(nil), r.Wishes(1)...)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	if !r.IsEntitled(2, place) || !r.IsGranted(place, 0x0001, true) || r.IsGranted(place, 0x0001, false) || !r.IsForHost(place) {
		t.Error("a grant is not found")
	}
}

// TestRemove checks that nothing is left of memberships that are gone.
func TestRemove(t *testing.T) {
	r := New()
	replace(r, false, []partition.Member{member(1, 0x8001), member(1, 0x8002)}, nil, nil)
	for len(r.Of(1)) > 0 {
		if !r.HasAt(place) {
			t.Fatal("a place was forgotten too early")
		}
		r.Remove(r.Of(1)[0])
	}
	if !r.IsEmpty() || r.HasAt(place) || r.Has(1) || len(r.GUIDs()) != 0 {
		t.Error("something is left")
	}
}

// TestKeep checks that what a switch port is found with stays, for as long as intents keep it.
func TestKeep(t *testing.T) {
	r := New()
	replace(r, true, nil, []partition.Member{member(1, 0x8001)}, nil)
	if !r.Agree(place, []ib.PKey{ib.DefaultPKeyLimited, 0x0001}) || r.Of(1)[0].Held || r.Of(1)[0].PKey != 0x0001 {
		t.Error("a membership that was found is held")
	}
	if r.Agree(place, []ib.PKey{0x0001}) {
		t.Error("agreed twice")
	}
	if !r.Keep(2, place, []ib.PKey{ib.DefaultPKeyLimited, 0x8001, 0x8002}) || len(r.Wishes(2)) != 1 {
		t.Errorf("kept %v", r.Wishes(2))
	}
	if n := replace(r, true, []partition.Member{member(1, 0x0001)}, nil, nil); n != 0 {
		t.Errorf("%d changed", n)
	}
	if n := replace(r, false, []partition.Member{member(1, 0x0001)}, nil, nil); n != 1 || !r.Of(2)[0].Leaving {
		t.Errorf("%d changed", n)
	}
}

// TestSetHosts checks that places are returned which were for no host before.
func TestSetHosts(t *testing.T) {
	r := New()
	other := ib.Place{Switch: 0x10, Port: 4}
	r.SetHosts([]ib.Place{place})
	if d := cmp.Diff([]ib.Place{other}, r.SetHosts([]ib.Place{place, other})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if added := r.SetHosts([]ib.Place{other}); len(added) != 0 || r.IsForHost(place) || !r.IsForHost(other) {
		t.Error("a place that is for a host no longer counts")
	}
}
